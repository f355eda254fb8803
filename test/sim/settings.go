package sim

import (
	"cmp"
	"slices"

	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// settings are what each shard knows of the settings of each queue.
type settings []map[record.QueueKey]record.Settings

func newSettings(shards int) settings {
	s := make(settings, shards)
	for shard := range s {
		s[shard] = make(map[record.QueueKey]record.Settings)
	}
	return s
}

// copyFrom makes s the same as other. Queues are asked for by name, because
// nothing here ranges over a map.
func (s settings) copyFrom(other settings, shard int) {
	eachQueue(func(q record.QueueKey) {
		if had, ok := other[shard][q]; ok {
			s[shard][q] = had
		} else {
			delete(s[shard], q)
		}
	})
}

// spread is what a start does before anything is handed out: every shard has
// the newest that any of them has.
func (s settings) spread() {
	eachQueue(func(q record.QueueKey) {
		newest := record.Settings{}
		for shard := range s {
			if had := s[shard][q]; had.Version > newest.Version {
				newest = had
			}
		}
		for shard := range s {
			if newest.Version > 0 {
				s[shard][q] = newest
			}
		}
	})
}

func eachQueue(visit func(record.QueueKey)) {
	for _, tenant := range tenants {
		for _, command := range commands {
			visit(record.QueueKey{Command: command, Tenant: tenant})
		}
	}
}

// of are the settings that hold for a task.
func (s settings) of(t *task) record.Settings {
	if t.command == hookCommand {
		return record.Settings{QueueSettings: hookSettings}
	}
	return s[t.shard][record.QueueKey{Command: t.command, Tenant: t.tenant}]
}

// configure: the home of a queue decides, and every change is a new version.
func (m *model) configure(a *shard.Configure) {
	if m.at.Space >= store.OnlyDelete {
		m.refused(a.Asker, wire.CodeStorageFull)
		return
	}
	if home := wire.ShardOfQueue(a.Queue.Tenant, a.Queue.Command, len(m.shards)); home != m.at.Shard {
		violate("the home of a queue decides", "shard %d was asked, the home is %d", m.at.Shard, home)
	}
	had := m.settings[m.at.Shard][a.Queue]
	if had.Deleting {
		m.refused(a.Asker, wire.CodeQueueDeleted)
		return
	}
	next := had
	if a.Change.Delete != nil {
		if !m.mayDelete(a.Queue, a.Change.Delete) {
			m.refused(a.Asker, wire.CodeQueueNotEmpty)
			return
		}
		next.Paused, next.Deleting = true, true
	}
	if a.Change.Paused != nil {
		next.Paused = *a.Change.Paused
	}
	if a.Change.Settings != nil {
		next.QueueSettings = *a.Change.Settings
	}
	if had.Spread && !next.Spread {
		m.mayHaveOneOrder(a.Queue)
	}
	if next != had || had.Version == 0 {
		next.Version++
	}
	m.configured(a.Asker, a.Queue, next)
}

func (m *model) copySettings(a *shard.CopySettings) {
	next := m.settings[m.at.Shard][a.Queue]
	if a.Settings.Version > next.Version {
		next = a.Settings
		if next.PerKey != m.settings[m.at.Shard][a.Queue].PerKey {
			m.sharesSinceMs = m.at.NowMs
		}
	}
	m.settings[m.at.Shard][a.Queue] = next
	if a.Thaw {
		m.frozen[m.at.Shard][a.Queue]--
	}
	m.configured(a.Asker, a.Queue, next)
}

func (m *model) configured(to shard.Asker, q record.QueueKey, now record.Settings) {
	if m.settings[m.at.Shard][q].PerKey != now.PerKey {
		m.sharesSinceMs = m.at.NowMs
	}
	m.settings[m.at.Shard][q] = now
	if wire.ShardOfQueue(q.Tenant, q.Command, len(m.shards)) == m.at.Shard {
		m.rateIsSet(q, &now)
	}
	if e := expect[*shard.Configured](m, to); to.Sink != nil && e.Settings != now {
		violate("settings never go back", "queue %v: want %+v, got %+v", q, now, e.Settings)
	}
}

// backoff is how long retry n of a task may wait.
func (m *model) backoff(t *task, n int) span {
	b := m.settings.of(t).Backoff
	base, most := cmp.Or(b.BaseSeconds*1000, baseMs), cmp.Or(b.MaxSeconds*1000, longestMs)
	doubled := most
	if n <= 20 {
		doubled = min(most, base<<(n-1))
	}
	switch b.Policy {
	case wire.BackoffFixed:
		return span{min(base, most), min(base, most)}
	case wire.BackoffLinear:
		return span{min(base*int64(n), most), min(base*int64(n), most)}
	case wire.BackoffExponential:
		return span{doubled, doubled}
	case wire.BackoffEqualJitter:
		return span{doubled / 2, doubled}
	}
	return span{0, doubled}
}

// longest is the longest that a worker may ask a task to wait.
func (m *model) longest(t *task) int64 {
	return cmp.Or(m.settings.of(t).Backoff.MaxSeconds*1000, longestMs)
}

// leaseOf is how long a delivery lasts for whoever asked for so much, 0 for
// nothing.
func (m *model) leaseOf(t *task, askedMs int64) int64 {
	return cmp.Or(askedMs, int64(m.settings.of(t).LeaseSeconds)*1000, 300_000)
}

// configureSome is an admin who pauses, resumes or sets a queue.
func (w *world) configureSome() {
	c := w.chance
	q := record.QueueKey{Command: pick(c, commands), Tenant: pick(c, w.shape.tenants)}
	var what shard.SettingsChange
	if c.oneIn(3) {
		what.Settings = &wire.QueueSettings{
			Spread: w.model.isSpread(q) != c.oneIn(8), MaxAttempts: pick(c, []int{0, 1, 4}), LeaseSeconds: pick(c, []int{0, 2, 30}),
			TimeoutSeconds: pick(c, []int64{0, 0, 3, 40}), TTLSeconds: pick(c, []int64{0, 0, 4, 100}),
			Backoff: wire.Backoff{
				Policy: pick(c, []string{
					"", wire.BackoffFixed, wire.BackoffLinear, wire.BackoffExponential, wire.BackoffEqualJitter, wire.BackoffFullJitter,
				}),
				BaseSeconds: pick(c, []int64{0, 1, 20}), MaxSeconds: pick(c, []int64{0, 10, 1800}),
			},
			RetentionSeconds: pick(c, []int64{0, 0, 30}), DLQRetentionSeconds: pick(c, []int64{0, 0, 45}),
		}
	} else {
		paused := c.oneIn(2)
		what.Paused = &paused
	}
	w.configure(q, what)
}

// configure changes settings. Once that is answered it holds in every shard, for
// ever.
func (w *world) configure(q record.QueueKey, what shard.SettingsChange) {
	if what.Delete != nil {
		w.trace.say("  DELETE of %s of %s: %+v", q.Command, q.Tenant, *what.Delete)
	} else if what.Paused != nil {
		w.trace.say("  POST %s of %s: paused %v", q.Command, q.Tenant, *what.Paused)
	} else {
		w.trace.say("  PUT %s of %s: %+v", q.Command, q.Tenant, *what.Settings)
	}
	last := make([]uint64, w.shape.shards)
	w.server.engine.Configure(&shardactor.Change{
		Queue: q, What: what,
		Heard: func(effects []shard.Effect) { w.delivered(effects, last) },
		Done: func(now record.Settings, refusal *wire.Error) {
			if refusal == nil {
				w.trace.say("  settings of %s of %s hold everywhere: %+v", q.Command, q.Tenant, now)
				w.ledger.settings[q] = max(w.ledger.settings[q], now.Version)
				w.settingsHold(q)
			}
			if refusal == nil && what.Delete != nil {
				w.ledger.settings[q] = 0 // from here on it may go
			}
		},
	})
}

// forgetDeleted forgets the versions that were answered of queues that a start goes
// on to delete, though nobody was told that they go.
func (w *world) forgetDeleted() {
	eachQueue(func(q record.QueueKey) {
		if slices.ContainsFunc(w.model.settings, func(of map[record.QueueKey]record.Settings) bool { return of[q].Deleting }) {
			w.ledger.settings[q] = 0
		}
	})
}

// settingsHold says that what was answered is known to every shard.
func (w *world) settingsHold(q record.QueueKey) {
	for shard := range w.model.settings {
		if had := w.model.settings[shard][q]; had.Version < w.ledger.settings[q] {
			violate("settings that were answered hold in every shard", "queue %v has version %d in shard %d, answered was %d",
				q, had.Version, shard, w.ledger.settings[q])
		}
	}
}

// compareSettings holds the settings that readers see against the model.
func (w *world) compareSettings() {
	eachQueue(func(q record.QueueKey) {
		w.settingsHold(q)
		seen, err := w.server.store.ReadQueue(q)
		if err != nil {
			violate("figures can be read", "%v", err)
		}
		home := w.model.settings[wire.ShardOfQueue(q.Tenant, q.Command, w.shape.shards)][q]
		if seen.Paused != home.Paused || seen.Deleting != home.Deleting || seen.Settings != home.QueueSettings {
			violate("settings are what was set", "queue %v: want %+v, read %+v", q, home, seen)
		}
	})
}

// resumeAll lets the work of a world come to its end.
func (w *world) resumeAll() {
	paused := false
	eachQueue(func(q record.QueueKey) {
		if !slices.Contains(w.shape.tenants, q.Tenant) {
			return
		}
		w.configure(q, shard.SettingsChange{Paused: &paused})
		w.settle()
	})
}
