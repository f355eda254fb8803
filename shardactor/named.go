package shardactor

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// Naming is one change of a named record of a tenant, see record.Kind. As with settings
// the home decides first and makes that durable, then every other shard applies a copy;
// Done comes after the last. After a crash in between the next start copies what the
// home has.
type Naming struct {
	What shard.NameChange
	// Done is called once with the record that holds now, which has no value once it is
	// deleted, or with why nothing has changed. It comes from the goroutine that released
	// the last sync or, when the server stops, from one that posts. It must not block.
	Done func(now record.Named, refusal *wire.Error)
	// Heard gets every effect that answers the change; nil outside a simulation.
	Heard func([]shard.Effect)

	asking
	copying bool
	decided record.Named
	refusal *wire.Error
}

// Name begins a change of a named record. It does not block.
func (e *Engine) Name(n *Naming) {
	n.engine, n.home, n.heard = e, wire.ShardOfTenant(n.What.Key.Tenant, len(e.loops)), n.Heard
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.askHome(n, func(to shard.Asker) shard.Message { return &shard.Name{Asker: to, NameChange: n.What} }) {
		n.Done(record.Named{}, stoppingError())
	}
}

// Deliver implements Sink.
func (n *Naming) Deliver(effects []shard.Effect) {
	n.hear(effects, func(e shard.Effect) {
		switch e := e.(type) {
		case *shard.Named:
			if !n.copying {
				n.decided = e.Record
			}
		case *shard.Refused:
			n.refusal = e.Err
		default:
			panic(fmt.Sprintf("shardactor: a change of a named record was answered by %T", e))
		}
	}, n.next)
}

func (n *Naming) next() {
	switch {
	case n.refusal != nil:
		n.Done(record.Named{}, n.refusal)
	case !n.copying && len(n.engine.loops) > 1:
		n.copying = true
		if !n.askOthers(n, func(to shard.Asker) shard.Message { return &shard.CopyNamed{Asker: to, Record: n.decided} }) {
			n.waits = -1 // the next start copies it
			n.Done(record.Named{}, stoppingError())
		}
	default:
		n.engine.named.set(n.decided)
		n.Done(n.decided, nil)
	}
}

// named are the named records that every shard has, and who wants to hear of changes.
type named struct {
	mu sync.RWMutex
	of map[string]record.NamedList
	// changed is called with the records of a kind that a tenant has now. It must not
	// block.
	changed map[record.Kind]func(tenant string, now record.NamedList)
}

func (n *named) set(r record.Named) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.of[r.Tenant].With(r)
	n.of[r.Tenant] = now
	if changed := n.changed[r.Kind]; changed != nil {
		changed(r.Tenant, now.Of(r.Tenant, r.Kind))
	}
}

// Named are the records of a kind that a tenant has, by name. Any goroutine; the list
// never changes.
func (e *Engine) Named(tenant string, kind record.Kind) record.NamedList {
	e.named.mu.RLock()
	defer e.named.mu.RUnlock()
	return e.named.of[tenant].Of(tenant, kind)
}

// AllNamed are the records of a kind of all tenants, in the order of their keys. Any
// goroutine.
func (e *Engine) AllNamed(kind record.Kind) (all record.NamedList) {
	e.named.mu.RLock()
	defer e.named.mu.RUnlock()
	for _, tenant := range slices.Sorted(maps.Keys(e.named.of)) {
		all = append(all, e.named.of[tenant].Of(tenant, kind)...)
	}
	return all
}

// copyNamed gives every shard the named records that their homes have: a crash may have
// come after a home decided and before the others had the copy. For one that the home
// cannot read the newest copy is taken.
func copyNamed(recovered []*store.Recovered) record.NamedList {
	var truth record.NamedList
	for shardNo, r := range recovered {
		for _, found := range r.Named {
			if wire.ShardOfTenant(found.Tenant, len(recovered)) == shardNo {
				truth = append(truth, found.Named)
			}
		}
		for _, key := range r.NamedDamaged {
			if copied := newestCopy(recovered, key); wire.ShardOfTenant(key.Tenant, len(recovered)) == shardNo && copied.Version > 0 {
				truth = append(truth, copied)
			}
		}
	}
	for _, r := range recovered {
		r.Named = settle(r.Named, truth)
	}
	return truth
}

func newestCopy(recovered []*store.Recovered, key record.NamedKey) (newest record.Named) {
	for _, r := range recovered {
		for _, found := range r.Named {
			if found.NamedKey == key && found.Version > newest.Version {
				newest = found.Named
			}
		}
	}
	return newest
}

// settle is truth, with what a shard has to write for it.
func settle(has []store.NamedState, truth record.NamedList) (all []store.NamedState) {
	versions := make(map[record.NamedKey]int64)
	for _, found := range has {
		versions[found.NamedKey] = found.Version
	}
	for _, r := range truth {
		all = append(all, store.NamedState{Named: r, Unsaved: versions[r.NamedKey] != r.Version})
		delete(versions, r.NamedKey)
	}
	for _, found := range has {
		if _, gone := versions[found.NamedKey]; gone {
			all = append(all, store.NamedState{Named: record.Named{NamedKey: found.NamedKey}, Unsaved: true})
		}
	}
	return all
}
