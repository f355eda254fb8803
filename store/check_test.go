package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
)

func TestCheckMayRunWhileShardsWrite(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	var writing sync.WaitGroup
	var written atomic.Bool
	writing.Go(func() {
		defer written.Store(true)
		p := plantIn(s, 0)
		for n := range 50 {
			p.garden(t, record.QueueKey{Command: fmt.Sprint("c", n), Tenant: "t"})
		}
	})
	for !written.Load() {
		mustFindNothing(t, s)
	}
	writing.Wait()
	mustFindNothing(t, s)
}

func pendingKeyOf(r *record.Task) []byte {
	return spanKey(record.Key{Family: record.FamilyPending, Queue: 1, Priority: r.Priority, Seq: r.Seq, ID: r.ID})
}

func recount(f func(*record.Counters)) func(t *testing.T, s *Store, g garden) {
	return func(t *testing.T, s *Store, g garden) {
		t.Helper()
		c, err := s.Span(0).recount(g.queue)
		if err != nil {
			t.Fatal(err)
		}
		f(&c)
		tamper(t, s, spanKey(record.Key{Family: record.FamilyCounters, Queue: 1}), string(record.AppendCounters(nil, &c)))
	}
}

func putSettings(t *testing.T, s *Store, shard int, q record.QueueKey, settings record.Settings) {
	t.Helper()
	s.Span(shard).Batch().PutSettings(q, &settings)
	apply(t, s.Span(shard))
}
