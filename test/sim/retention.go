package sim

import (
	"cmp"
	"slices"

	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// keeps is how long a task that has ended stays, 0 for ever.
func (m *model) keeps(t *task) int64 {
	set := m.settings.of(t)
	if t.place != wire.LocationDead {
		return cmp.Or(set.RetentionSeconds*1000, m.retention.DoneForMs)
	}
	if keep := cmp.Or(set.DLQRetentionSeconds*1000, m.retention.DeadForMs); keep != 0 || t.cause != wire.DeadFailed {
		return keep
	}
	return failedMs
}

// tooMany reports whether a letter that failed for good is one more than are kept
// of its queue: the oldest of those that its shard has.
func (m *model) tooMany(t *task) bool {
	if t.cause != wire.DeadFailed || t.removed || m.settings.of(t).DLQRetentionSeconds != 0 {
		return false
	}
	left := 0
	for _, other := range m.all {
		if other.cause != wire.DeadFailed || other.removed || other.shard != t.shard || other.queue() != t.queue() {
			continue
		}
		if left++; other.result.CompletedAtMs < t.result.CompletedAtMs {
			return false
		}
	}
	return left > m.limits.Failed
}

// reaped judges which ended tasks a round removed. In which order is not
// promised, nor how many at once.
func (m *model) removing() {
	for m.at.event < len(m.at.Outcome.Events) {
		e := m.peek()
		t := m.tasks[e.TaskID]
		if t != nil && e.Cause == record.CauseDelete && !t.open() {
			m.goesWithQueue()
			continue
		}
		if !slices.Contains([]record.Cause{record.CauseRetention, record.CauseCleanup, record.CauseBound}, e.Cause) || t == nil {
			break
		}
		keep := m.keeps(t)
		if e.Cause == record.CauseCleanup {
			m.cleaned(t)
		} else if e.Cause == record.CauseBound {
			if !m.tooMany(t) {
				violate("ended tasks stay as long as promised", "%+v is not the oldest of too many that failed", t)
			}
		} else if t.open() || t.removed || keep == 0 || t.result.CompletedAtMs+keep > m.at.NowMs {
			violate("ended tasks stay as long as promised", "%+v, kept for %d ms, removed at %d", t, keep, m.at.NowMs)
		}
		from := t.place
		m.touch(t)
		t.place, t.removed = "", true
		m.moved(t, from, e.Cause)
	}
	m.cleanedAll()
}

// expiryLateMs is how much later than its time an ended task may go, as those of a
// while go together.
const expiryLateMs = 200

// leavesInTime says that an ended task goes when its time is over, in slices
// that follow one another at once.
func (w *world) leavesInTime(t *task) {
	if t.open() || t.removed {
		return
	}
	if w.server.wakeAtMs[t.shard] > w.nowMs+expiryLateMs && w.model.tooMany(t) {
		violate("no more failed letters than are kept", "task %v is one of too many", t.id)
	}
	keep := w.model.keeps(t)
	due := t.result.CompletedAtMs + keep
	if keep > 0 && due <= w.nowMs && w.server.wakeAtMs[t.shard] > max(w.nowMs+1, due+expiryLateMs) {
		violate("what is due happens", "task %v ended at %d and stays for %d ms, it is %d", t.id, t.result.CompletedAtMs, keep, w.nowMs)
	}
}

// cleaning is a cleanup that a shard has begun and not answered.
type cleaning struct {
	*shard.Cleanup
	// sinceMs is when it began: what ended before must not be left by it.
	sinceMs int64
	deleted int
}

// takes reports whether a task is one of those that the cleanup was asked for.
func (c *cleaning) takes(t *task) bool {
	return !t.open() && !t.removed && slices.Contains(c.Queues, t.queue()) && t.result.CompletedAtMs < c.BeforeMs
}

// cleaned judges one task that a cleanup removed.
func (m *model) cleaned(t *task) {
	if len(m.cleanings[t.shard]) == 0 {
		violate("a cleanup removes what it was asked to", "task %v, and nobody asked", t.id)
	}
	c := m.cleanings[t.shard][0]
	c.deleted++
	if !c.takes(t) || c.deleted > c.Limit {
		violate("a cleanup removes what it was asked to", "%+v by %+v, number %d", t, c.Cleanup, c.deleted)
	}
}

// cleanedAll takes the answer of the cleanup whose turn it is, if it comes.
func (m *model) cleanedAll() {
	if len(m.cleanings[m.at.Shard]) == 0 || m.at.effect >= len(m.at.Outcome.Effects) {
		return
	}
	if _, over := m.at.Outcome.Effects[m.at.effect].Effect.(*shard.Cleaned); !over {
		return
	}
	c := m.cleanings[m.at.Shard][0]
	m.cleanings[m.at.Shard] = m.cleanings[m.at.Shard][1:]
	if e := expect[*shard.Cleaned](m, c.Asker); e.Deleted != c.deleted {
		violate("a cleanup counts what it removed", "%d, said %d", c.deleted, e.Deleted)
	}
	for _, t := range m.all {
		if m.settings.of(t).Deleting {
			continue // it goes with its queue
		}
		if c.deleted < c.Limit && t.shard == m.at.Shard && c.takes(t) && t.result.CompletedAtMs < c.sinceMs {
			violate("a cleanup removes what it was asked to", "%+v is left by %+v after %d", t, c.Cleanup, c.deleted)
		}
	}
}

// cleanSome is an admin who removes what ended some time ago.
func (w *world) cleanSome() {
	c := w.chance
	queues := []record.QueueKey{{Command: pick(c, commands), Tenant: pick(c, w.shape.tenants)}}
	for c.oneIn(2) {
		if q := (record.QueueKey{Command: pick(c, commands), Tenant: queues[0].Tenant}); !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
	}
	m := &shard.Cleanup{Queues: queues, BeforeMs: w.nowMs - pick(c, []int64{0, 1000, 60_000}), Limit: pick(c, []int{1, 3, 1000})}
	r := &request{world: w, clean: m, shard: c.IntN(w.shape.shards)}
	w.trace.say("  POST cleanup of %v", queues)
	r.post()
}
