package store

import (
	"fmt"

	"codeq/record"
)

// The numbers of queues. Keys have a number in place of the two names of a queue. A
// batch gives one to a queue of which it puts the first key, and takes the name away
// when it has deleted the counters and settings of the queue.

// queueNumber is the number of a queue, and which of the keys that keep its name there
// are once the open batch is applied.
type queueNumber struct {
	n                  uint32
	counters, settings bool
}

// loadNumbers reads the names of the queues of a span, the highest number and the
// counters and settings that are there. Load names and repairs what cannot be read.
func (sp *Span) loadNumbers() error {
	key := append(sp.view.start(), byte(record.FamilyMarks))
	_, err := sp.view.get(key, func(value []byte) error { return record.ParseMarks(value, &sp.marks) })
	if err != nil && !isDamaged(err) {
		return err
	}
	queues := map[uint32]record.QueueKey{}
	err = sp.view.scanFamily(record.FamilyNames, func(p *record.Key, value []byte) error {
		if q, err := record.ParseNames(value); err == nil {
			queues[p.Queue] = q
			sp.published.name(q, queueNumber{n: p.Queue})
		}
		sp.marks.Queues = max(sp.marks.Queues, p.Queue)
		return nil
	})
	for _, f := range []record.Family{record.FamilyCounters, record.FamilySettings} {
		if err == nil {
			err = sp.view.scanFamily(f, func(p *record.Key, _ []byte) error {
				sp.marks.Queues = max(sp.marks.Queues, p.Queue)
				if q, named := queues[p.Queue]; named {
					sp.keeps(q, f, true)
				}
				return nil
			})
		}
	}
	return err
}

// keeps notes whether a queue has counters, or settings.
func (sp *Span) keeps(q record.QueueKey, f record.Family, is bool) {
	number := sp.published.numbers[q]
	kept := &number.counters
	if f == record.FamilySettings {
		kept = &number.settings
	}
	if *kept != is {
		*kept = is
		sp.published.name(q, number)
	}
}

// number is that of a queue, which gets one if it has none. It writes through b.key.
func (b *Batch) number(q record.QueueKey) uint32 {
	if known, is := b.span.published.numbers[q]; is {
		return known.n
	}
	b.span.marks.Queues++
	n := b.span.marks.Queues
	if n == 0 {
		panic(fmt.Sprintf("store: shard %d has given all numbers of queues", b.span.shard))
	}
	b.marksDue = true
	b.nameQueue(q, n)
	return n
}

// nameQueue writes the name of a queue. Readers look for it in what they read, so
// they may see the number before the batch is applied.
func (b *Batch) nameQueue(q record.QueueKey, n uint32) {
	b.span.published.name(q, queueNumber{n: n})
	b.set(record.AppendQueue(b.start(), n, record.FamilyNames), record.AppendNames(nil, q))
}

// noteDropped notes that a queue has no counters, or no settings, any more.
func (b *Batch) noteDropped(q record.QueueKey, f record.Family) {
	if _, is := b.span.published.numbers[q]; is {
		b.span.keeps(q, f, false)
		b.maybeEmptyQueues = append(b.maybeEmptyQueues, q)
	}
}

// forgetQueues deletes the names of the queues that have neither counters nor settings
// when the batch ends. Readers lose their numbers once it is applied.
func (b *Batch) forgetQueues() {
	left := b.maybeEmptyQueues[:0]
	for _, q := range b.maybeEmptyQueues {
		number, is := b.span.published.numbers[q]
		if is && !number.counters && !number.settings {
			b.remove(record.AppendQueue(b.start(), number.n, record.FamilyNames))
			left = append(left, q)
		}
	}
	b.maybeEmptyQueues = left
}

// queueOf is the queue that has the number in a key, zero if there is none.
func (s *Store) queueOf(key []byte) record.QueueKey {
	p, err := record.ParseKey(key)
	if err != nil || p.Queue == 0 || p.Shard >= len(s.spans) {
		return record.QueueKey{}
	}
	return s.spans[p.Shard].published.queueOf(p.Queue)
}

// nameForLog says what a key is in words that may be logged.
func (s *Store) nameForLog(key []byte) string { return record.NameForLog(key, s.queueOf(key)) }

// number is that of a queue in what the view reads, 0, which is no queue's, if it has
// no key there. A snapshot may be older than the number that is known now: a name that
// it has says that the number is right, since none is given twice.
func (v *view) number(q record.QueueKey) (uint32, error) {
	if v.span == nil {
		return 0, nil
	}
	n := v.span.published.number(q)
	if n == 0 || v.newest {
		return n, nil
	}
	names, err := v.names(n)
	if err != nil || names == q {
		return n, err
	}
	n = 0
	err = v.scanFamily(record.FamilyNames, func(p *record.Key, value []byte) error {
		if names, err := record.ParseNames(value); err == nil && names == q {
			n = p.Queue
		}
		return nil
	})
	return n, err
}

// names is the queue that has a number, zero if none has.
func (v *view) names(n uint32) (q record.QueueKey, err error) {
	_, err = v.get(record.AppendQueue(v.start(), n, record.FamilyNames), func(value []byte) error {
		q, err = record.ParseNames(value)
		return err
	})
	return q, err
}

// scanFamily visits the keys of a family that can be taken apart; Check names others.
func (v *view) scanFamily(f record.Family, each func(p *record.Key, value []byte) error) error {
	prefix := append(append([]byte(nil), v.prefix...), byte(f))
	return v.scanPrefix(prefix, func(key, value []byte) (bool, error) {
		p, err := record.ParseKey(key)
		if err != nil {
			return true, nil
		}
		return true, each(&p, value)
	})
}
