package store

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// secretBytes is the length of the secret of a data directory.
const secretBytes = 32

// Secret is what only this data directory knows, for keys that must be good
// after a restart and nowhere else. It must not be logged nor told.
func (s *Store) Secret() []byte { return slices.Clone(s.secret) }

// newCreation draws the secret of the directory and is the value that is to be
// stored with it.
func (s *Store) newCreation(m *manifest) ([]byte, error) {
	s.secret = make([]byte, secretBytes)
	if _, err := io.ReadFull(s.options.Random, s.secret); err != nil {
		return nil, fmt.Errorf("draw secret: %w", err)
	}
	value, err := json.Marshal(creation{CreationID: m.CreationID, Shards: m.Shards, Secret: s.secret})
	if err != nil {
		return nil, fmt.Errorf("write creation id: %w", err)
	}
	return value, nil
}
