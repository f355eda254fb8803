package store

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
	"codeq/wire"
)

// secretBytes is the length of the secret of a data directory.
const secretBytes = 32

// Secret is what only this data directory knows, for keys that must be good
// after a restart and nowhere else. It must not be logged nor told.
func (s *Store) Secret() []byte { return slices.Clone(s.secret) }

// CreationID is drawn when a data directory is made. Numbers of events are good only together
// with it. Any goroutine.
func (s *Store) CreationID() string { return s.creationID }

// newCreation draws the secret of the directory and is the value that is to be
// stored with it.
func (s *Store) newCreation(m *manifest) ([]byte, error) {
	s.secret, s.creationID = make([]byte, secretBytes), m.CreationID
	if _, err := io.ReadFull(s.options.Random, s.secret); err != nil {
		return nil, fmt.Errorf("draw secret: %w", err)
	}
	return s.creationOf(m.Shards)
}

func (s *Store) creationOf(shards int) ([]byte, error) {
	value, err := json.Marshal(creation{CreationID: s.creationID, Shards: shards, Secret: s.secret})
	if err != nil {
		return nil, fmt.Errorf("write creation id: %w", err)
	}
	return value, nil
}

func (s *Store) drawCreationID() (string, error) {
	var random [10]byte
	if _, err := io.ReadFull(s.options.Random, random[:]); err != nil {
		return "", fmt.Errorf("draw creation id: %w", err)
	}
	return wire.TaskID(wire.NewUUIDv7(time.Now().UnixMilli(), random)).String(), nil
}

// ChangeCreationID draws another creation id, which is that of the directory when Join has returned: until
// then it can be opened no more.
func (s *Store) ChangeCreationID() (err error) {
	if s.creationID, err = s.drawCreationID(); err != nil {
		return err
	}
	value, err := s.creationOf(s.shards)
	if err != nil {
		return err
	}
	if err := s.db.Set([]byte(record.CreationKey), value, pebble.Sync); err != nil {
		return fmt.Errorf("write creation id: %w", err)
	}
	return s.Flush()
}
