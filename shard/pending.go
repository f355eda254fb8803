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
	// GiveBack undoes what the door took for one task that was not made.
	GiveBack(counted bool)
}

// Pass is what the door has taken for a new task. The zero Pass is nothing.
type Pass struct {
	Door Door
	// Counted: it has a place among the waiting tasks.
	Counted bool
}

// GiveBack undoes it.
func (p Pass) GiveBack() {
	if p.Door != nil {
		p.Door.GiveBack(p.Counted)
	}
}

// Backlog counts the tasks of a tenant that wait, for all shards. As a sink it takes
// Freed: places of tasks that wait no more, once that is durable. Any goroutine may call
// its methods, and none blocks.
type Backlog interface {
	Sink
	// Hold counts tasks that came past the door.
	Hold(tasks int64)
}

// pending is what a shard knows of the waiting tasks of a tenant.
type pending struct {
	// waiting is how many wait in this shard.
	waiting int64
	// backlog is nil until the tenant has a limit of waiting tasks. From then on it has
	// each of them.
	backlog Backlog
	// freed are places that the round has freed.
	freed int64
}

// setLimits follows the limits of a tenant.
func (s *Shard) setLimits(name string, t *tenant) {
	n := t.named.Get(record.NamedKey{Tenant: name, Kind: record.KindLimits})
	limits := n.Limits()
	t.weight = max(limits.Weight, 1)
	if limits.PendingTasks != 0 && t.backlog == nil {
		t.backlog = s.backlogOf(name)
		t.backlog.Hold(t.waiting)
	}
}

// countNew counts a new task that waits.
func (s *Shard) countNew(q *queue, p Pass) {
	if q.system {
		return
	}
	q.tenant.waiting++
	if q.tenant.backlog != nil && !p.Counted {
		q.tenant.backlog.Hold(1)
	}
}

// countMove counts a task that begins or ceases to wait. A new one was counted.
func (s *Shard) countMove(q *queue, from, to wire.Location) {
	t, waited := q.tenant, from == "" || waits(from)
	switch {
	case q.system || waited == waits(to):
	case !waited:
		t.waiting++
		if t.backlog != nil {
			t.backlog.Hold(1)
		}
	default:
		t.waiting--
		if t.backlog == nil {
			return
		}
		if t.freed == 0 {
			s.lessPending = append(s.lessPending, t)
		}
		t.freed++
	}
}

// freePending tells the doors which tasks wait no more.
func (s *Shard) freePending() {
	for _, t := range s.lessPending {
		s.tell(t.backlog, &Freed{Places: int(t.freed)})
		t.freed = 0
	}
	clear(s.lessPending)
	s.lessPending = s.lessPending[:0]
}
