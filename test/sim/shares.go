package sim

import (
	"cmp"
	"hash/crc32"
	"slices"

	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// Limits of concurrency keys hold on each shard: a key has never more in progress than its
// queue says, and what waits for it is never forgotten.

// shareName is a concurrency key of a queue on a shard.
type shareName struct {
	shard int
	queue record.QueueKey
	key   string
}

func (t *task) share() shareName { return shareName{t.shard, t.queue(), t.shares} }

// sharing is a world whose tasks have concurrency keys, and whose queues get limits for them.
func (s *shape) sharing(c *chance) {
	s.shares = true
	s.limits.Keys = pick(c, []int{1, 2, shard.DefaultLimits.Keys})
	s.adds(operation{name: "limit keys", weight: 60, do: (*world).limitKeys})
}

// shared gives a request a concurrency key, which follows from its payload as labels do.
func (w *world) shared(r wire.EnqueueRequest) wire.EnqueueRequest {
	if w.shape.shares {
		r.ConcurrencyKey = []string{"", "acme", "acme", "bolt", "a b"}[crc32.ChecksumIEEE(r.Payload)>>8%5]
	}
	return r
}

// limitKeys is an admin who sets the limits of the keys of a queue and leaves the rest.
func (w *world) limitKeys() {
	c := w.chance
	q := record.QueueKey{Command: pick(c, commands), Tenant: pick(c, w.shape.tenants)}
	set := w.model.settings[wire.ShardOfQueue(q.Tenant, q.Command, w.shape.shards)][q].QueueSettings
	set.PerKey = wire.PerKey{InProgress: pick(c, []int{0, 1, 1, 2}), StartsPerSecond: pick(c, []int{0, 0, 0, 1, 20})}
	w.configure(q, shard.SettingsChange{Settings: &set})
}

// sharers counts the tasks of a key in a place.
func (m *model) sharers(name shareName, place wire.Location) (n int) {
	all := m.all
	if place == wire.LocationInProgress {
		all = m.leased[name.shard]
	}
	for _, t := range all {
		if t.place == place && t.shares == name.key && t.shard == name.shard && t.queue() == name.queue {
			n++
		}
	}
	return n
}

// isShareFull reports whether a key has as many in progress as it may.
func (m *model) isShareFull(t *task) bool {
	most := m.settings.of(t).PerKey.InProgress
	return most != 0 && m.sharers(t.share(), wire.LocationInProgress) >= most
}

// readyPlace is where a task goes that would become ready. Whether others wait for its key
// the shard knows by a flag, which stays for a while behind the last of them.
func (m *model) readyPlace(t *task) wire.Location {
	if t.shares == "" || m.settings.of(t).PerKey == (wire.PerKey{}) || m.at.event >= len(m.at.Outcome.Events) {
		return wire.LocationPending
	}
	e := m.peek()
	waits := e.TaskID == t.id && e.To == wire.LocationLimited
	name := t.share()
	full, others := m.isShareFull(t), m.sharers(name, wire.LocationLimited) > 0
	switch {
	case waits && !full && !others && !m.waited[name] && m.settings.of(t).PerKey.StartsPerSecond == 0:
		violate("a task waits for its key only if that holds it", "%+v", t)
	case !waits && (full || others):
		violate("a task waits for its key behind others of it", "%+v, the key is full: %v, others wait: %v", t, full, others)
	case waits:
		m.waited[name] = true
		return wire.LocationLimited
	}
	return wire.LocationPending
}

// keysFreed judges what a round makes ready first: the first tasks of keys that have become
// free.
func (m *model) keysFreed() {
	for m.at.event < len(m.at.Outcome.Events) {
		e := m.peek()
		t := m.tasks[e.TaskID]
		if e.Cause == record.CauseTaskExpired && e.From == wire.LocationLimited && t != nil && !m.isAsked(t) {
			m.ranOut(t)
			continue
		}
		if e.Cause != record.CauseKeyFree {
			return
		}
		if t == nil || t.place != wire.LocationLimited {
			violate("only what waits for its key is made ready for it", "%+v", t)
		}
		for _, other := range m.all {
			if other.place == wire.LocationLimited && other.share() == t.share() && cmp.Or(cmp.Compare(t.prio, other.prio), cmp.Compare(other.order, t.order)) < 0 {
				violate("the tasks of a key go in their order", "%+v before %+v", t, other)
			}
		}
		if m.isShareFull(t) {
			violate("a limit of a key holds", "%+v was made ready, and its key is full", t)
		}
		m.leave(t)
		m.putAt(t)
		m.moved(t, wire.LocationLimited, record.CauseKeyFree)
	}
}

// isAsked reports whether an answer to a message of the round says that the task had not ended
// when the message came: it got another priority, which ends it as well if it has expired, or the
// lease of a worker was over.
func (m *model) isAsked(t *task) bool {
	return slices.ContainsFunc(m.at.Outcome.Effects, func(a shard.Addressed) bool {
		switch e := a.Effect.(type) {
		case *shard.Managed:
			return e.Did == shard.Prioritize && e.TaskID == t.id
		case *shard.Refused:
			return e.TaskID == t.id && e.Err.Code == wire.CodeLeaseLost
		}
		return false
	})
}

// mayBeHeld reports whether the key of a task may hold it back.
func (m *model) mayBeHeld(t *task) bool {
	limits, name := m.settings.of(t).PerKey, t.share()
	return t.shares != "" && limits != (wire.PerKey{}) &&
		(limits.StartsPerSecond != 0 || m.waited[name] || m.isShareFull(t) || m.sharers(name, wire.LocationLimited) > 0)
}

// givesWay is a task whose turn has come while its key is full.
func (m *model) givesWay(t *task) {
	if first := m.head(t.shard, t.tenant, t.command); first != t {
		violate("first in, first out, by priority", "%+v gave way before %+v", t, first)
	}
	if !m.isShareFull(t) && m.settings.of(t).PerKey.StartsPerSecond == 0 {
		violate("a task waits for its key only if that holds it", "%+v", t)
	}
	m.hadTurn(t)
	m.leave(t)
	t.place, m.waited[t.share()] = wire.LocationLimited, true
	m.moved(t, wire.LocationPending, record.CauseKeyFull)
}

// shareMayStart holds a grant against the limits of the key of its task.
func (m *model) shareMayStart(t *task) {
	limits := m.settings.of(t).PerKey
	if t.shares == "" || limits == (wire.PerKey{}) {
		return
	}
	if m.isShareFull(t) {
		violate("a limit of a key holds", "task %v of %q went out beside %d", t.id, t.shares, m.sharers(t.share(), wire.LocationInProgress))
	}
	s := m.shareStarts[t.share()]
	if s == nil || s.perSecond != limits.StartsPerSecond {
		s = &starts{perSecond: limits.StartsPerSecond}
		m.shareStarts[t.share()] = s
	}
	s.atMs = append(slices.DeleteFunc(s.atMs, func(atMs int64) bool { return atMs <= m.at.NowMs-secondMs }), m.at.NowMs)
	if limits.StartsPerSecond != 0 && len(s.atMs) > limits.StartsPerSecond {
		violate("a limit of starts of a key holds", "task %v of %+v is number %d in a second, at most %d: %v", t.id, t.share(), len(s.atMs), limits.StartsPerSecond, s.atMs)
	}
}

// explainsKey holds a reason against the limits of the key.
func (m *model) explainsKey(t *task, w *wire.Waiting) {
	limits, is := m.settings.of(t).PerKey, m.sharers(t.share(), wire.LocationInProgress)
	switch {
	case w.Key != t.shares:
	case w.Limit == wire.LimitKeyInProgress && limits.InProgress != 0 && w.Of == int64(limits.InProgress) && w.Used == int64(is) && is >= limits.InProgress:
		return
	case w.Limit == wire.LimitKeyStarts && limits.StartsPerSecond != 0 && w.Of == int64(limits.StartsPerSecond) && w.Used == 0:
		return
	}
	violate("a reason is the one that holds", "%v of key %q with %d in progress, limits %+v: said %+v", t.id, t.shares, is, limits, *w)
}

// noKeyIsForgotten says of a world at rest that what waits for a key has reason to.
func (w *world) noKeyIsForgotten() {
	m := w.model
	clear(m.waited)
	for _, t := range m.all {
		if t.place != wire.LocationLimited || m.settings.of(t).Deleting {
			continue
		}
		name := t.share()
		m.waited[name] = true
		rate := m.settings.of(t).PerKey.StartsPerSecond
		sinceMs := m.sharesSinceMs
		if s := m.shareStarts[name]; s != nil && len(s.atMs) > 0 {
			sinceMs = max(sinceMs, s.atMs[len(s.atMs)-1])
		}
		switch {
		case m.isShareFull(t), m.sharers(name, wire.LocationPending) > 0:
		case rate != 0 && w.nowMs <= sinceMs+secondMs+2*slackMs:
		default:
			violate("what waits for a key is not forgotten", "%+v, limits %+v", t, m.settings.of(t).PerKey)
		}
	}
}
