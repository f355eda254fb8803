package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/record"
)

func openForSecret(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open(Options{FS: fs, Dir: "data", Shards: 1, Log: zerolog.Nop()})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

func closeForSecret(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func TestSecretIsMadeWithTheDirectoryAndStays(t *testing.T) {
	fs := vfs.NewMem()
	s := openForSecret(t, fs)
	first := s.Secret()
	if len(first) != secretBytes || bytes.Equal(first, make([]byte, secretBytes)) {
		t.Errorf("the secret has %d bytes, all zero: %t", len(first), bytes.Equal(first, make([]byte, len(first))))
	}
	closeForSecret(t, s)
	again := openForSecret(t, fs)
	if !bytes.Equal(again.Secret(), first) {
		t.Errorf("the secret is another one after a restart")
	}
	closeForSecret(t, again)
	other := openForSecret(t, vfs.NewMem())
	if bytes.Equal(other.Secret(), first) {
		t.Errorf("two directories have one secret")
	}
	closeForSecret(t, other)
}

func TestADirectoryWithoutItsSecretIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	s := openForSecret(t, fs)
	m, err := s.readManifest()
	if err != nil {
		t.Fatal(err)
	}
	value, err := json.Marshal(creation{CreationID: m.CreationID, Shards: m.Shards})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.db.Set([]byte(record.CreationKey), value, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	closeForSecret(t, s)
	var refused *RefusedError
	if _, err := Open(Options{FS: fs, Dir: "data"}); !errors.As(err, &refused) || !strings.Contains(refused.Sentence, "secret") {
		t.Errorf("got %v", err)
	}
}
