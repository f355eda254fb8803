package store

import (
	"context"
	"fmt"
)

// Flush writes what has been applied from memory into tables and returns when
// that is durable. Synced is told nothing by it. Pebble does the same by itself
// when its memory is full; a simulator wants to say when. Any goroutine.
func (s *Store) Flush() error {
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// Compact merges all tables, which Pebble does by itself unless automatic
// compactions are off. Any goroutine.
func (s *Store) Compact(ctx context.Context) error {
	lower := []byte{0}
	if err := s.db.Compact(ctx, lower, []byte{0xff}, false); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	return nil
}
