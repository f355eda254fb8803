package peer

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	maxRequestBytes = 64 << 10
	// addFor is how long one change of the members may take.
	addFor = 30 * time.Second
	// askAgain is the pause of a node that asks to be a voter.
	askAgain = 200 * time.Millisecond
)

// joining is what a machine asks of the node that made its token.
type joining struct {
	Secret  []byte `json:"secret"`
	Node    string `json:"node"`
	Address string `json:"address"`
	// Request is a request for a certificate (PKCS #10), by which the machine shows that it has
	// the key.
	Request []byte `json:"request"`
}

// granted is the answer.
type granted struct {
	Certificate  string   `json:"certificate"`
	Authority    string   `json:"authority"`
	AuthorityKey string   `json:"authorityKey"`
	Others       []string `json:"others"`
	CreationID   string   `json:"creationId"`
	Shards       int      `json:"shards"`
}

// refused is an answer that is no success.
type refused struct {
	Error string `json:"error"`
	// Leader is the address of the node to ask instead.
	Leader string `json:"leader,omitempty"`
}

// Grant is what a machine got by a token: it is a node from Write on.
type Grant struct {
	Data
	file contents
}

// Write makes the file of the node in its data directory.
func (g *Grant) Write(dataDir string) error { return create(dataDir, &g.file) }

// Join uses a token for a machine that will be a node with an id, which other nodes will reach at
// an address. The error is a sentence.
func Join(ctx context.Context, text, node, address string) (*Grant, error) {
	t, err := parseToken(text)
	if err != nil {
		return nil, err
	}
	if problem := AddressProblem(address); problem != "" {
		return nil, fmt.Errorf("the address of the node %s, got %.80q", problem, address)
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, fmt.Errorf("ask for a certificate: %w", err)
	}
	asks := joining{Secret: t.secret[:], Node: node, Address: address, Request: request}
	got := &granted{}
	if err := post(ctx, t.client(), t.address+"/join", asks, got); err != nil {
		return nil, fmt.Errorf("join at %s: %w", t.address, err)
	}
	g := &Grant{Data: Data{got.CreationID, got.Shards}, file: contents{
		Node: asks.Node, Address: address, Others: got.Others, Certificate: got.Certificate, Key: keyPEM,
		Authority: got.Authority, AuthorityKey: got.AuthorityKey,
	}}
	return g, g.check(t.authority)
}

// check checks an answer.
func (g *Grant) check(authority [sha256.Size]byte) error {
	signer, err := parseAuthority(g.file.Authority, g.file.AuthorityKey)
	if err != nil {
		return err
	}
	if digestOf(signer.certificate) != authority {
		return errForeign
	}
	d := &directory{has: g.file}
	return d.take()
}

var errForeign = errors.New("another cluster answers there: its authority is not the one of the token; nothing was sent to it")

// client talks to the node that made a token, and to no other.
func (t *token) client() *http.Client {
	return over(func(ctx context.Context, at string) (net.Conn, error) {
		dialer := tls.Dialer{Config: &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{overJoin},
			// VerifyConnection verifies: the node is known by its authority and not by its address.
			InsecureSkipVerify: true, VerifyConnection: t.verify,
		}}
		return dialer.DialContext(ctx, "tcp", at)
	})
}

// verify checks that the authority of the token has signed the certificate of the other side.
func (t *token) verify(state tls.ConnectionState) error {
	for _, shown := range state.PeerCertificates[1:] {
		if digestOf(shown) != t.authority || !shown.IsCA {
			continue
		}
		signer := &authority{roots: x509.NewCertPool()}
		signer.roots.AddCert(shown)
		_, err := signer.nodeOf(state.PeerCertificates, time.Now())
		return err
	}
	return errForeign
}

// over is an HTTP client whose connections dial makes. They are not kept.
func over(dial func(ctx context.Context, at string) (net.Conn, error)) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:       func(ctx context.Context, _, at string) (net.Conn, error) { return dial(ctx, at) },
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post asks a node at an address with a path. The error is its sentence, as *refusedError, or why there is no answer.
func post(ctx context.Context, client *http.Client, to string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+to, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() {
		_ = response.Body.Close() // what was needed has been read
	}()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxFileBytes))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		said := refused{}
		if err := json.Unmarshal(text, &said); err != nil || said.Error == "" {
			return fmt.Errorf("the answer was %s", response.Status)
		}
		return &refusedError{said}
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

// refusedError is a refusal of another node.
type refusedError struct{ refused }

// Error is the sentence.
func (e *refusedError) Error() string { return e.refused.Error }

// parseJoining reads a request of a machine and checks its form.
func parseJoining(body []byte) (*joining, *x509.CertificateRequest, error) {
	j := &joining{}
	if err := json.Unmarshal(body, j); err != nil {
		return nil, nil, errors.New("the request to join is not in its form")
	}
	if !isNode(j.Node) {
		return nil, nil, errors.New("the id of a node must be 32 hexadecimal digits")
	}
	if problem := AddressProblem(j.Address); problem != "" {
		return nil, nil, errors.New("the address of the node " + problem)
	}
	request, err := x509.ParseCertificateRequest(j.Request)
	if err == nil {
		err = request.CheckSignature()
	}
	if err != nil {
		return nil, nil, errors.New("the request to join has no request for a certificate that its key has signed")
	}
	return j, request, nil
}

// grant answers a machine: its token is used up before it gets anything.
func (p *Peers) grant(body []byte) (any, error) {
	asked, request, err := parseJoining(body)
	if err != nil {
		return nil, err
	}
	others := []string{p.directory.self.Address}
	for _, m := range p.members() {
		if m.Address == asked.Address {
			return nil, &refusedError{refused{Error: taken(m)}}
		}
		if m.Address != others[0] {
			others = append(others, m.Address)
		}
	}
	now := time.Now()
	if err := p.directory.redeem(asked.Secret, now); err != nil {
		return nil, err
	}
	certificate, err := p.directory.authority.issue(asked.Node, request.PublicKey, now)
	if err != nil {
		return nil, err
	}
	data := p.data()
	p.log.Info().Str("node", asked.Node).Str("address", asked.Address).Msg("a machine has joined by a token")
	return &granted{
		Certificate: certificate, Authority: p.directory.authority.pem, AuthorityKey: p.directory.authority.keyPEM, Others: others,
		CreationID: data.CreationID, Shards: data.Shards,
	}, nil
}

// taken is the refusal of a second node at the address of a member.
func taken(m Member) string {
	return fmt.Sprintf("the address %s is that of the node %s, which is a member: a directory that was emptied is a new node; "+
		"remove the old one first: codeq cluster remove %s", m.Address, m.Node, m.Node)
}
