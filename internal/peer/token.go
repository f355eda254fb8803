package peer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	tokenPrefix  = "cqj_"
	tokenVersion = 1
	secretBytes  = 16
	// maxAddressBytes is that of a name of DNS with a port.
	maxAddressBytes = 260
	maxTokenBytes   = 512
	// mostTickets bounds the tokens that wait at a node.
	mostTickets = 64
)

// token is what a machine needs to join: the node that made it, by its address and by the
// digest of its authority, and a secret.
type token struct {
	authority [sha256.Size]byte
	secret    [secretBytes]byte
	address   string
}

// newToken makes one with a new secret.
func newToken(authority [sha256.Size]byte, address string) token {
	t := token{authority: authority, address: address}
	_, _ = rand.Read(t.secret[:]) // it ends the process rather than fail
	return t
}

// String is the token as people pass it on.
func (t token) String() string {
	raw := append([]byte{tokenVersion}, t.authority[:]...)
	raw = append(raw, t.secret[:]...)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(raw, t.address...))
}

var errToken = errors.New("this is no token to join a cluster: they begin with " + tokenPrefix +
	", and \"codeq cluster token\" makes one")

// parseToken reads a token, with white space around it.
func parseToken(text string) (t token, err error) {
	body, found := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	if !found || len(body) > maxTokenBytes {
		return token{}, errToken
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || len(raw) <= 1+sha256.Size+secretBytes || raw[0] != tokenVersion {
		return token{}, errToken
	}
	raw = raw[1:]
	raw = raw[copy(t.authority[:], raw):]
	raw = raw[copy(t.secret[:], raw):]
	if t.address = string(raw); AddressProblem(t.address) != "" {
		return token{}, errToken
	}
	return t, nil
}

// AddressProblem says what is wrong with the address at which other nodes reach one, "" if
// nothing is: it must be host:port with both, the port a number from 1 to 65535.
func AddressProblem(address string) string {
	host, port, err := net.SplitHostPort(address)
	switch {
	case err != nil || host == "" || port == "" || port == "0":
		return "must be host:port, such as 10.0.0.1:8090"
	case !isPort(port):
		return "must end with a port from 1 to 65535, such as 10.0.0.1:8090"
	case len(address) > maxAddressBytes:
		return "is too long"
	}
	for i := range len(address) {
		if c := address[i]; c <= ' ' || c > '~' || strings.IndexByte(`"'<>\/?#@`, c) >= 0 {
			return "has a character that no address has"
		}
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return "must be one that other nodes can reach, and not that of all addresses of this machine"
	}
	return ""
}

// isPort reports whether text is a number from 1 to 65535, in digits alone.
func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// ticket is what a node keeps of a token that it made.
type ticket struct {
	SHA256    string    `json:"sha256"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// ticketOf is the digest by which the secret is found. A secret has 128 random bits, so it needs
// no slow digest.
func ticketOf(secret []byte) string {
	sum := sha256.Sum256(append([]byte("codeq join "), secret...))
	return hex.EncodeToString(sum[:])
}

// live are the tickets that count at a time.
func live(all []ticket, now time.Time) (kept []ticket) {
	for _, t := range all {
		if now.Before(t.ExpiresAt) {
			kept = append(kept, t)
		}
	}
	return kept
}
