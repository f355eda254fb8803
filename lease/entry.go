package lease

import (
	"cmp"

	"codeq/internal/heap"
	"codeq/record"
	"codeq/wire"
)

// Entry is one delivery: a task in progress with its lease. The owner of the table makes
// and keeps it; the table has the pointer from Grant to Remove.
type Entry struct {
	// Task is the record of the task, so that a message about a task in
	// progress is answered without a read. Its ID must not change.
	Task *record.Task
	// Lease is the stored value. Session is changed by Bind only.
	Lease record.Lease
	// AckedUntilMs is the end that the lease last got. What the worker was promised
	// ends with its run, see Promise.
	AckedUntilMs int64
	// ExpiresAtMs is when the delivery ends if nothing is heard: AckedUntilMs, or
	// earlier while its session is gone, but never after RunUntilMs. Only the table
	// changes it.
	ExpiresAtMs int64
	// RunUntilMs is when the delivery ends whatever is heard, 0 as long as it has not
	// begun to run or may run as long as its lease is extended. Only the table
	// changes it.
	RunUntilMs int64
	// Confirmed means that the worker said the task arrived.
	Confirmed bool
	// Gone means that the socket of its session ended.
	Gone bool
	// PutAgain means that the stored value may have replaced another one.
	PutAgain bool
	// HasCredit means that a credit of the session in Lease is in flight for it.
	HasCredit bool
	// SavedAtMs is when a report was last written with Lease, 0 for never; SaveAtMs is when one
	// that was not written is due, 0 for none. Unix milliseconds.
	SavedAtMs, SaveAtMs int64

	// due is the place in the heap of the table, none before Grant and after Remove.
	due heap.Node[Entry]
	// number counts the grants of the table; it orders equal deadlines.
	number uint64
	// list is the session's list it is in, nil for none; before and after are
	// its neighbours there.
	list          *sessionList
	before, after *Entry
}

// IsRunOver says that the delivery ends because its run does.
func (e *Entry) IsRunOver() bool { return e.RunUntilMs != 0 && e.ExpiresAtMs == e.RunUntilMs }

// UntilMs cuts a time in Unix milliseconds to the end of the run.
func (e *Entry) UntilMs(atMs int64) int64 {
	if e.RunUntilMs == 0 {
		return atMs
	}
	return min(atMs, e.RunUntilMs)
}

// Promise is what the worker may count on, in Unix milliseconds: until when it has
// the lease, and when its run ends, 0 for never. Before the run has begun that is
// counted from the grant, so it comes too early.
func (e *Entry) Promise() (leaseUntilMs, runUntilMs int64) {
	if runUntilMs = cmp.Or(e.RunUntilMs, e.Lease.RunUntilMs); runUntilMs == 0 {
		return e.AckedUntilMs, 0
	}
	return min(e.AckedUntilMs, runUntilMs), runUntilMs
}

// sessionList are the deliveries of one session, oldest first.
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
