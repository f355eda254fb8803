package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"codeq/internal/auth"
	"codeq/internal/meter"
	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// enter takes what new tasks, with payloads of so many bytes, cost of the limits of the
// tenant, and says in headers how many it may make.
func (a *api) enter(c *call, tasks, bytes int) (shard.Pass, *wire.Error) {
	pass, refusal := a.o.Engine.Enter(c.who.Tenant, c.who.Subject, tasks, bytes)
	if pass.Door == nil && refusal == nil {
		return pass, nil
	}
	if p, is := a.o.Engine.Limits().Enqueues(c.who.Tenant, a.o.NowMs()); is {
		// As in draft-ietf-httpapi-ratelimit-headers-11.
		h := c.w.Header()
		h.Set("RateLimit-Policy", fmt.Sprintf(`"enqueue";q=%d;w=%d`, p.Burst, (p.Burst+p.PerSecond-1)/p.PerSecond))
		h.Set("RateLimit", fmt.Sprintf(`"enqueue";r=%d;t=%d`, p.Left, p.FullInSeconds))
	}
	return pass, refusal
}

// enterClaim takes what a claim costs of the limits of the tenant. It waits as long as the
// claim may wait, and takes that off its time. untake is nil without a limit.
func (a *api) enterClaim(c *call, req *wire.ClaimRequest) (untake func(tasks int), refusal *wire.Error) {
	until := a.o.NowMs() + int64(req.WaitSeconds)*1000
	for {
		nowMs := a.o.NowMs()
		untake, againAtMs, refusal := a.o.Engine.Limits().Claim(c.who.Tenant, c.who.Subject, req.Count, nowMs)
		if refusal == nil {
			req.WaitSeconds = min(req.WaitSeconds, int(max(0, until-nowMs+999)/1000))
			return untake, nil
		}
		if againAtMs > until {
			return nil, refusal
		}
		timer := time.NewTimer(time.Duration(againAtMs-nowMs) * time.Millisecond)
		select {
		case <-timer.C:
		case <-c.r.Context().Done():
		case <-a.o.Draining:
		}
		timer.Stop()
		if refusal := a.leaving(); refusal != nil {
			return nil, refusal
		}
		if c.r.Context().Err() != nil {
			return nil, refusal // nobody reads it
		}
	}
}

// settleClaim gives back what a claim has taken for tasks that it did not get. One stays
// taken, since a claim without a task costs the server as much.
func settleClaim(untake func(tasks int), asked, got int) {
	if left := asked - max(got, 1); untake != nil && left > 0 {
		untake(left)
	}
}

// limitsOf are the limits of a tenant and what is used of them.
func (a *api) limitsOf(tenant string) wire.LimitsFigures {
	f := wire.LimitsFigures{TenantID: tenant}
	if list := a.o.Engine.Named(tenant, record.KindLimits); len(list) > 0 {
		f.Version, f.TenantLimits = list[0].Version, list[0].Limits()
	}
	var used wire.UsedOfLimits
	used, f.Refused = a.o.Engine.Limits().Figures(tenant)
	if f.PendingTasks != 0 {
		f.Used.Pending = used.Pending
	}
	if f.PendingBytes != 0 {
		f.Used.Bytes = used.Bytes
	}
	if f.ArtifactBytes != 0 {
		f.Used.Files = used.Files
	}
	if f.Sessions != 0 {
		f.Used.Open = a.o.Sessions.Open(tenant)
	}
	return f
}

// limitedTenant is the tenant that the path names, if the credential may see its limits.
func limitedTenant(c *call) (string, *wire.Error) {
	tenant := c.r.PathValue("tenant")
	if problem := wire.NameProblem(tenant, wire.MaxTenantBytes); problem != "" {
		return "", wire.Refuse(wire.CodeInvalidArgument, "tenant "+problem)
	}
	if tenant != c.who.Tenant && !c.who.Has(auth.ScopeAdminAll) {
		return "", wire.Refuse(wire.CodeForbidden, "this credential belongs to another tenant; one with the scope "+auth.ScopeAdminAll+" may")
	}
	return tenant, nil
}

func (a *api) getLimits(c *call) answer {
	tenant, refusal := limitedTenant(c)
	if refusal != nil {
		return refuse(refusal)
	}
	f := a.limitsOf(tenant)
	return okay(wire.AppendLimitsFigures(nil, &f))
}

// getAllLimits lists the tenants that have limits and whose limits the credential may see.
func (a *api) getAllLimits(c *call) answer {
	tenants := slices.DeleteFunc(a.o.Engine.Limits().Names(), func(tenant string) bool {
		return len(a.o.Engine.Named(tenant, record.KindLimits)) == 0 || tenant != c.who.Tenant && !c.who.Has(auth.ScopeAdminAll)
	})
	body := appendList([]byte(`{"limits":[`), len(tenants), func(dst []byte, i int) []byte {
		f := a.limitsOf(tenants[i])
		return wire.AppendLimitsFigures(dst, &f)
	})
	return okay(append(body, "]}"...))
}

// putLimits replaces all limits of a tenant.
func (a *api) putLimits(c *call, l *wire.LimitsChange) answer {
	c.record.RawJSON("limits", wire.AppendLimitsChange(nil, l))
	change := shard.NameChange{Value: string(wire.AppendTenantLimits(nil, &l.TenantLimits)), IfVersion: -1}
	if l.Version != 0 {
		change.IfVersion = l.Version
	}
	return a.changeLimits(c, change)
}

func (a *api) deleteLimits(c *call) answer { return a.changeLimits(c, shard.NameChange{IfVersion: -1}) }

// changeLimits answers when every shard has the change on disk. It ignores the context of
// the request; see ask.
func (a *api) changeLimits(c *call, what shard.NameChange) answer {
	tenant, refusal := limitedTenant(c)
	if refusal != nil {
		return refuse(refusal)
	}
	what.Key = record.NamedKey{Tenant: tenant, Kind: record.KindLimits}
	if _, refusal := a.name(what); refusal != nil {
		return refuse(refusal)
	}
	return a.getLimits(c)
}

// writeLimits writes what limits of tenants have refused.
func (a *api) writeLimits(p *meter.Page) {
	names := a.o.Engine.Limits().Names()
	if len(names) == 0 {
		return
	}
	p.Family("codeq_limit_refusals_total", meter.Total, "Tasks, claims, files and sessions that a limit of their tenant refused.")
	var rest wire.RefusedByLimit
	for i, name := range names {
		_, r := a.o.Engine.Limits().Figures(name)
		if i < TopQueues && name != OtherQueues {
			putRefused(p, name, r)
			continue
		}
		rest.Enqueues, rest.Claims = rest.Enqueues+r.Enqueues, rest.Claims+r.Claims
		rest.Pending, rest.Bytes = rest.Pending+r.Pending, rest.Bytes+r.Bytes
		rest.Files, rest.Sessions = rest.Files+r.Files, rest.Sessions+r.Sessions
	}
	if rest != (wire.RefusedByLimit{}) {
		putRefused(p, OtherQueues, rest)
	}
}

func putRefused(p *meter.Page, tenant string, r wire.RefusedByLimit) {
	for _, one := range []struct {
		limit string
		n     int64
	}{{wire.LimitEnqueues, r.Enqueues}, {wire.LimitClaims, r.Claims}, {wire.LimitPending, r.Pending}, {wire.LimitBytes, r.Bytes}, {wire.LimitFiles, r.Files}, {wire.LimitSessions, r.Sessions}} {
		p.Put(float64(one.n), meter.Label{Name: "tenant", Value: tenant}, meter.Label{Name: "limit", Value: one.limit})
	}
}

// limitsPath is where the limits of tenants are.
const limitsPath = base + "/admin/limits"

func (a *api) limitResources() []resource {
	return []resource{
		{limitsPath, []verb{{method: http.MethodGet, scope: auth.ScopeView, handle: a.getAllLimits}}},
		{limitsPath + "/{tenant}", []verb{
			{method: http.MethodGet, scope: auth.ScopeView, handle: a.getLimits},
			{method: http.MethodPut, scope: auth.ScopeAdminAll, handle: parsed(wire.ParseLimitsChange, a.putLimits)},
			{method: http.MethodDelete, scope: auth.ScopeAdminAll, handle: a.deleteLimits},
		}},
	}
}
