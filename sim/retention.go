package sim

import (
	"cmp"

	"codeq/shardactor"
	"codeq/wire"
)

// keeps is how long a task that has ended stays, 0 for ever.
func (m *model) keeps(t *task) int64 {
	set := m.settings.of(t)
	if t.place == wire.LocationDead {
		return cmp.Or(set.DLQRetentionSeconds*1000, m.retention.DeadForMs)
	}
	return cmp.Or(set.RetentionSeconds*1000, m.retention.DoneForMs)
}

// reaped judges which ended tasks a round removed. In which order is not
// promised, nor how many at once.
func (m *model) reaped() {
	for m.at.event < len(m.at.Outcome.Events) {
		e := m.peek()
		t := m.tasks[e.TaskID]
		if e.Cause != shardactor.CauseRetention || t == nil {
			return
		}
		keep := m.keeps(t)
		if t.open() || t.removed || keep == 0 || t.result.CompletedAtMs+keep > m.at.NowMs {
			violate("ended tasks stay as long as promised", "%+v, kept for %d ms, removed at %d", t, keep, m.at.NowMs)
		}
		from := t.place
		m.touch(t)
		t.place, t.removed = "", true
		m.moved(t, from, shardactor.CauseRetention)
	}
}

// leavesInTime says that an ended task goes when its time is over, in slices
// that follow one another at once.
func (w *world) leavesInTime(t *task) {
	if t.open() || t.removed {
		return
	}
	keep := w.model.keeps(t)
	if keep > 0 && t.result.CompletedAtMs+keep <= w.nowMs && w.server.wakeAtMs[t.shard] > w.nowMs+1 {
		violate("what is due happens", "task %v ended at %d and stays for %d ms, it is %d", t.id, t.result.CompletedAtMs, keep, w.nowMs)
	}
}
