package lease

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"codeq/internal/heap"
	"codeq/wire"
)

// Table holds the tasks in progress of one shard. One goroutine only.
type Table struct {
	entries  map[wire.TaskID]*Entry
	sessions map[wire.SessionID]*sessionList
	due      heap.Heap[Entry]
	grants   uint64
}

// New makes an empty table.
func New() *Table {
	return &Table{
		entries:  make(map[wire.TaskID]*Entry),
		sessions: make(map[wire.SessionID]*sessionList),
	}
}

// Grant takes e in, with its deadline in Unix milliseconds, above 0. It joins
// the list of the session in its Lease, if there is one. Panics if the task is
// already in progress.
func (t *Table) Grant(e *Entry, expiresAtMs int64) {
	id := e.Task.ID
	if old := t.entries[id]; old != nil {
		panic(fmt.Sprintf("lease: task %s granted as delivery %d while delivery %d is in progress",
			id, e.Lease.Delivery, old.Lease.Delivery))
	}
	if e.due.IsIn() {
		panic(fmt.Sprintf("lease: entry of task %s is in a table already (grant %d)", id, e.number))
	}
	mustBeTime(e, expiresAtMs)
	t.grants++
	e.number = t.grants
	t.entries[id] = e
	t.setDue(e, expiresAtMs)
	t.join(e, e.Lease.Session)
}

// Get is the entry of a task, nil if it is not in progress.
func (t *Table) Get(id wire.TaskID) *Entry { return t.entries[id] }

// Holds is the entry of the delivery that ref names, nil if the task is not in
// progress or is so under another token.
func (t *Table) Holds(ref wire.TaskRef) *Entry {
	e := t.entries[ref.TaskID]
	if e == nil || ref.Token.IsZero() || e.Lease.Token != ref.Token {
		return nil
	}
	return e
}

// Move gives e another deadline in Unix milliseconds, earlier or later, but none
// after the end of its run. Its place among equal deadlines stays that of its grant.
func (t *Table) Move(e *Entry, expiresAtMs int64) {
	t.mustHold(e)
	mustBeTime(e, expiresAtMs)
	t.setDue(e, e.UntilMs(expiresAtMs))
}

func (t *Table) setDue(e *Entry, atMs int64) {
	e.ExpiresAtMs = atMs
	t.due.Put(&e.due, e, heap.Key{AtMs: atMs, Tie: [2]uint64{e.number}})
}

// Run gives e the end of its run in Unix milliseconds, once.
func (t *Table) Run(e *Entry, untilMs int64) {
	t.mustHold(e)
	mustBeTime(e, untilMs)
	if e.RunUntilMs != 0 {
		panic(fmt.Sprintf("lease: the run of task %s ends at %d and begins again until %d", e.Task.ID, e.RunUntilMs, untilMs))
	}
	e.RunUntilMs = untilMs
	t.Move(e, e.ExpiresAtMs)
}

// Bind makes e a delivery of session, behind what that session has; the zero
// session is none. It sets Lease.Session. Binding it where it is changes
// nothing.
func (t *Table) Bind(e *Entry, session wire.SessionID) {
	t.mustHold(e)
	if e.Lease.Session == session {
		return
	}
	t.leave(e)
	e.Lease.Session = session
	t.join(e, session)
}

// Remove takes e out: its delivery has ended.
func (t *Table) Remove(e *Entry) {
	t.mustHold(e)
	delete(t.entries, e.Task.ID)
	t.due.Remove(&e.due)
	t.leave(e)
}

// Due is the entry with the earliest deadline if that is not after nowMs, else
// nil. Of equal deadlines the earlier grant comes first. It stays in the table.
func (t *Table) Due(nowMs int64) *Entry {
	e, atMs := t.due.Top()
	if atMs > nowMs {
		return nil
	}
	return e
}

// NextAtMs is the earliest deadline in Unix milliseconds, 0 if there is none.
func (t *Table) NextAtMs() int64 {
	_, atMs := t.due.Top()
	return atMs
}

// Len is the number of tasks in progress.
func (t *Table) Len() int { return t.due.Len() }

// OfSession appends the deliveries of a session to dst, in the order they were
// granted or bound to it. The zero session has none.
func (t *Table) OfSession(s wire.SessionID, dst []*Entry) []*Entry {
	l := t.sessions[s]
	if l == nil {
		return dst
	}
	for e := l.first; e != nil; e = e.after {
		dst = append(dst, e)
	}
	return dst
}

// CountOf is how many deliveries a session has.
func (t *Table) CountOf(s wire.SessionID) int {
	if l := t.sessions[s]; l != nil {
		return l.len
	}
	return 0
}

func (t *Table) join(e *Entry, session wire.SessionID) {
	if session.IsZero() {
		return
	}
	l := t.sessions[session]
	if l == nil {
		l = &sessionList{session: session}
		t.sessions[session] = l
	}
	l.append(e)
}

func (t *Table) leave(e *Entry) {
	l := e.list
	if l == nil {
		return
	}
	l.cut(e)
	if l.first == nil {
		delete(t.sessions, l.session)
	}
}

func (t *Table) mustHold(e *Entry) {
	if t.entries[e.Task.ID] != e {
		panic(fmt.Sprintf("lease: delivery %d of task %s is not in the table (grant %d)",
			e.Lease.Delivery, e.Task.ID, e.number))
	}
}

// mustBeTime keeps 0 free to mean "none" in NextAtMs.
func mustBeTime(e *Entry, expiresAtMs int64) {
	if expiresAtMs <= 0 {
		panic(fmt.Sprintf("lease: deadline %d for task %s", expiresAtMs, e.Task.ID))
	}
}

// DrawToken draws the token of a new delivery. It is never zero, which names
// no delivery.
func DrawToken(r *rand.ChaCha8) wire.Token {
	var token wire.Token
	for token.IsZero() {
		binary.LittleEndian.PutUint64(token[:8], r.Uint64())
		binary.LittleEndian.PutUint64(token[8:], r.Uint64())
	}
	return token
}
