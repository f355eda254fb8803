package lease

import (
	"codeq/store"
	"codeq/wire"
)

// Entry is one task in progress. It is made by the owner of the table and in
// its hands; the table keeps the pointer from Grant to Remove.
type Entry struct {
	// Task is the record of the task, so that a message about a task in
	// progress is answered without a read. Its ID must not change.
	Task *store.TaskRecord
	// Lease is the stored value. Session is changed by Bind only.
	Lease store.Lease
	// AckedUntilMs is the lease end last promised to the worker.
	AckedUntilMs int64
	// ExpiresAtMs is when the delivery ends if nothing is heard: AckedUntilMs,
	// or earlier while its session is gone. Only the table changes it.
	ExpiresAtMs int64
	// Confirmed means that the worker said the task arrived.
	Confirmed bool
	// Gone means that the socket of its session ended.
	Gone bool
	// PutAgain means that the stored value may have replaced another one.
	PutAgain bool
	// HasUnit means that a unit of room of the session in Lease is out for it.
	HasUnit bool

	// place is the index in the heap plus one; 0 means in no table.
	place int
	// number counts the grants of the table; it orders equal deadlines.
	number uint64
	// list is the session's list it is in, nil for none; before and after are
	// its neighbours there.
	list          *sessionList
	before, after *Entry
}

// sessionList is what one session has in hand, oldest first.
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
