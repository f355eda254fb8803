package store

import (
	"sync"

	"codeq/record"
)

// published are the counters of a span as they are in the database, in memory
// for readers on other goroutines. Counters are written again with every batch,
// so that the database has many versions of each: reading a thousand queues from
// there costs what was written lately, here it costs a thousand copies.
//
// The goroutine that applies a batch changes them, after the batch is in the database
// and before its number is published: what a reader sees here is durable when the
// barrier says so, as if it had been read there.
type published struct {
	mu       sync.RWMutex
	counters map[record.QueueKey]record.Counters
	// numbers are those of the queues that have keys. The goroutine of the shard, which
	// alone changes them, reads them without the lock.
	numbers map[record.QueueKey]queueNumber
}

// name gives a queue its number.
func (p *published) name(q record.QueueKey, number queueNumber) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.numbers[q] = number
}

// forget takes the numbers of queues away.
func (p *published) forget(queues []record.QueueKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range queues {
		delete(p.numbers, q)
	}
}

// number is that of a queue, 0 if it has none.
func (p *published) number(q record.QueueKey) uint32 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.numbers[q].n
}

// queueOf is the queue that has a number, zero if none has.
func (p *published) queueOf(n uint32) record.QueueKey {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for q, number := range p.numbers {
		if number.n == n {
			return q
		}
	}
	return record.QueueKey{}
}

// set takes over what a batch wrote; figures of zero are those of a queue that
// was forgotten.
func (p *published) set(written []QueueState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range written {
		w := &written[i]
		if w.Counters.IsZero() {
			delete(p.counters, w.Key)
			continue
		}
		p.counters[w.Key] = w.Counters
	}
}

// replace takes over what was loaded.
func (p *published) replace(queues []QueueState) {
	p.mu.Lock()
	p.counters = make(map[record.QueueKey]record.Counters, len(queues))
	p.mu.Unlock()
	p.set(queues)
}

// of are the counters of one queue, zeros if it has none.
func (p *published) of(q record.QueueKey) record.Counters {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.counters[q]
}

// fileBytes are the bytes of all files that tasks have.
func (p *published) fileBytes() (bytes int64) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, c := range p.counters {
		bytes += c.FileBytes
	}
	return bytes
}

// all are copies of the counters that somebody wants, in no order.
func (p *published) all(wanted func(q record.QueueKey, c *record.Counters) bool) []QueueState {
	p.mu.RLock()
	defer p.mu.RUnlock()
	list := make([]QueueState, 0, len(p.counters))
	for q, c := range p.counters {
		if wanted(q, &c) {
			list = append(list, QueueState{Key: q, Counters: c})
		}
	}
	return list
}
