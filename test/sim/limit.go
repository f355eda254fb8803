package sim

import (
	"slices"

	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// Limits of a queue hold over all shards. What its home says is how much; a shard counts
// from the round on in which it has been told that there is a limit.

// slackMs is by how much a shard may ask late.
const slackMs = 10

// starts are the deliveries of a queue that began under its rate.
type starts struct {
	perSecond int
	// sinceMs is when the rate was set, or began anew with a start.
	sinceMs int64
	atMs    []int64
}

// limits are those of a queue in a shard, both 0 if the shard has not been told of any.
func (m *model) limitsOf(q record.QueueKey, inShard int) (inProgress, perSecond int) {
	if here := m.settings[inShard][q]; here.MaxInProgress == 0 && here.StartsPerSecond == 0 {
		return 0, 0
	}
	home := m.settings[wire.ShardOfQueue(q.Tenant, q.Command, len(m.shards))][q]
	return home.MaxInProgress, home.StartsPerSecond
}

func (m *model) isLimited(q record.QueueKey, inShard int) bool {
	here := m.settings[inShard][q]
	return here.MaxInProgress != 0 || here.StartsPerSecond != 0
}

// counted are the tasks in progress that count.
func (m *model) counted(q record.QueueKey) (n int) {
	for inShard, tasks := range m.leased {
		if !m.isLimited(q, inShard) {
			continue
		}
		for _, t := range tasks {
			if t.queue() == q {
				n++
			}
		}
	}
	return n
}

// mayStart holds a grant against the limits of its queue.
func (m *model) mayStart(t *task) {
	q := t.queue()
	if !m.isLimited(q, t.shard) {
		return
	}
	most, perSecond := m.limitsOf(q, t.shard)
	if is := m.counted(q); most != 0 && is >= most {
		violate("a limit of tasks in progress holds", "task %v of %v went out beside %d, at most %d", t.id, q, is, most)
	}
	if perSecond == 0 {
		return
	}
	s := m.startsOf(q)
	s.atMs = append(slices.DeleteFunc(s.atMs, func(atMs int64) bool { return atMs <= m.at.NowMs-secondMs }), m.at.NowMs)
	if len(s.atMs) > perSecond {
		violate("a limit of starts in a second holds", "task %v of %v is number %d, at most %d", t.id, q, len(s.atMs), perSecond)
	}
}

// startsOf are the starts of a queue since its rate was set last.
func (m *model) startsOf(q record.QueueKey) *starts {
	s := m.starts[q]
	if s == nil {
		s = &starts{}
		m.starts[q] = s
	}
	return s
}

// rateIsSet notes what the home of a queue has decided.
func (m *model) rateIsSet(q record.QueueKey, now *record.Settings) {
	if s := m.startsOf(q); s.perSecond != now.StartsPerSecond {
		*s = starts{perSecond: now.StartsPerSecond, sinceMs: m.at.NowMs}
	}
}

// ratesBegin is a start: every rate begins anew.
func (m *model) ratesBegin(nowMs int64) {
	eachQueue(func(q record.QueueKey) {
		home := m.settings[wire.ShardOfQueue(q.Tenant, q.Command, len(m.shards))][q]
		*m.startsOf(q) = starts{perSecond: home.StartsPerSecond, sinceMs: nowMs}
	})
}

// isFull says that a task may have to wait for a limit of its queue while the world is at
// rest: what has ended is durable, and its place was handed on.
func (m *model) isFull(t *task, nowMs int64) bool {
	q := t.queue()
	if !m.isLimited(q, t.shard) {
		return false
	}
	most, perSecond := m.limitsOf(q, t.shard)
	if most != 0 && m.counted(q) >= most {
		return true
	}
	s := m.startsOf(q)
	if nowMs <= s.sinceMs+secondMs+slackMs {
		return true // a shard may wait for a start of the rate before
	}
	n := len(s.atMs)
	return perSecond != 0 && n > 0 && nowMs <= s.atMs[n-1]+int64((secondMs+slackMs)/perSecond)
}

// explainsLimit holds a reason against the limits of the queue.
func (m *model) explainsLimit(t *task, w *wire.Waiting) {
	q, here := t.queue(), m.settings.of(t)
	most, _ := m.limitsOf(q, t.shard)
	switch {
	case w.Limit == wire.LimitInProgress && here.MaxInProgress != 0 && w.Of == int64(here.MaxInProgress) &&
		w.Used >= int64(min(most, here.MaxInProgress)) && w.Used >= int64(m.counted(q)):
	case w.Limit == wire.LimitStarts && here.StartsPerSecond != 0 && w.Of == int64(here.StartsPerSecond) && w.Used == 0:
	default:
		violate("a reason is the one that holds", "%v of %v with %d in progress, home says %d: said %+v", t.id, here, m.counted(q), most, *w)
	}
}

// withoutFreed is a round without what it tells limiters. Which places come back shows in
// what may start.
func withoutFreed(o *shardactor.Observed) *shardactor.Observed {
	isFreed := func(a shard.Addressed) bool {
		_, is := a.Effect.(*shard.Freed)
		return is
	}
	if !slices.ContainsFunc(o.Outcome.Effects, isFreed) {
		return o
	}
	rest, outcome := *o, *o.Outcome
	outcome.Effects = slices.DeleteFunc(slices.Clone(outcome.Effects), isFreed)
	rest.Outcome = &outcome
	return &rest
}

// limited makes a world whose queues get limits.
func (s *shape) limited() {
	s.hasLimits = true
	s.adds(operation{name: "limit", weight: 60, do: (*world).limitSome})
}

// limitSome is an admin who sets the limits of a queue and leaves the rest.
func (w *world) limitSome() {
	c := w.chance
	q := record.QueueKey{Command: pick(c, commands), Tenant: pick(c, w.shape.tenants)}
	set := w.model.settings[wire.ShardOfQueue(q.Tenant, q.Command, w.shape.shards)][q].QueueSettings
	set.MaxInProgress, set.StartsPerSecond = pick(c, []int{0, 1, 2, 5}), pick(c, []int{0, 0, 1, 3, 50})
	w.configure(q, shard.SettingsChange{Settings: &set})
}

// liftLimits sets every queue free.
func (w *world) liftLimits() {
	eachQueue(func(q record.QueueKey) {
		set := w.model.settings[wire.ShardOfQueue(q.Tenant, q.Command, w.shape.shards)][q].QueueSettings
		if set.MaxInProgress != 0 || set.StartsPerSecond != 0 || set.Target.URL != "" {
			set.MaxInProgress, set.StartsPerSecond, set.Target = 0, 0, wire.Target{}
			w.configure(q, shard.SettingsChange{Settings: &set})
			w.settle()
		}
	})
}
