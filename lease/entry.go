package lease

import (
	"cmp"

	"codeq/internal/heap"
	"codeq/record"
	"codeq/wire"
)

// Entry is one task in progress. The owner of the table makes it and may read and
// change it; the table keeps the pointer from Grant to Remove.
type Entry struct {
	// Task is the record of the task: messages about a task in progress need no read of
	// the store. Its ID must not change.
	Task *record.Task
	// Lease is the stored value. Only Bind changes its Session.
	Lease record.Lease
	// AckedUntilMs is the end that the lease last got. The end that the worker was told
	// is never after the end of its run, see Promise.
	AckedUntilMs int64
	// ExpiresAtMs is when the delivery ends if the worker sends nothing: AckedUntilMs,
	// or earlier while the socket of its session is closed, but never after RunUntilMs.
	// Only the table changes it.
	ExpiresAtMs int64
	// RunUntilMs is when the delivery ends whatever the worker sends. It is 0 before the
	// run begins, and for a run without a limit. Only the table changes it.
	RunUntilMs int64
	// Confirmed means that the worker confirmed the delivery.
	Confirmed bool
	// Gone means that the socket of its session is closed.
	Gone bool
	// PutAgain means that the store may hold more than one version of the value.
	PutAgain bool
	// HasCredit means that a credit of the session in Lease is in flight for it.
	HasCredit bool

	// due is the place in the heap of the table, none before Grant and after Remove.
	due heap.Node[Entry]
	// number counts the grants of the table; it orders equal deadlines.
	number uint64
	// list is the list of its session, nil for none; before and after are the
	// neighbours in it.
	list          *sessionList
	before, after *Entry
}

// IsRunOver reports whether the delivery ends by the end of its run.
func (e *Entry) IsRunOver() bool { return e.RunUntilMs != 0 && e.ExpiresAtMs == e.RunUntilMs }

// untilMs cuts a time in Unix milliseconds to the end of the run.
func (e *Entry) untilMs(atMs int64) int64 {
	if e.RunUntilMs == 0 {
		return atMs
	}
	return min(atMs, e.RunUntilMs)
}

// Promise is what the worker is told, in Unix milliseconds: the end of its lease, and
// the end of its run, 0 for never. Before the run begins, the end of the run counts
// from the grant, so it is too early.
func (e *Entry) Promise() (leaseUntilMs, runUntilMs int64) {
	if runUntilMs = cmp.Or(e.RunUntilMs, e.Lease.RunUntilMs); runUntilMs == 0 {
		return e.AckedUntilMs, 0
	}
	return min(e.AckedUntilMs, runUntilMs), runUntilMs
}

// sessionList is what is in flight to one session, oldest first.
type sessionList struct {
	session     wire.SessionID
	first, last *Entry
	len         int
}

func (l *sessionList) append(e *Entry) {
	e.list, e.before, e.after = l, l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.after = e
	}
	l.last = e
	l.len++
}

func (l *sessionList) cut(e *Entry) {
	l.len--
	if e.before == nil {
		l.first = e.after
	} else {
		e.before.after = e.after
	}
	if e.after == nil {
		l.last = e.before
	} else {
		e.after.before = e.before
	}
	e.list, e.before, e.after = nil, nil, nil
}
