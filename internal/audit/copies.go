package audit

import (
	"codeq/record"
	"codeq/wire"
)

// judgeSettings holds copies against those of the home shard, which are never
// older, and the same when they are as new.
func (a *span) judgeSettings(spans []*span) {
	for _, q := range a.queues {
		if q.settings == nil {
			continue
		}
		if !q.named {
			continue
		}
		home := spans[wire.ShardOfQueue(q.key.Tenant, q.key.Command, a.shards)]
		key := a.queueKey(q, record.FamilySettings)
		known := home.named(q.key)
		switch {
		case known == nil || known.settings == nil:
			a.find(findSettings, key, "the home shard %d has no settings of the queue", home.shard)
		case known.settings.Version < q.settings.Version:
			a.find(findSettings, key, "the copy has version %d, the home shard %d only %d",
				q.settings.Version, home.shard, known.settings.Version)
		case known.settings.Version == q.settings.Version && *known.settings != *q.settings:
			a.find(findSettings, key, "the copy differs from version %d of the home shard %d",
				q.settings.Version, home.shard)
		}
	}
}

// judgeNamed holds named records against those of the home of their tenant. A copy may be
// older, or of a record that the home has deleted, until the change has come round.
func (a *span) judgeNamed(spans []*span) {
	for i := range a.records {
		n := &a.records[i]
		home := spans[wire.ShardOfTenant(n.Tenant, a.shards)]
		key := record.AppendNamedKey(append([]byte(nil), a.prefix...), n.NamedKey)
		switch known := home.records.Get(n.NamedKey); {
		case n.Version > int64(home.marks.Seq):
			a.find(findNamed, key, "the version %d is above the mark %d of the home shard %d", n.Version, home.marks.Seq, home.shard)
		case known.Version == 0:
		case known.Version < n.Version:
			a.find(findNamed, key, "the copy has version %d, the home shard %d only %d", n.Version, home.shard, known.Version)
		case known.Version == n.Version && known != *n:
			a.find(findNamed, key, "the copy differs from version %d of the home shard %d", n.Version, home.shard)
		}
	}
}

// judgePlacement wants a task at the home of its queue, unless the queue is spread
// and the task has no idempotency key. What holds is what the home says; the
// others follow it.
func (a *span) judgePlacement(spans []*span) {
	for _, t := range a.tasks {
		r := t.record
		if r == nil {
			continue
		}
		home := wire.ShardOfQueue(r.Tenant, r.Command, a.shards)
		known := spans[home].named(r.Queue())
		spread := wire.FirstSettings(r.Command).Spread || known != nil && known.settings != nil && known.settings.Spread
		switch {
		case a.shard == home:
		case !spread:
			a.find(findWrongShard, a.idKey(record.FamilyTask, t.id), "the queue is not spread and has its tasks in shard %d", home)
		case r.IdempotencyKey != "":
			a.find(findWrongShard, a.idKey(record.FamilyTask, t.id), "the task has an idempotency key and belongs to shard %d", home)
		}
	}
}
