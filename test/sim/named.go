package sim

import (
	"maps"

	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/store"
	"codeq/wire"
)

// Named records of tenants: what was answered holds in every shard, over crashes.

// named are the named records of tenants as each shard knows them; deleted ones have no value.
type named []map[record.NamedKey]record.Named

func newNamed(shards int) named {
	all := make(named, shards)
	for shardNo := range all {
		all[shardNo] = make(map[record.NamedKey]record.Named)
	}
	return all
}

func (n named) copyFrom(other named, shardNo int) { n[shardNo] = maps.Clone(other[shardNo]) }

func limitsKey(tenant string) record.NamedKey {
	return record.NamedKey{Tenant: tenant, Kind: record.KindLimits}
}

// eachName visits every record that a tenant may have.
func eachName(visit func(key record.NamedKey)) {
	for _, tenant := range tenants {
		visit(limitsKey(tenant))
		for _, name := range endpointNames {
			visit(endpointKey(tenant, name))
		}
		for _, name := range subscriberNames {
			visit(subscriptionKey(tenant, name))
		}
	}
}

func (m *model) homeOf(key record.NamedKey) record.Named {
	return m.named[wire.ShardOfTenant(key.Tenant, len(m.shards))][key]
}

// name: the home of a tenant decides, and every change is a new version.
func (m *model) name(a *shard.Name) {
	if m.at.Space >= store.OnlyDelete {
		m.refused(a.Asker, wire.CodeStorageFull)
		return
	}
	if home := wire.ShardOfTenant(a.Key.Tenant, len(m.shards)); home != m.at.Shard {
		violate("the home of a tenant decides", "shard %d was asked, the home is %d", m.at.Shard, home)
	}
	had := m.named[m.at.Shard][a.Key]
	if a.IfVersion >= 0 && (a.IfVersion != had.Version || had.Value == "") {
		m.refused(a.Asker, wire.CodeVersionConflict)
		return
	}
	now := expect[*shard.Named](m, a.Asker).Record
	changed := now.Value != had.Value
	if now.Value != a.Value || changed != (now.Version > had.Version) {
		violate("records that were set are those", "%+v: had %+v, set %s, now %+v", a.Key, had, a.Value, now)
	}
	if changed {
		m.isNamed(now)
	}
}

func (m *model) copyNamed(a *shard.CopyNamed) {
	if e := expect[*shard.Named](m, a.Asker); e.Record != a.Record {
		violate("records that were set are those", "copy of %+v, now %+v", a.Record, e.Record)
	}
	if a.Record.Version > 0 { // it was there to be deleted
		m.isNamed(a.Record)
	}
}

// isNamed notes a record in a shard. From the first limit of waiting tasks on, it counts them.
func (m *model) isNamed(r record.Named) {
	m.named[m.at.Shard][r.NamedKey], m.newNamed = r, true
	if r.Kind != record.KindLimits {
		return
	}
	if l := r.Limits(); l.CountsPending() || l.ArtifactBytes != 0 {
		m.counts[m.at.Shard][r.Tenant] = true
	}
}

// namedBegin is a start: every shard has what the home has.
func (m *model) namedBegin() {
	m.newNamed = true
	for shardNo := range m.named {
		clear(m.counts[shardNo])
		eachName(func(key record.NamedKey) { m.named[shardNo][key] = m.homeOf(key) })
		for _, tenant := range tenants {
			r := m.homeOf(limitsKey(tenant))
			l := r.Limits()
			m.counts[shardNo][tenant] = l.CountsPending() || l.ArtifactBytes != 0
		}
	}
}

// beginNamed is a start: what holds is what the homes have.
func (w *world) beginNamed() {
	w.holds = make(map[record.NamedKey]record.Named)
	eachName(func(key record.NamedKey) { w.holds[key] = w.model.homeOf(key) })
}

// setNamed changes a named record, and calls done once it holds.
func (w *world) setNamed(key record.NamedKey, value string, done func(record.Named)) {
	w.trace.say("  PUT %s %q of %s: %s", key.Kind, key.Name, key.Tenant, value)
	w.begin(&shardactor.Naming{
		What: shard.NameChange{Key: key, Value: value, IfVersion: -1},
		Done: func(now record.Named, refusal *wire.Error) {
			if refusal == nil {
				done(now)
			}
		},
	})
}

// begin begins a change of a named record. Once that is answered it holds in every shard.
func (w *world) begin(n *shardactor.Naming) {
	last, done := make([]uint64, w.shape.shards), n.Done
	n.Heard = func(effects []shard.Effect) { w.delivered(effects, last) }
	n.Done = func(now record.Named, refusal *wire.Error) {
		if refusal == nil {
			w.trace.say("  %s %q of %s hold everywhere: %s", now.Kind, now.Name, now.Tenant, now.Value)
			w.ledger.named[n.What.Key] = max(w.ledger.named[n.What.Key], now.Version)
			w.holds[n.What.Key] = now
			w.namedHold()
		}
		done(now, refusal)
	}
	w.server.engine.Name(n)
}

// namedHold says that what was answered is known to every shard.
func (w *world) namedHold() {
	for shardNo := range w.model.named {
		eachName(func(key record.NamedKey) {
			if had := w.model.named[shardNo][key]; had.Version < w.ledger.named[key] {
				violate("records that were answered hold in every shard", "%+v has version %d in shard %d, answered was %d",
					key, had.Version, shardNo, w.ledger.named[key])
			}
		})
	}
}
