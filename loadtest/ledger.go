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
	// ackedID and givenID are the random half of the task's id, as it was
	// acknowledged and as it was first delivered; 0 means not yet.
	ackedID, givenID atomic.Uint64
	marks            atomic.Uint32
	owner            uint32
}

// The marks of an entry: three flags and two counters.
const (
	markAcked uint32 = 1 << iota
	markRefused
	markAltered
	oneGiven     uint32 = 1 << 8
	oneCompleted uint32 = 1 << 20
	counterMask  uint32 = 1<<12 - 1
)

func given(marks uint32) uint32     { return marks / oneGiven & counterMask }
func completed(marks uint32) uint32 { return marks / oneCompleted & counterMask }

type chunk [chunkEntries]entry

// ledger holds every task of a run, by its number. All methods may be called
// from any goroutine.
type ledger struct {
	next   atomic.Uint64
	chunks [maxChunks]atomic.Pointer[chunk]
	// strangers are deliveries that no posted task explains.
	strangers atomic.Int64
}

// open takes count numbers in a row for tasks that are about to be posted.
func (l *ledger) open(count int, owner uint32, sentNs int64) (first uint64) {
	first = l.next.Add(uint64(count)) - uint64(count)
	for n := first; n < first+uint64(count); n++ {
		e := l.place(n)
		e.sentNs, e.owner = sentNs, owner
	}
	return first
}

func (l *ledger) place(n uint64) *entry {
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

// find is the entry of a number that was opened, nil for any other.
func (l *ledger) find(n uint64) *entry {
	if n >= l.next.Load() {
		return nil
	}
	return l.place(n)
}

func randomHalf(id wire.TaskID) uint64 { return binary.BigEndian.Uint64(id[8:]) }

// acked notes that the server took the task on, under that id.
func (e *entry) acked(id wire.TaskID) {
	e.ackedID.Store(randomHalf(id))
	e.marks.Or(markAcked)
}

// refused notes that the server did not take the task on.
func (e *entry) refused() { e.marks.Or(markRefused) }

// given notes a delivery.
func (e *entry) given(id wire.TaskID, intact bool) {
	half := randomHalf(id)
	first := e.givenID.CompareAndSwap(0, half)
	e.marks.Add(oneGiven)
	if !intact || !first && e.givenID.Load() != half {
		e.marks.Or(markAltered)
	}
}

// completed notes that the server acknowledged a result.
func (e *entry) completed() { e.marks.Add(oneCompleted) }

// Verdict says what became of the tasks of a run. It holds when every task
// that was acknowledged was completed exactly once, with its own payload.
type Verdict struct {
	// Created tasks were acknowledged, Refused ones not taken on.
	Created, Refused int64
	// Unanswered tasks were posted and nothing was heard of them.
	Unanswered int64
	// Completed tasks have at least one acknowledged result.
	Completed int64
	// Lost tasks were acknowledged and not completed.
	Lost int64
	// Duplicated tasks were delivered or completed more than once.
	Duplicated int64
	// Altered tasks arrived with other bytes, or under another id, than posted.
	Altered int64
	// Strangers are deliveries of tasks that were refused or never posted.
	Strangers int64
}

// Holds reports that no rule was broken.
func (v *Verdict) Holds() bool {
	return v.Lost == 0 && v.Duplicated == 0 && v.Altered == 0 && v.Strangers == 0 && v.Unanswered == 0
}

// judge looks at every task. Nothing may be under way any more.
func (l *ledger) judge() Verdict {
	v := Verdict{Strangers: l.strangers.Load()}
	for n := range l.next.Load() {
		v.count(l.place(n))
	}
	return v
}

func (v *Verdict) count(e *entry) {
	marks := e.marks.Load()
	if completed(marks) > 0 {
		v.Completed++
	}
	if given(marks) > 1 || completed(marks) > 1 {
		v.Duplicated++
	}
	isAcked := marks&markAcked != 0
	elsewhere := isAcked && given(marks) > 0 && e.ackedID.Load() != e.givenID.Load()
	if marks&markAltered != 0 || elsewhere {
		v.Altered++
	}
	switch {
	case isAcked:
		v.Created++
		if completed(marks) == 0 {
			v.Lost++
		}
	case marks&markRefused != 0:
		v.Refused++
		if given(marks) > 0 {
			v.Strangers++
		}
	default:
		v.Unanswered++
	}
}
