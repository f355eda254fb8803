package store

import (
	"encoding/json"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// EachKey visits every key of the database in one snapshot, in order. Key and value are
// valid during the call only. A file that cannot be read is a *RefusedError that names
// the last key before it. Any goroutine.
func (s *Store) EachKey(visit func(key, value []byte)) error {
	var last []byte
	err := s.atOneMoment(func(snapshot *pebble.Snapshot) error {
		v := view{reader: snapshot}
		return v.scan(nil, nil, func(key, value []byte) (bool, error) {
			last = append(last[:0], key...)
			visit(key, value)
			return true, nil
		})
	})
	if pebble.IsCorruptionError(err) {
		err = s.refuseDamaged(last, err)
	}
	return err
}

// IsCreation reports whether a value can stand under record.CreationKey.
func (s *Store) IsCreation(value []byte) bool {
	var c creation
	return json.Unmarshal(value, &c) == nil && c.Shards == s.shards
}

// Change is a key and its new value, nil to delete it.
type Change struct{ Key, Value []byte }

// Rewrite makes changes in one durable batch. Nothing else may use the store meanwhile,
// nor after it: the spans do not know of them.
func (s *Store) Rewrite(changes []Change) error {
	batch := s.db.NewBatch()
	for _, c := range changes {
		var err error
		if c.Value == nil {
			err = batch.Delete(c.Key, nil)
		} else {
			err = batch.Set(c.Key, c.Value, nil)
		}
		if err != nil {
			return fmt.Errorf("write into a batch: %w", err)
		}
	}
	if err := batch.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if err := batch.Close(); err != nil {
		return fmt.Errorf("close batch: %w", err)
	}
	return nil
}
