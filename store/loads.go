package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"codeq/wire"
)

// ReadAllQueues are the figures of the queues of all tenants that have a task
// waiting, in progress or dead, summed over the shards, by command and tenant.
// It serves whoever watches the server: nothing in it needs to be durable. It
// costs a key for each queue and shard and one more for each priority that has
// ready tasks, and no other. Any goroutine.
func (s *Store) ReadAllQueues() ([]wire.QueueFigures, error) {
	return s.readLoads(&loads{})
}

func (s *Store) readLoads(l *loads) ([]wire.QueueFigures, error) {
	l.shards, l.places = s.shards, make(map[QueueKey]int)
	err := s.atOneMoment(func(snapshot *pebble.Snapshot) error {
		l.snapshot = snapshot
		for shard := range s.shards {
			if err := l.addShard(shard); err != nil {
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

// pendingTailBytes is what a pending key has behind its priority.
const pendingTailBytes = 8 + len(wire.TaskID{})

// loads sums figures over shards.
type loads struct {
	// tenant is whose queues are read; "" is everybody's.
	tenant string
	// idle reads queues that only have ended tasks, and the settings of all.
	idle bool

	snapshot *pebble.Snapshot
	shards   int
	list     []wire.QueueFigures
	places   map[QueueKey]int
}

// addShard walks the counters of a shard with one iterator and, beside it, the
// heads of the queues with another: both in the same order, so that the second
// one only ever goes forward.
func (l *loads) addShard(shard int) error {
	v := view{reader: l.snapshot, prefix: appendSpan(nil, shard)}
	prefix := append(slices.Clone(v.prefix), wordCounters...)
	err := v.withHeads(func(heads *pebble.Iterator) error {
		return v.scanPrefix(prefix, func(key, value []byte) (bool, error) {
			return true, l.add(&v, heads, key, value)
		})
	})
	if err != nil || !l.idle {
		return err
	}
	return v.eachSettings(shard, l.shards, func(q QueueKey, set *Settings) {
		if l.isFor(q) {
			f := l.figuresOf(q)
			f.Paused, f.Settings = set.Paused, set.QueueSettings
		}
	})
}

func (l *loads) isFor(q QueueKey) bool { return l.tenant == "" || l.tenant == q.Tenant }

// withHeads opens an iterator over the span.
func (v *view) withHeads(use func(heads *pebble.Iterator) error) error {
	heads, err := v.reader.NewIter(&pebble.IterOptions{LowerBound: v.prefix, UpperBound: upperBound(v.prefix)})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	err = use(heads)
	if closeErr := heads.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("scan: %w", closeErr)
	}
	return err
}

// add is one queue of one shard.
func (l *loads) add(v *view, heads *pebble.Iterator, key, value []byte) error {
	p, err := parseKey(key)
	if err == nil && !l.isFor(p.Queue) {
		return nil
	}
	var c Counters
	if err == nil {
		err = parseCounters(value, &c)
	}
	if err != nil {
		return &DamagedError{Key: slices.Clone(key), Err: err}
	}
	ready := c.ReadyTotal()
	if !l.idle && ready == 0 && c.Delayed == 0 && c.InProgress == 0 && c.Dead == 0 {
		return nil
	}
	return sumUp(v, heads, p.Queue, &c, l.figuresOf(p.Queue))
}

// sumUp adds what a shard's counters say of a queue, and looks at the head of
// each priority that has one.
func sumUp(v *view, heads *pebble.Iterator, q QueueKey, c *Counters, f *wire.QueueFigures) error {
	f.Ready += c.ReadyTotal()
	f.Delayed += c.Delayed
	f.InProgress += c.InProgress
	f.Dead += c.Dead
	for priority := Priorities - 1; priority >= 0; priority-- { // the order of the keys
		if c.Ready[priority] == 0 {
			continue
		}
		v.key = appendPendingKey(v.start(), q, priority, PendingKey{Seq: c.ReadyFloor[priority]})
		if err := noteHead(heads, v.key, len(v.key)-pendingTailBytes, f); err != nil {
			return err
		}
	}
	return nil
}

func (l *loads) figuresOf(q QueueKey) *wire.QueueFigures {
	place, known := l.places[q]
	if !known {
		place = len(l.list)
		l.places[q] = place
		l.list = append(l.list, wire.QueueFigures{Command: q.Command, TenantID: q.Tenant})
	}
	return &l.list[place]
}

// noteHead looks at the first key from lower on, if it still has the first
// prefixBytes of it.
func noteHead(heads *pebble.Iterator, lower []byte, prefixBytes int, f *wire.QueueFigures) error {
	if !heads.SeekGE(lower) || string(heads.Key()[:min(prefixBytes, len(heads.Key()))]) != string(lower[:prefixBytes]) {
		if err := heads.Error(); err != nil {
			return fmt.Errorf("scan at %s: %w", nameForLog(lower), err)
		}
		return nil
	}
	value, err := heads.ValueAndErr()
	if err != nil {
		return fmt.Errorf("scan at %s: %w", nameForLog(heads.Key()), err)
	}
	atMs, err := parseReadyAt(value)
	if err != nil {
		return &DamagedError{Key: slices.Clone(heads.Key()), Err: err}
	}
	if f.OldestReadyAtMs == 0 || atMs < f.OldestReadyAtMs {
		f.OldestReadyAtMs = atMs
	}
	return nil
}
