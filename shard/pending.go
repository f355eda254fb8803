package shard

import (
	"codeq/record"
	"codeq/wire"
)

// The limits of a tenant are taken at the door, before a message is posted. What waits
// counts over all shards in one word: the door takes a place for a new task, and the
// shard gives it back when the task leaves the waiting ones. A task that comes back,
// between retries for example, takes a place whatever the limit is. Tasks of system
// queues do not count.

// Door is where the limits of a tenant are taken. Its methods may be called from any
// goroutine, and none blocks.
type Door interface {
	// GiveBack undoes what the door took for one task that was not made, whose payload has
	// so many bytes.
	GiveBack(counted bool, bytes int)
}

// Pass is what the door has taken for a new task. The zero Pass is nothing.
type Pass struct {
	Door Door
	// Counted: it has a place among the waiting tasks.
	Counted bool
}

// GiveBack undoes what the door has taken for a task that is not made.
func (m *Enqueue) GiveBack() {
	if m.Door != nil {
		m.Door.GiveBack(m.Counted, len(m.Payload))
	}
}

// Backlog counts the tasks of a tenant that wait, for all shards. As a sink it takes
// Freed: places of tasks that wait no more, and files that no task has any more, once that is
// durable. Any goroutine may call its methods, and none blocks.
type Backlog interface {
	Sink
	// Hold counts tasks that came past the door, and the bytes of their payloads.
	Hold(tasks, bytes int64)
	// HoldFiles counts the bytes of files that tasks have.
	HoldFiles(bytes int64)
}

// pending is what a shard knows of the waiting tasks of a tenant.
type pending struct {
	// waiting is how many wait in this shard, bytes are those of their payloads.
	waiting, bytes int64
	// fileBytes are those of the files that its tasks in this shard have.
	fileBytes int64
	// backlog is nil until the tenant has a limit of waiting tasks or of files. From then on it
	// has each of them.
	backlog Backlog
	// freed is what the round has freed.
	freed Freed
}

// setLimits follows the limits of a tenant.
func (s *Shard) setLimits(name string, t *tenant) {
	n := t.named.Get(record.NamedKey{Tenant: name, Kind: record.KindLimits})
	limits := n.Limits()
	t.weight = max(limits.Weight, 1)
	if (limits.CountsPending() || limits.ArtifactBytes != 0) && t.backlog == nil {
		t.backlog = s.backlogOf(name)
		t.backlog.Hold(t.waiting, t.bytes)
		t.backlog.HoldFiles(t.fileBytes)
	}
}

// countMove counts a task with a payload of so many bytes that begins or ceases to wait.
// It runs before the task leaves the order it is in. The bytes of one that cannot be read
// are not known: they go with the last task of the queue that waits. A new task that ends
// at once has waited in between. held: the door has counted it.
func (s *Shard) countMove(q *queue, from, to wire.Location, bytes int64, held bool) {
	isNew := from == ""
	if isNew {
		s.beginsToWait(q, bytes, held)
		from = wire.LocationPending
	}
	switch {
	case waits(from) == waits(to):
	case waits(to):
		s.beginsToWait(q, bytes, false)
	default:
		if tasks, all := q.index.Waiting(); tasks == 1 && !isNew {
			bytes = all
		}
		s.ceasesToWait(q, bytes)
	}
}

func (s *Shard) beginsToWait(q *queue, bytes int64, held bool) {
	q.index.AddWaitingBytes(bytes)
	if t := q.tenant; !q.system {
		t.waiting++
		t.bytes += bytes
		if t.backlog != nil && !held {
			t.backlog.Hold(1, bytes)
		}
	}
}

func (s *Shard) ceasesToWait(q *queue, bytes int64) {
	q.index.AddWaitingBytes(-bytes)
	t := q.tenant
	if q.system {
		return
	}
	t.waiting--
	t.bytes -= bytes
	if t.backlog == nil {
		return
	}
	s.frees(t)
	t.freed.Places++
	t.freed.Bytes += bytes
}

// frees notes a tenant of which the round frees something.
func (s *Shard) frees(t *tenant) {
	if t.freed == (Freed{}) {
		s.lessPending = append(s.lessPending, t)
	}
}

// freePending tells the doors which tasks wait no more, and of files that are gone.
func (s *Shard) freePending() {
	for _, t := range s.lessPending {
		freed := t.freed
		s.tell(t.backlog, &freed)
		t.freed = Freed{}
	}
	clear(s.lessPending)
	s.lessPending = s.lessPending[:0]
}
