package peer

import (
	"crypto"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const (
	directoryName = "peer"
	fileName      = "node.json"
	tempName      = fileName + ".tmp"
	maxFileBytes  = 256 << 10
)

// contents are the contents of peer/node.json.
type contents struct {
	Node    string `json:"node"`
	Address string `json:"address"`
	// Others are the addresses of the nodes that a node asks to be a member; none for the
	// first one of a cluster.
	Others       []string `json:"others,omitempty"`
	Certificate  string   `json:"certificate"`
	Key          string   `json:"key"`
	Authority    string   `json:"authority"`
	AuthorityKey string   `json:"authorityKey"`
	Tickets      []ticket `json:"tickets,omitempty"`
}

// directory is the file of a node. Any goroutine.
type directory struct {
	path      string // of the directory peer
	authority *authority
	// self is this node, others are as in the file.
	self   Member
	others []string

	mu      sync.Mutex
	has     contents
	pair    *tls.Certificate
	renewAt time.Time
}

// Founding says what the first node of a cluster is.
type Founding struct {
	// Node is its id, Address the one at which other nodes reach it.
	Node, Address string
	// Authority and AuthorityKey are PEM of a certificate that may sign others, and of its
	// key; empty: a new authority is made.
	Authority, AuthorityKey string
	Now                     time.Time
}

// Check refuses an authority that cannot sign.
func (f *Founding) Check() error {
	if f.Authority == "" {
		return nil
	}
	_, err := parseAuthority(f.Authority, f.AuthorityKey)
	return err
}

// Found makes the file of the first node of a cluster in its data directory. One that is there
// is from a time when the directory did not become that of a node.
func Found(dataDir string, f *Founding) error {
	made, err := newAuthority(f.Now)
	if f.Authority != "" {
		made, err = parseAuthority(f.Authority, f.AuthorityKey)
	}
	if err != nil {
		return err
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return err
	}
	certificate, err := made.issue(f.Node, key.Public(), f.Now)
	if err != nil {
		return err
	}
	return create(dataDir, &contents{
		Node: f.Node, Address: f.Address, Certificate: certificate, Key: keyPEM, Authority: made.pem, AuthorityKey: made.keyPEM,
	})
}

// create writes the file of a node.
func create(dataDir string, c *contents) error {
	if problem := AddressProblem(c.Address); problem != "" {
		return fmt.Errorf("the address of the node %s, got %.80q", problem, c.Address)
	}
	d := &directory{path: filepath.Join(dataDir, directoryName)}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return fmt.Errorf("make the directory of the node: %w", err)
	}
	return d.write(c)
}

// IsNode reports whether a data directory has the file of a node.
func IsNode(dataDir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dataDir, directoryName, fileName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// openDirectory reads the file of a node.
func openDirectory(dataDir string) (*directory, error) {
	d := &directory{path: filepath.Join(dataDir, directoryName)}
	text, err := os.ReadFile(filepath.Join(d.path, fileName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is not there: the machine had not finished to join, so no other node knows this one; empty the directory and join with a new token",
			filepath.Join(d.path, fileName))
	}
	if err != nil {
		return nil, fmt.Errorf("read which node this is: %w", err)
	}
	parsed, err := parseContents(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove this node from the cluster, empty its directory and let it join anew", filepath.Join(d.path, fileName), err)
	}
	d.has, d.self, d.others = *parsed, Member{Node: parsed.Node, Address: parsed.Address}, parsed.Others
	if d.authority, err = parseAuthority(d.has.Authority, d.has.AuthorityKey); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(d.path, fileName), err)
	}
	return d, d.take()
}

// parseContents reads the file, and checks all but the certificates.
func parseContents(text []byte) (*contents, error) {
	c := &contents{}
	if len(text) > maxFileBytes {
		return nil, errors.New("the file is too long")
	}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("the file is damaged: %w", err)
	}
	if !isNode(c.Node) {
		return nil, fmt.Errorf("the file is damaged: the id of the node must be 32 hexadecimal digits, got %.40q", c.Node)
	}
	for _, address := range append(slices.Clone(c.Others), c.Address) {
		if problem := AddressProblem(address); problem != "" {
			return nil, fmt.Errorf("the file is damaged: an address %s, got %.80q", problem, address)
		}
	}
	return c, nil
}

// take makes the certificate of the file the one that is shown. d.mu is held, or nobody else
// has d.
func (d *directory) take() error {
	pair, err := tls.X509KeyPair([]byte(d.has.Certificate), []byte(d.has.Key))
	if err != nil {
		return fmt.Errorf("%s: read the certificate of the node: %w", filepath.Join(d.path, fileName), err)
	}
	if !slices.Equal(pair.Leaf.DNSNames, []string{d.has.Node}) {
		return fmt.Errorf("%s: the certificate is not that of the node %s", filepath.Join(d.path, fileName), d.has.Node)
	}
	d.pair, d.renewAt = &pair, pair.Leaf.NotBefore.Add(backdated+renewAfter)
	return nil
}

// write replaces the file in one step, synced.
func (d *directory) write(c *contents) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("write which node this is: %w", err)
	}
	temp := filepath.Join(d.path, tempName)
	if err := errors.Join(writeSynced(temp, append(text, '\n')), os.Rename(temp, filepath.Join(d.path, fileName)), syncDirectory(d.path)); err != nil {
		return fmt.Errorf("write which node this is: %w", err)
	}
	return nil
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDirectory(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// change writes the contents that edit makes of the present ones, and has them count from
// then on.
func (d *directory) change(edit func(c *contents) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := d.has
	changed.Tickets = slices.Clone(d.has.Tickets)
	if err := edit(&changed); err != nil {
		return err
	}
	if err := d.write(&changed); err != nil {
		return err
	}
	d.has = changed
	return d.take()
}

// certificate is the certificate of the node.
func (d *directory) certificate() *tls.Certificate {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pair
}

// renew makes a new key and certificate if the present one is old, and returns when the next
// one is due.
func (d *directory) renew(now time.Time) (next time.Time, err error) {
	if d.due().After(now) {
		return d.due(), nil
	}
	var key crypto.Signer
	err = d.change(func(c *contents) (err error) {
		if key, c.Key, err = newKey(); err != nil {
			return err
		}
		c.Certificate, err = d.authority.issue(c.Node, key.Public(), now)
		return err
	})
	return d.due(), err
}

func (d *directory) due() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.renewAt
}

// invite makes a token, which counts for life, and keeps its digest.
func (d *directory) invite(life time.Duration, now time.Time) (string, error) {
	made := newToken(digestOf(d.authority.certificate), d.self.Address)
	err := d.change(func(c *contents) error {
		c.Tickets = append(live(c.Tickets, now), ticket{ticketOf(made.secret[:]), now.Add(life).UTC()})
		if len(c.Tickets) > mostTickets {
			return fmt.Errorf("%d tokens to join wait to be used: wait until one expires", mostTickets)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return made.String(), nil
}

var errTicket = errors.New("the token is not one of this node, has expired, or was used: each counts once; make a new one with \"codeq cluster token\"")

// redeem uses a token up, or says why it does not count.
func (d *directory) redeem(secret []byte, now time.Time) error {
	return d.change(func(c *contents) error {
		c.Tickets = live(c.Tickets, now)
		at := slices.IndexFunc(c.Tickets, func(t ticket) bool { return t.SHA256 == ticketOf(secret) })
		if at < 0 {
			return errTicket
		}
		c.Tickets = slices.Delete(c.Tickets, at, at+1)
		return nil
	})
}

// Invite makes a token for a node whose server does not run; it counts once, for life.
func Invite(dataDir string, life time.Duration, now time.Time) (string, error) {
	d, err := openDirectory(dataDir)
	if err != nil {
		return "", err
	}
	return d.invite(life, now)
}
