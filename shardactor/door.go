package shardactor

import (
	"codeq/internal/limit"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// limitsChanged follows the limits of a tenant, which every shard has now.
func (e *Engine) limitsChanged(tenant string, now record.NamedList) {
	var l wire.TenantLimits
	if len(now) > 0 {
		l = now[0].Limits()
	}
	e.limits.Set(tenant, l, e.nowMs())
}

// Enter takes what so many new tasks of a subject, with payloads of so many bytes, cost of
// the limits of its tenant, all or none. Each of their messages carries the pass.
func (e *Engine) Enter(tenant, subject string, tasks, bytes int) (shard.Pass, *wire.Error) {
	return e.limits.Enqueue(tenant, subject, tasks, bytes, e.nowMs())
}

// EnterSession refuses one more session of a tenant and of a subject that have so many
// open.
func (e *Engine) EnterSession(tenant string, ofTenant, ofSubject int) *wire.Error {
	return e.limits.Sessions(tenant, ofTenant, ofSubject)
}

// Limits are the limits of all tenants.
func (e *Engine) Limits() *limit.Table { return &e.limits }

// tenantOf is whose new work a message is: in a mailbox, no tenant keeps another one out.
func tenantOf(m shard.Message) string {
	switch m := m.(type) {
	case *shard.Enqueue:
		return m.Tenant
	case *shard.Claim:
		return m.Consumer.Tenant
	case *shard.Manage:
		return m.Tenant
	case *shard.Explain:
		return m.Tenant
	case *shard.TellLeases:
		return m.Tenant
	case *shard.Cleanup:
		return m.Queues[0].Tenant
	}
	return ""
}
