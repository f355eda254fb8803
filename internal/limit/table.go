package limit

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"codeq/internal/credit"
	"codeq/shard"
	"codeq/wire"
)

// Table has the limits of all tenants.
type Table struct {
	// mu guards changes of known, whose map never changes.
	mu    sync.Mutex
	known atomic.Pointer[map[string]*Tenant]
}

// Tenant are the limits of one tenant. Once known it stays, because shards may count in it.
type Tenant struct {
	// rules are those in force.
	rules atomic.Pointer[rules]
	// pending is how many tasks wait, those on their way to a shard included, bytes the
	// size of their payloads.
	pending, bytes atomic.Int64
	// files is the size of the files that tasks have, those under way to a task included.
	files   atomic.Int64
	refused struct{ enqueues, claims, pending, bytes, files, sessions atomic.Int64 }
}

// rules are limits and their rates. Limits never change; a change makes new rules.
type rules struct {
	limits wire.TenantLimits
	all    *rates
	each   *subjects
}

// subjects are the rates of each subject of a tenant.
type subjects struct {
	limits *wire.DoorLimits
	// sinceMs is when they began, empty.
	sinceMs int64

	mu sync.Mutex
	of map[string]*rates
}

// rates are those of a tenant or of a subject.
type rates struct{ enqueues, claims credit.Rate }

// maxIdle is how many subjects of a tenant have rates before those are forgotten that are
// as if they had never been used.
const maxIdle = 1024

func newRates(l *wire.DoorLimits, sinceMs int64) *rates {
	r := &rates{}
	r.enqueues.SetBurst(l.EnqueuesPerSecond, l.BurstInForce(), sinceMs)
	// A claim may ask for the most tasks at once whatever the rate is.
	r.claims.SetBurst(l.ClaimsPerSecond, max(l.ClaimsPerSecond, wire.MaxClaimTasks), sinceMs)
	return r
}

// find is a tenant, nil if it is not known.
func (t *Table) find(name string) *Tenant {
	known := t.known.Load()
	if known == nil {
		return nil
	}
	return (*known)[name]
}

// inForce are the limits of a tenant, nil for one that is not known or has had none.
func (t *Table) inForce(name string) (*Tenant, *rules) {
	tenant := t.find(name)
	if tenant == nil {
		return nil, nil
	}
	return tenant, tenant.rules.Load()
}

// Of finds or makes a tenant.
func (t *Table) Of(name string) *Tenant {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tenant := t.find(name); tenant != nil {
		return tenant
	}
	tenant, known := &Tenant{}, make(map[string]*Tenant)
	if was := t.known.Load(); was != nil {
		known = maps.Clone(*was)
	}
	known[name] = tenant
	t.known.Store(&known)
	return tenant
}

// Set sets the limits of a tenant. Rates that change begin empty.
func (t *Table) Set(name string, l wire.TenantLimits, nowMs int64) {
	if t.find(name) == nil && l == (wire.TenantLimits{}) {
		return
	}
	tenant := t.Of(name)
	now := &rules{limits: l}
	was := tenant.rules.Load()
	if was != nil && sameRates(&was.limits.DoorLimits, &l.DoorLimits) {
		now.all = was.all
	} else {
		now.all = newRates(&l.DoorLimits, nowMs)
	}
	if was != nil && sameRates(&was.limits.PerCredential, &l.PerCredential) {
		now.each = was.each
	} else {
		now.each = &subjects{limits: &now.limits.PerCredential, sinceMs: nowMs, of: make(map[string]*rates)}
	}
	tenant.rules.Store(now)
}

func sameRates(a, b *wire.DoorLimits) bool {
	return a.EnqueuesPerSecond == b.EnqueuesPerSecond && a.BurstInForce() == b.BurstInForce() && a.ClaimsPerSecond == b.ClaimsPerSecond
}

// rates are those of a subject, nil if the tenant has none for each.
func (r *subjects) rates(name string, nowMs int64) *rates {
	if r.limits.EnqueuesPerSecond == 0 && r.limits.ClaimsPerSecond == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.of[name]; known != nil {
		return known
	}
	if len(r.of) >= maxIdle {
		for name, known := range r.of {
			_, enqueues := known.enqueues.Left(nowMs)
			_, claims := known.claims.Left(nowMs)
			if enqueues <= 0 && claims <= 0 {
				delete(r.of, name)
			}
		}
	}
	made := newRates(r.limits, r.sinceMs)
	r.of[name] = made
	return made
}

// ticket is what a request took of the rates. It implements shard.Door.
type ticket struct {
	tenant *Tenant
	taken  [2]*credit.Rate
}

// take takes n of the rate of the tenant and of that of the subject, nil for none of its
// own, or of neither.
func (k *ticket) take(all, each *credit.Rate, n int, nowMs int64) (againAtMs int64) {
	if againAtMs = all.StartMany(n, nowMs); againAtMs != 0 {
		return againAtMs
	}
	k.taken[0] = all
	if each != nil {
		if againAtMs = each.StartMany(n, nowMs); againAtMs != 0 {
			all.UnstartMany(n)
			return againAtMs
		}
		k.taken[1] = each
	}
	return 0
}

// untake gives n back.
func (k *ticket) untake(n int) {
	for _, rate := range k.taken {
		if rate != nil {
			rate.UnstartMany(n)
		}
	}
}

// GiveBack implements shard.Door.
func (k *ticket) GiveBack(counted bool, bytes int) {
	k.untake(1)
	if counted {
		k.tenant.uncount(1, int64(bytes))
	}
}

// Enqueue takes what tasks new tasks of a subject cost, with payloads of so many bytes, all
// or none. Each of their messages gets the pass.
func (t *Table) Enqueue(tenantName, subject string, tasks, bytes int, nowMs int64) (shard.Pass, *wire.Error) {
	tenant, r := t.inForce(tenantName)
	if r == nil || tasks == 0 || r.limits == (wire.TenantLimits{}) {
		return shard.Pass{}, nil
	}
	for _, l := range []*wire.DoorLimits{&r.limits.DoorLimits, &r.limits.PerCredential} {
		if most := l.BurstInForce(); most != 0 && tasks > most {
			return shard.Pass{}, wire.Refuse(wire.CodeTooLarge, fmt.Sprintf(
				"the request has %d tasks, and a limit of the tenant lets %d in at once; send smaller batches", tasks, most))
		}
	}
	counted := r.limits.CountsPending()
	if counted {
		if refusal := tenant.count(int64(tasks), int64(bytes), &r.limits); refusal != nil {
			return shard.Pass{}, refusal
		}
	}
	k := &ticket{tenant: tenant}
	var each *credit.Rate
	if own := r.each.rates(subject, nowMs); own != nil {
		each = &own.enqueues
	}
	if again := k.take(&r.all.enqueues, each, tasks, nowMs); again != 0 {
		if counted {
			tenant.uncount(int64(tasks), int64(bytes))
		}
		tenant.refused.enqueues.Add(int64(tasks))
		return shard.Pass{}, limited(wire.LimitEnqueues, int64(tightest(r, func(l *wire.DoorLimits) int { return l.EnqueuesPerSecond })),
			"tasks may be made in a second", secondsUntil(again, nowMs))
	}
	return shard.Pass{Door: k, Counted: counted}, nil
}

// count takes places for tasks that are to wait.
func (t *Tenant) count(tasks, bytes int64, l *wire.TenantLimits) *wire.Error {
	if !addUpTo(&t.pending, tasks, l.PendingTasks) {
		t.refused.pending.Add(tasks)
		return limited(wire.LimitPending, l.PendingTasks, "tasks of the tenant may wait", waitSeconds)
	}
	if !addUpTo(&t.bytes, bytes, l.PendingBytes) {
		t.pending.Add(-tasks)
		t.refused.bytes.Add(tasks)
		return limited(wire.LimitBytes, l.PendingBytes, "bytes of payloads of the tenant may wait", waitSeconds)
	}
	return nil
}

func (t *Tenant) uncount(tasks, bytes int64) {
	t.pending.Add(-tasks)
	t.bytes.Add(-bytes)
}

// addUpTo adds n unless that gives more than most, for which 0 is no bound.
func addUpTo(to *atomic.Int64, n, most int64) bool {
	for {
		now := to.Load()
		if most != 0 && now+n > most {
			return false
		}
		if to.CompareAndSwap(now, now+n) {
			return true
		}
	}
}

// Room is what a request takes of the limit of files of its tenant: until it ends, for from then
// on the shard counts what has become a file of a task. One goroutine at a time may use it.
type Room struct {
	tenant      *Tenant
	most, taken int64
}

// Room begins one for files of a tenant; nil without a limit, and of that both methods do nothing.
func (t *Table) Room(tenantName string) *Room {
	tenant, r := t.inForce(tenantName)
	if r == nil || r.limits.ArtifactBytes == 0 {
		return nil
	}
	return &Room{tenant: tenant, most: r.limits.ArtifactBytes}
}

// Take takes so many bytes more, or none.
func (r *Room) Take(bytes int64) *wire.Error {
	switch {
	case r == nil || bytes == 0:
		return nil
	case r.taken+bytes > r.most:
		r.tenant.refused.files.Add(1)
		return wire.Refuse(wire.CodeTooLarge, fmt.Sprintf("the limit %s of this tenant is %d: such a file never fits", wire.LimitFiles, r.most))
	case !addUpTo(&r.tenant.files, bytes, r.most):
		r.tenant.refused.files.Add(1)
		return limited(wire.LimitFiles, r.most, "bytes of artifacts the tenant may have", waitSeconds)
	}
	r.taken += bytes
	return nil
}

// GiveBack gives all back.
func (r *Room) GiveBack() {
	if r != nil {
		r.tenant.files.Add(-r.taken)
		r.taken = 0
	}
}

// waitSeconds is the advice for a limit that no time frees: a worker does, or an end.
const waitSeconds = 5

func secondsUntil(atMs, nowMs int64) int { return int(max(1, (atMs-nowMs+999)/1000)) }

// tightest is the smaller one of the limits of tenant and subject, without those of 0.
func tightest(r *rules, of func(*wire.DoorLimits) int) int {
	all, each := of(&r.limits.DoorLimits), of(&r.limits.PerCredential)
	if all == 0 || each != 0 && each < all {
		return each
	}
	return all
}

func limited(name string, most int64, what string, afterSeconds int) *wire.Error {
	refusal := wire.Refuse(wire.CodeRateLimited, fmt.Sprintf("the limit %s of this tenant is reached: %d %s", name, most, what))
	refusal.RetryAfterSeconds = afterSeconds
	return refusal
}

// Claim takes what asking for tasks costs. untake gives part of it back; it is nil without
// a limit. againAtMs is when a claim that is refused may succeed.
func (t *Table) Claim(tenantName, subject string, tasks int, nowMs int64) (untake func(tasks int), againAtMs int64, refusal *wire.Error) {
	tenant, r := t.inForce(tenantName)
	if r == nil || r.limits.ClaimsPerSecond == 0 && r.limits.PerCredential.ClaimsPerSecond == 0 {
		return nil, 0, nil
	}
	k := &ticket{tenant: tenant}
	var each *credit.Rate
	if own := r.each.rates(subject, nowMs); own != nil {
		each = &own.claims
	}
	if again := k.take(&r.all.claims, each, tasks, nowMs); again != 0 {
		tenant.refused.claims.Add(1)
		return nil, again, limited(wire.LimitClaims, int64(tightest(r, func(l *wire.DoorLimits) int { return l.ClaimsPerSecond })),
			"tasks may be asked for in a second", secondsUntil(again, nowMs))
	}
	return k.untake, 0, nil
}

// Sessions refuses one more session of a tenant that has so many open, and of a subject
// that has so many.
func (t *Table) Sessions(tenantName string, ofTenant, ofSubject int) *wire.Error {
	tenant, r := t.inForce(tenantName)
	if r == nil {
		return nil
	}
	all, each := r.limits.Sessions, r.limits.PerCredential.Sessions
	most := 0
	switch {
	case all != 0 && ofTenant >= all:
		most = all
	case each != 0 && ofSubject >= each:
		most = each
	default:
		return nil
	}
	tenant.refused.sessions.Add(1)
	return limited(wire.LimitSessions, int64(most), "sessions may be open", waitSeconds)
}

// Policy is a rate as headers tell it.
type Policy struct {
	// PerSecond and Burst are the rate, Left is how many may be made now, FullInSeconds
	// when it is a burst again.
	PerSecond, Burst    int
	Left, FullInSeconds int64
}

// Enqueues is the rate of new tasks of a tenant; false without one.
func (t *Table) Enqueues(tenantName string, nowMs int64) (Policy, bool) {
	_, r := t.inForce(tenantName)
	if r == nil || r.limits.EnqueuesPerSecond == 0 {
		return Policy{}, false
	}
	left, fullInMs := r.all.enqueues.Left(nowMs)
	return Policy{r.limits.EnqueuesPerSecond, r.limits.BurstInForce(), left, (max(fullInMs, 0) + 999) / 1000}, true
}

// Figures are what is used of the limits of a tenant and what they refused.
func (t *Table) Figures(tenantName string) (used wire.UsedOfLimits, refused wire.RefusedByLimit) {
	tenant := t.find(tenantName)
	if tenant == nil {
		return used, refused
	}
	return wire.UsedOfLimits{Pending: tenant.pending.Load(), Bytes: tenant.bytes.Load(), Files: tenant.files.Load()}, wire.RefusedByLimit{
		Enqueues: tenant.refused.enqueues.Load(), Claims: tenant.refused.claims.Load(),
		Pending: tenant.refused.pending.Load(), Bytes: tenant.refused.bytes.Load(), Files: tenant.refused.files.Load(), Sessions: tenant.refused.sessions.Load(),
	}
}

// Names are the tenants that are known, in order.
func (t *Table) Names() []string {
	known := t.known.Load()
	if known == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(*known))
}

// Hold implements shard.Backlog.
func (t *Tenant) Hold(tasks, bytes int64) { t.uncount(-tasks, -bytes) }

// HoldFiles implements shard.Backlog.
func (t *Tenant) HoldFiles(bytes int64) { t.files.Add(bytes) }

// Deliver implements shard.Sink: places of tasks that wait no more, and files that are gone.
func (t *Tenant) Deliver(effects []shard.Effect) {
	for _, e := range effects {
		freed, ok := e.(*shard.Freed)
		if !ok {
			panic(fmt.Sprintf("limit: a tenant was told %T", e))
		}
		t.uncount(int64(freed.Places), freed.Bytes)
		t.files.Add(-freed.FileBytes)
	}
}
