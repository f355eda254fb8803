package loadtest

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"codeq/wire"
)

const (
	chunkEntries = 1 << 14
	maxChunks    = 1 << 15
)

// entry is what is known of one task. sentNs and owner are written before the
// task leaves; the rest is atomic, because answers and deliveries of one task
// reach different goroutines.
type entry struct {
	sentNs int64
	// ackedID and deliveredID are the random half of the task's id, as it was
	// acknowledged and as it was first delivered; 0 means not yet.
	ackedID, deliveredID atomic.Uint64
	marks                atomic.Uint32
	owner                uint32
}

// The marks of an entry: three flags and two counters.
const (
	markAcked uint32 = 1 << iota
	markRefused
	markAltered
	oneDelivery   uint32 = 1 << 8
	oneCompletion uint32 = 1 << 20
	counterMask   uint32 = 1<<12 - 1
)

func deliveries(marks uint32) uint32  { return marks / oneDelivery & counterMask }
func completions(marks uint32) uint32 { return marks / oneCompletion & counterMask }

type chunk [chunkEntries]entry

// ledger holds every task of a run, by its number. All methods may be called
// from any goroutine.
type ledger struct {
	next   atomic.Uint64
	chunks [maxChunks]atomic.Pointer[chunk]
	// strangers are deliveries that no posted task explains.
	strangers atomic.Int64
}

// open reserves count consecutive numbers for tasks that are about to be posted.
func (l *ledger) open(count int, owner uint32, sentNs int64) (first uint64) {
	first = l.next.Add(uint64(count)) - uint64(count)
	for n := first; n < first+uint64(count); n++ {
		e := l.entry(n)
		e.sentNs, e.owner = sentNs, owner
	}
	return first
}

func (l *ledger) entry(n uint64) *entry {
	if n/chunkEntries >= maxChunks {
		panic(fmt.Sprintf("a run of more than %d tasks", maxChunks*chunkEntries))
	}
	at := &l.chunks[n/chunkEntries]
	c := at.Load()
	if c == nil {
		at.CompareAndSwap(nil, new(chunk))
		c = at.Load()
	}
	return &c[n%chunkEntries]
}

// find is the entry of a number that was opened, nil for another.
func (l *ledger) find(n uint64) *entry {
	if n >= l.next.Load() {
		return nil
	}
	return l.entry(n)
}

func randomHalf(id wire.TaskID) uint64 { return binary.BigEndian.Uint64(id[8:]) }

// acked records that the server accepted the task under that id.
func (e *entry) acked(id wire.TaskID) {
	e.ackedID.Store(randomHalf(id))
	e.marks.Or(markAcked)
}

// refused records that the server did not accept the task.
func (e *entry) refused() { e.marks.Or(markRefused) }

// delivered records a delivery.
func (e *entry) delivered(id wire.TaskID, intact bool) {
	half := randomHalf(id)
	first := e.deliveredID.CompareAndSwap(0, half)
	e.marks.Add(oneDelivery)
	if !intact || !first && e.deliveredID.Load() != half {
		e.marks.Or(markAltered)
	}
}

// completed records that the server acknowledged a result.
func (e *entry) completed() { e.marks.Add(oneCompletion) }

// Verdict says what became of the tasks of a run. It holds when every task
// that was acknowledged was completed exactly once, with its own payload.
type Verdict struct {
	// Created tasks were acknowledged, Refused ones not accepted.
	Created int64 `json:"created"`
	Refused int64 `json:"refused"`
	// Unanswered tasks were posted and got no answer.
	Unanswered int64 `json:"unanswered"`
	// Completed tasks have at least one acknowledged result.
	Completed int64 `json:"completed"`
	// Lost tasks were acknowledged and not completed.
	Lost int64 `json:"lost"`
	// Duplicated tasks were delivered or completed more than once.
	Duplicated int64 `json:"duplicated"`
	// Altered tasks arrived with other bytes, or under another id, than posted.
	Altered int64 `json:"altered"`
	// Strangers are deliveries of tasks that were refused or never posted.
	Strangers int64 `json:"strangers"`
}

// Holds reports that no rule was broken.
func (v *Verdict) Holds() bool {
	return v.Lost == 0 && v.Duplicated == 0 && v.Altered == 0 && v.Strangers == 0 && v.Unanswered == 0
}

// verdict counts every task. Call it when no task is in flight.
func (l *ledger) verdict() Verdict {
	v := Verdict{Strangers: l.strangers.Load()}
	for n := range l.next.Load() {
		v.count(l.entry(n))
	}
	return v
}

func (v *Verdict) count(e *entry) {
	marks := e.marks.Load()
	if completions(marks) > 0 {
		v.Completed++
	}
	if deliveries(marks) > 1 || completions(marks) > 1 {
		v.Duplicated++
	}
	isAcked := marks&markAcked != 0
	elsewhere := isAcked && deliveries(marks) > 0 && e.ackedID.Load() != e.deliveredID.Load()
	if marks&markAltered != 0 || elsewhere {
		v.Altered++
	}
	switch {
	case isAcked:
		v.Created++
		if completions(marks) == 0 {
			v.Lost++
		}
	case marks&markRefused != 0:
		v.Refused++
		if deliveries(marks) > 0 {
			v.Strangers++
		}
	default:
		v.Unanswered++
	}
}
