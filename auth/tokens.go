package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"codeq/internal/yamlfile"
	"codeq/wire"
)

// Tokens is the Authenticator over a file of tokens. It keeps what it last
// read well; see Reload and Watch for how it gets to know a new file. Its
// methods may be called from any goroutine.
type Tokens struct {
	file  string
	nowMs func() int64

	// reload is held by whoever reads the file, so that an older reading never
	// replaces a newer one.
	reload sync.Mutex
	table  atomic.Pointer[table]
}

// table is one reading of the file; it is never changed.
type table struct {
	text     digest // of the file
	byDigest map[digest]*Principal
}

// holding ties a principal to its token, so that it can be asked later whether
// the token still stands.
type holding struct {
	tokens *Tokens
	digest digest
}

// OpenTokens reads a file of tokens. An error says what is wrong where.
func OpenTokens(file string) (*Tokens, error) {
	t := &Tokens{file: file, nowMs: func() int64 { return time.Now().UnixMilli() }}
	t.table.Store(&table{})
	if _, err := t.Reload(); err != nil {
		return nil, err
	}
	return t, nil
}

// File is the path of the file.
func (t *Tokens) File() string { return t.file }

// Count is the number of tokens.
func (t *Tokens) Count() int { return len(t.table.Load().byDigest) }

// Reload reads the file again and reports whether it is another than before.
// An error says what is wrong where; then the tokens stay as they were.
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
		var d digest
		if _, err := hex.Decode(d[:], []byte(e.SHA256)); err != nil {
			panic(fmt.Sprintf("auth: entry %d was read with a digest that is none", i))
		}
		p := e.principal()
		p.held = &holding{tokens: t, digest: d}
		next.byDigest[d] = p
	}
	t.table.Store(next)
	return true, nil
}

// Authenticate implements Authenticator.
func (t *Tokens) Authenticate(_ context.Context, credential string) (*Principal, *wire.Error) {
	credential, problem := wire.ParseCredential(credential)
	if problem != "" {
		return nil, wire.Refuse(wire.CodeUnauthenticated, "the token "+problem)
	}
	if credential == "" {
		return nil, wire.Refuse(wire.CodeUnauthenticated,
			"this server wants a token: send it as Authorization: Bearer TOKEN, or as token in the hello of a session")
	}
	p := t.find(sha256.Sum256([]byte(credential)))
	if p == nil {
		return nil, wire.Refuse(wire.CodeUnauthenticated, "the token is not one of this server's, or was taken back")
	}
	if p.ExpiredAt(t.nowMs()) {
		return nil, wire.Refuse(wire.CodeUnauthenticated,
			"the token ended at "+time.UnixMilli(p.ExpiresAtMs).UTC().Format(time.RFC3339)+"; ask for a new one")
	}
	return p, nil
}

// find looks a digest up. How long that takes says nothing about the tokens:
// whoever asks can not choose a digest to come near another one, the map is
// seeded by chance, and what it finds is compared as a whole.
func (t *Tokens) find(d digest) *Principal {
	p := t.table.Load().byDigest[d]
	if p == nil || subtle.ConstantTimeCompare(p.held.digest[:], d[:]) != 1 {
		return nil
	}
	return p
}
