package store

import (
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
	"codeq/wire"
)

// ReadAllQueues are the figures of the queues of all tenants that have a task
// waiting, in progress or dead, summed over the shards, by command and tenant.
// It serves whoever watches the server: nothing in it needs to be durable. It
// costs a copy for each queue and shard, however many tasks wait. Any goroutine,
// once the spans are loaded.
func (s *Store) ReadAllQueues() ([]wire.QueueFigures, error) {
	return s.readLoads(&loads{})
}

// QueuesWithEnded are the queues of a shard that have ended tasks, of those that
// are wanted, by command and tenant. Any goroutine, once the spans are loaded.
func (s *Store) QueuesWithEnded(shard int, wanted func(q record.QueueKey) bool) []record.QueueKey {
	found := s.spans[shard].published.all(func(q record.QueueKey, c *record.Counters) bool {
		return (c.Done > 0 || c.Dead > 0) && wanted(q)
	})
	keys := make([]record.QueueKey, len(found))
	for i := range found {
		keys[i] = found[i].Key
	}
	slices.SortFunc(keys, record.QueueKey.Compare)
	return keys
}

func (s *Store) readLoads(l *loads) ([]wire.QueueFigures, error) {
	l.shards, l.places = s.shards, make(map[record.QueueKey]int)
	err := s.atOneMoment(func(snapshot *pebble.Snapshot) error {
		l.snapshot = snapshot
		for shard := range s.shards {
			if err := l.addShard(s, shard); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(l.list, func(a, b wire.QueueFigures) int {
		if a.Command != b.Command {
			return strings.Compare(a.Command, b.Command)
		}
		return strings.Compare(a.TenantID, b.TenantID)
	})
	return l.list, nil
}

// loads sums figures over shards.
type loads struct {
	// tenant is whose queues are read; "" is everybody's.
	tenant string
	// idle reads queues that only have ended tasks, and the settings of all.
	idle bool

	snapshot *pebble.Snapshot
	shards   int
	list     []wire.QueueFigures
	places   map[record.QueueKey]int
}

// addShard adds up the queues of a shard.
func (l *loads) addShard(s *Store, shard int) (err error) {
	v := s.viewOf(l.snapshot, shard)
	heads := heads{view: &v}
	queues := s.spans[shard].published.all(l.wants)
	for i := range queues {
		q := &queues[i]
		if err = heads.sumUp(q.Key, &q.Counters, l.figuresOf(q.Key)); err != nil {
			break
		}
	}
	if closeErr := heads.close(); err == nil {
		err = closeErr
	}
	if err != nil || !l.idle {
		return err
	}
	return v.eachSettings(shard, l.shards, func(q record.QueueKey, set *record.Settings) {
		if l.isFor(q) {
			show(set, l.figuresOf(q))
		}
	})
}

func (l *loads) isFor(q record.QueueKey) bool { return l.tenant == "" || l.tenant == q.Tenant }

// wants says whether the counters of a queue are added.
func (l *loads) wants(q record.QueueKey, c *record.Counters) bool {
	busy := c.ReadyTotal() > 0 || c.Delayed > 0 || c.InProgress > 0 || c.Dead > 0
	return l.isFor(q) && (l.idle || busy)
}

// sumUp adds what a shard's counters say of a queue.
func (h *heads) sumUp(q record.QueueKey, c *record.Counters, f *wire.QueueFigures) error {
	f.Ready += c.ReadyTotal()
	f.Delayed += c.Delayed
	f.InProgress += c.InProgress
	f.Dead += c.Dead
	f.Ended += c.Done
	for cause, n := range c.DeadBy {
		f.DeadBy[cause] += n
	}
	for priority := record.Priorities - 1; priority >= 0; priority-- { // the order of the keys
		if c.Ready[priority] == 0 {
			continue
		}
		sinceMs := c.ReadySinceMs[priority]
		if sinceMs == 0 {
			var err error
			if sinceMs, err = h.readySince(q, priority, c.ReadyWatermark[priority]); err != nil {
				return err
			}
		}
		if sinceMs != 0 && (f.OldestReadyAtMs == 0 || sinceMs < f.OldestReadyAtMs) {
			f.OldestReadyAtMs = sinceMs
		}
	}
	return nil
}

func (l *loads) figuresOf(q record.QueueKey) *wire.QueueFigures {
	place, known := l.places[q]
	if !known {
		place = len(l.list)
		l.places[q] = place
		l.list = append(l.list, wire.QueueFigures{Command: q.Command, TenantID: q.Tenant})
	}
	return &l.list[place]
}
