package auth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"codeq/internal/yamlfile"
	"codeq/wire"
)

// Tokens is the Authenticator over a token file. It uses the last version of the file
// that it could read; Reload reads a new one. Any goroutine.
type Tokens struct {
	file  string
	nowMs func() int64

	// reload is locked while the file is read, so that an older version never replaces a
	// newer one.
	reload sync.Mutex
	table  atomic.Pointer[table]
}

// table is one version of the file. It does not change.
type table struct {
	text     digest                // of the file
	byDigest map[digest]*Principal // whose source is a *tokenRef
}

// tokenRef is the source of the principal of a token.
type tokenRef struct {
	tokens *Tokens
	digest digest
}

// Current implements Source.
func (r *tokenRef) Current() *Principal { return r.tokens.find(r.digest) }

// OpenTokens reads a token file. The error names file and line.
func OpenTokens(file string) (*Tokens, error) {
	t := &Tokens{file: file, nowMs: wallMs}
	t.table.Store(&table{})
	if _, err := t.Reload(); err != nil {
		return nil, err
	}
	return t, nil
}

func wallMs() int64 { return time.Now().UnixMilli() }

// File is the path of the file.
func (t *Tokens) File() string { return t.file }

// Beside is none: the tokens are in one file.
func (t *Tokens) Beside() []string { return nil }

// Count is the number of tokens.
func (t *Tokens) Count() int { return len(t.table.Load().byDigest) }

// Reload reads the file again and reports whether it has changed. After an error, which
// names file and line, the tokens stay as they were.
func (t *Tokens) Reload() (changed bool, err error) {
	t.reload.Lock()
	defer t.reload.Unlock()
	text, err := yamlfile.Read(t.file)
	if err != nil {
		return false, fmt.Errorf("read tokens: %w", err)
	}
	next := &table{text: sha256.Sum256(text), byDigest: map[digest]*Principal{}}
	if next.text == t.table.Load().text {
		return false, nil
	}
	entries, err := ParseEntries(t.file, text)
	if err != nil {
		return false, fmt.Errorf("read tokens: %w", err)
	}
	for i := range entries {
		e := &entries[i]
		d, p := e.digest(), e.principal()
		p.Source = &tokenRef{tokens: t, digest: d}
		next.byDigest[d] = p
	}
	t.table.Store(next)
	return true, nil
}

// Authenticate implements Authenticator.
func (t *Tokens) Authenticate(ctx context.Context, credential string) (*Principal, *wire.Error) {
	credential, problem := wire.ParseCredential(credential)
	if problem != "" {
		return nil, wire.Refuse(wire.CodeUnauthenticated, "the token "+problem)
	}
	if leaf := certificateOf(ctx); credential == "" && leaf != nil {
		return t.ofCertificate(leaf)
	}
	if credential == "" {
		return nil, wire.Refuse(wire.CodeUnauthenticated, TokenRequired)
	}
	p := t.find(sha256.Sum256([]byte(credential)))
	if p == nil {
		return nil, wire.Refuse(wire.CodeUnauthenticated, "this server does not know the token, or it was revoked")
	}
	if p.ExpiredAt(t.nowMs()) {
		return nil, wire.Refuse(wire.CodeUnauthenticated,
			"the token expired at "+time.UnixMilli(p.ExpiresAtMs).UTC().Format(time.RFC3339)+"; ask for a new one")
	}
	return p, nil
}

// find returns the principal of a digest. The time that this takes reveals nothing about
// the tokens: nobody can choose a token whose digest is close to another one, Go seeds the
// hash of the map at random.
func (t *Tokens) find(d digest) *Principal { return t.table.Load().byDigest[d] }
