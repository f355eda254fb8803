package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"codeq/wire"
)

const (
	// TokenPrefix begins every token, so that a search finds tokens that got into a log or
	// a repository.
	TokenPrefix = "cq_"
	tokenBytes  = 32

	maxNameBytes    = 100
	maxSubjectBytes = 200
	maxSANBytes     = 2048
	maxCommands     = wire.MaxSubscribeCommands
)

// digest is the SHA-256 of a token.
type digest = [sha256.Size]byte

// Entry is one token in the token file, or the client certificates of one name.
type Entry struct {
	// Name tells people which token it is.
	Name string
	// SHA256 is the digest of the token in lower-case hexadecimal.
	SHA256 string
	// Certificate is a name in client certificates (SAN), which stand for the entry; it has no
	// SHA256 then.
	Certificate     string
	Tenant, Subject string
	// Scopes are some of Scopes() and scopeGroups().
	Scopes []string
	// Commands are names of commands and prefixes like "build.*", or only wire.AllCommands.
	Commands []string
	// ExpiresAtMs is when the token ends, Unix milliseconds; 0 is never.
	ExpiresAtMs int64
}

// NewToken draws a token from a source of random bytes; nil is crypto/rand.
func NewToken(random io.Reader) (string, error) {
	if random == nil {
		random = rand.Reader
	}
	var drawn [tokenBytes]byte
	if _, err := io.ReadFull(random, drawn[:]); err != nil {
		return "", fmt.Errorf("draw token: %w", err)
	}
	return TokenPrefix + base64.RawURLEncoding.EncodeToString(drawn[:]), nil
}

// HashToken is the digest of a token for the token file. A token is 32 random bytes, so
// one round of SHA-256 without salt hides it.
func HashToken(token string) string {
	d := sha256.Sum256([]byte(token))
	return hex.EncodeToString(d[:])
}

// AppendYAML appends the entry as one item of the list in the file.
func (e *Entry) AppendYAML(dst []byte) []byte {
	field := func(name, value string) {
		dst = append(append(dst, name...), ": "...)
		dst = append(wire.AppendQuoted(dst, value), '\n')
	}
	list := func(name string, values []string) {
		dst = append(append(dst, name...), ": ["...)
		for i, value := range values {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = wire.AppendQuoted(dst, value)
		}
		dst = append(dst, "]\n"...)
	}
	field("- name", e.Name)
	if e.Certificate != "" {
		field("  certificate", e.Certificate)
	} else {
		field("  sha256", e.SHA256)
	}
	field("  tenant", e.Tenant)
	field("  subject", e.Subject)
	list("  scopes", e.Scopes)
	if e.Commands != nil {
		list("  commands", e.Commands)
	}
	if e.ExpiresAtMs != 0 {
		field("  expiresAt", time.UnixMilli(e.ExpiresAtMs).UTC().Format(time.RFC3339))
	}
	return dst
}

// digest is by what the entry is found.
func (e *Entry) digest() (d digest) {
	if e.Certificate != "" {
		return digestOfName(e.Certificate)
	}
	if _, err := hex.Decode(d[:], []byte(e.SHA256)); err != nil {
		panic("auth: an entry was read with a digest that is none")
	}
	return d
}

// principal is the principal of the token.
func (e *Entry) principal() *Principal {
	return &Principal{
		Tenant: e.Tenant, Subject: e.Subject, Scopes: ExpandScopes(e.Scopes), Commands: CommandsOf(e.Commands), ExpiresAtMs: e.ExpiresAtMs,
	}
}
