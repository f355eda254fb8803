package shard

import (
	"fmt"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// Named records of tenants: the home of a tenant decides a change and the other shards
// copy it. A kind whose records the core uses reads them from tenant.named.

// name decides a change of a named record in the home of its tenant. A change without a
// difference makes no new version.
func (s *Shard) name(m *Name) {
	had := s.tenantOf(m.Key.Tenant).named.Get(m.Key)
	switch {
	case m.IfVersion >= 0 && m.IfVersion != had.Version:
		s.refuse(m.Asker, wire.TaskID{}, wire.CodeVersionConflict, fmt.Sprintf(
			"the record has version %d, not %d: somebody has changed it; read it and decide again", had.Version, m.IfVersion))
		return
	case m.Most > 0 && had.Version == 0 && m.Value != "" && len(s.tenantOf(m.Key.Tenant).named.Of(m.Key.Tenant, m.Key.Kind)) >= m.Most:
		s.refuse(m.Asker, wire.TaskID{}, wire.CodeTooLarge, fmt.Sprintf("the tenant has %d of these already, which is the most; delete one first", m.Most))
		return
	}
	now := had
	if m.Value != had.Value {
		// A version that only rises, also over a deletion.
		s.marks.Seq++
		now = record.Named{NamedKey: m.Key, Version: int64(s.marks.Seq), Value: m.Value}
		s.setNamed(now)
	}
	s.tell(m.Sink, &Named{Ref: m.Ref, Record: now})
}

// copyNamed applies what the home of a tenant has decided. Copies come in the order of
// the decisions.
func (s *Shard) copyNamed(m *CopyNamed) {
	if m.Record != s.tenantOf(m.Record.Tenant).named.Get(m.Record.NamedKey) {
		s.setNamed(m.Record)
	}
	s.tell(m.Sink, &Named{Ref: m.Ref, Record: m.Record})
}

// setNamed writes a named record, or deletes one that has no value.
func (s *Shard) setNamed(r record.Named) {
	t := s.tenantOf(r.Tenant)
	t.named = t.named.With(r)
	s.span.Batch().PutNamed(&r)
	s.follow(r.NamedKey, t)
}

// follow has the core do as a named record says.
func (s *Shard) follow(key record.NamedKey, t *tenant) {
	switch key.Kind {
	case record.KindLimits:
		s.setLimits(key.Tenant, t)
	case record.KindWebhook:
		t.setEndpoints(key.Tenant)
	}
}

// restoreNamed sets the named records that recovery found, once what waits is counted.
func (s *Shard) restoreNamed(found []store.NamedState) {
	for i := range found {
		t := s.tenantOf(found[i].Tenant)
		t.named = t.named.With(found[i].Named)
		s.follow(found[i].NamedKey, t)
		if found[i].Unsaved {
			s.unsavedNamed = append(s.unsavedNamed, found[i].NamedKey)
		}
	}
}

// saveNamed writes what recovery copied from the homes.
func (s *Shard) saveNamed() {
	if len(s.unsavedNamed) == 0 || s.space >= store.OnlyDelete {
		return
	}
	for _, key := range s.unsavedNamed {
		r := s.tenantOf(key.Tenant).named.Get(key)
		s.span.Batch().PutNamed(&r)
	}
	s.unsavedNamed = nil
}
