package sim

import (
	"cmp"
	"slices"
	"strings"

	"codeq/internal/limit"
	"codeq/record"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// Limits of tenants hold at the door, over all shards, crashes and changes: a rate is a
// bucket that begins empty, what waits is counted exactly, and a tenant that has some left
// is let in.

// doors are what the world knows of one life of the process.
type doors struct {
	of      map[string]*doorOf
	tickets map[shard.Door]*ticket
	// freed are places that a round has freed of tasks of a tenant, and nobody was told yet.
	freed []freedPlaces
}

// doorOf is a tenant with limits. all are the buckets of all its subjects, each those of one.
type doorOf struct {
	limits  wire.TenantLimits
	all     buckets
	each    map[string]buckets
	sinceMs int64
	// inWay are the tasks that were let in, are counted, and no shard has seen yet.
	inWay waiting
}

type buckets struct{ enqueues, claims *bucket }

// bucket is a rate: it has so many nanoseconds, of which a task takes everyNs.
type bucket struct {
	everyNs, hasNs, mostNs, atMs int64
}

// ticket is what one request has taken.
type ticket struct {
	door    *doorOf
	counted bool
	taken   []*bucket
}

type freedPlaces struct {
	tenant string
	shard  int
	batch  uint64
	places waiting
	files  int64
}

// waiting are tasks that wait, and the bytes of their payloads.
type waiting struct{ tasks, bytes int64 }

func (w *waiting) add(tasks, bytes int64) { w.tasks, w.bytes = w.tasks+tasks, w.bytes+bytes }

func newBucket(perSecond, burst int, sinceMs int64) *bucket {
	if perSecond == 0 {
		return nil
	}
	every := (int64(1e9) + int64(perSecond) - 1) / int64(perSecond)
	return &bucket{everyNs: every, mostNs: every * int64(burst), atMs: sinceMs}
}

// lacks is for how many nanoseconds n tasks must wait.
func (b *bucket) lacks(n int, nowMs int64) int64 {
	if b == nil {
		return 0
	}
	b.hasNs, b.atMs = min(b.mostNs, b.hasNs+(nowMs-b.atMs)*1e6), nowMs
	return max(0, int64(n)*b.everyNs-b.hasNs)
}

// take takes n tasks, or gives them back if n is less than 0.
func (b *bucket) take(n int) {
	if b != nil {
		b.hasNs -= int64(n) * b.everyNs
	}
}

func newBuckets(l *wire.DoorLimits, sinceMs int64) buckets {
	return buckets{
		newBucket(l.EnqueuesPerSecond, cmp.Or(l.Burst, l.EnqueuesPerSecond), sinceMs),
		newBucket(l.ClaimsPerSecond, max(l.ClaimsPerSecond, 100), sinceMs),
	}
}

// set follows a change, which keeps the rates that stay.
func (d *doors) set(tenant string, l wire.TenantLimits, nowMs int64) {
	was := d.of[tenant]
	if was == nil {
		was = &doorOf{}
		d.of[tenant] = was
	}
	same := func(a, b *wire.DoorLimits) bool {
		return a.EnqueuesPerSecond == b.EnqueuesPerSecond && cmp.Or(a.Burst, a.EnqueuesPerSecond) == cmp.Or(b.Burst, b.EnqueuesPerSecond) &&
			a.ClaimsPerSecond == b.ClaimsPerSecond
	}
	if !same(&was.limits.DoorLimits, &l.DoorLimits) {
		was.all = newBuckets(&l.DoorLimits, nowMs)
	}
	if !same(&was.limits.PerCredential, &l.PerCredential) {
		was.each, was.sinceMs = nil, nowMs
	}
	was.limits = l
}

// subject finds the buckets of a subject.
func (d *doorOf) subject(name string) buckets {
	own, known := d.each[name]
	if !known {
		own = newBuckets(&d.limits.PerCredential, d.sinceMs)
		if d.each == nil {
			d.each = make(map[string]buckets)
		}
		d.each[name] = own
	}
	return own
}

// beginDoors is a start: every rate is empty, and the limits are those that the homes have.
func (w *world) beginDoors() {
	w.doors = &doors{of: make(map[string]*doorOf), tickets: make(map[shard.Door]*ticket)}
	w.model.doors = w.doors
	w.beginNamed()
	for _, tenant := range w.shape.tenants {
		if now := w.holds[limitsKey(tenant)]; now.Version > 0 {
			w.doors.set(tenant, now.Limits(), w.nowMs)
		}
	}
}

// router is the engine as conversations see it, with the answers of its door judged.
type router struct {
	*shardactor.Engine
	world *world
}

// Enter implements session.Router.
func (r router) Enter(tenant, subject string, tasks, bytes int) (shard.Pass, *wire.Error) {
	return r.world.enter(tenant, subject, tasks, bytes)
}

// enter asks the door for new tasks and judges the answer.
func (w *world) enter(tenant, subject string, n, bytes int) (shard.Pass, *wire.Error) {
	w.pendingAddsUp(tenant)
	pass, refusal := w.server.engine.Enter(tenant, subject, n, bytes)
	d := w.doors.of[tenant]
	if d == nil || d.limits == (wire.TenantLimits{}) {
		if pass.Door != nil || refusal != nil {
			violate("who has no limit is let in", "%s: %+v", tenant, refusal)
		}
		return pass, refusal
	}
	l := &d.limits
	burst, each := l.BurstInForce(), l.PerCredential.BurstInForce()
	used, _ := w.server.engine.Limits().Figures(tenant)
	own := d.subject(subject).enqueues
	lacks := d.all.enqueues.lacks(n, w.nowMs)
	if lacks == 0 {
		lacks = own.lacks(n, w.nowMs)
	}
	switch {
	case burst != 0 && n > burst || each != 0 && n > each:
		w.wantRefusal(tenant, refusal, wire.CodeTooLarge, "", 0)
	case l.PendingTasks != 0 && used.Pending+int64(n) > l.PendingTasks && refusal != nil:
		w.wantRefusal(tenant, refusal, wire.CodeRateLimited, wire.LimitPending, 5)
	case l.PendingBytes != 0 && used.Bytes+int64(bytes) > l.PendingBytes && refusal != nil:
		w.wantRefusal(tenant, refusal, wire.CodeRateLimited, wire.LimitBytes, 5)
	case lacks > 0:
		w.wantRefusal(tenant, refusal, wire.CodeRateLimited, wire.LimitEnqueues, secondsOf(lacks))
	case refusal != nil:
		violate("a tenant that has some left is let in", "%d tasks of %s: %+v, %+v wait, limits %+v", n, tenant, refusal, used, *l)
	default:
		if l.PendingTasks != 0 && used.Pending > l.PendingTasks || l.PendingBytes != 0 && used.Bytes > l.PendingBytes {
			violate("no more wait than the limit of a tenant says", "%s has %+v, limits %+v", tenant, used, *l)
		}
		w.doors.takes(d, pass, n, bytes, d.all.enqueues, own)
	}
	return pass, refusal
}

// takes notes what a request has taken.
func (d *doors) takes(door *doorOf, pass shard.Pass, n, bytes int, taken ...*bucket) {
	if want := door.limits.CountsPending(); pass.Counted != want {
		violate("what waits of a tenant is counted", "counted: %v, limits %+v", pass.Counted, door.limits)
	}
	d.tickets[pass.Door] = &ticket{door, pass.Counted, taken}
	for _, b := range taken {
		b.take(n)
	}
	if pass.Counted {
		door.inWay.add(int64(n), int64(bytes))
	}
}

// secondsOf is how long a client is told to wait.
func secondsOf(ns int64) int {
	ms := (ns + 1e6 - 1) / 1e6
	return int(max(1, (ms+999)/1000))
}

// wantRefusal wants a code, the name of a limit in its sentence, and the seconds to wait.
func (w *world) wantRefusal(tenant string, got *wire.Error, code wire.Code, limit string, after int) {
	if got == nil || got.Code != code || !strings.Contains(got.Sentence, limit) || got.RetryAfterSeconds != after {
		violate("a limit of a tenant holds", "%s got %+v, want %s of %s after %d s, limits %+v", tenant, got, code, limit, after, w.doors.of[tenant].limits)
	}
}

// wasTaken notes that a shard has made the task of a message, or has not.
func (d *doors) wasTaken(a *shard.Enqueue, made bool) {
	t := d.tickets[a.Door]
	if t == nil {
		return
	}
	if t.counted {
		t.door.inWay.add(-1, -int64(len(a.Payload)))
	}
	if !made {
		for _, b := range t.taken {
			b.take(-1)
		}
	}
}

// notPosted notes that a mailbox did not take messages.
func (d *doors) notPosted(messages []shard.Message) {
	for _, m := range messages {
		if e, is := m.(*shard.Enqueue); is {
			d.wasTaken(e, false)
		}
	}
}

// noteFreed notes what a round tells doors.
func (d *doors) noteFreed(o *shardactor.Observed, tenantOf func(*limit.Tenant) string) {
	for _, a := range o.Outcome.Effects {
		if to, is := a.Sink.(*limit.Tenant); is {
			freed := a.Effect.(*shard.Freed)
			d.freed = append(d.freed, freedPlaces{tenantOf(to), o.Shard, o.Batch + 1, waiting{int64(freed.Places), freed.Bytes}, freed.FileBytes})
		}
	}
}

// told notes that the doors have heard of a sync.
func (d *doors) told(shardNo int, upTo uint64) {
	d.freed = slices.DeleteFunc(d.freed, func(f freedPlaces) bool { return f.shard == shardNo && f.batch <= upTo })
}

// nameOf is whose door it is.
func (w *world) nameOf(t *limit.Tenant) string {
	for _, tenant := range w.shape.tenants {
		if w.server.engine.Limits().Of(tenant) == t {
			return tenant
		}
	}
	violate("a door is of a tenant", "%p", t)
	return ""
}

// pendingAddsUp holds the tasks of a tenant that wait, and the files that its tasks have, as its
// door counts them, against the model: those of shards that count, those in the way, and those of
// which it has not heard that they wait no more, or are gone.
func (w *world) pendingAddsUp(tenant string) {
	var want waiting
	var files int64
	if d := w.doors.of[tenant]; d != nil {
		want = d.inWay
	}
	for _, t := range w.model.all {
		if t.tenant != tenant || t.command == hookCommand || !w.model.counts[t.shard][tenant] {
			continue
		}
		if files += t.fileBytes(); t.waits() {
			want.add(1, int64(len(t.payload)))
		}
	}
	for _, f := range w.doors.freed {
		if f.tenant == tenant {
			want.add(f.places.tasks, f.places.bytes)
			files += f.files
		}
	}
	got, _ := w.server.engine.Limits().Figures(tenant)
	if (waiting{got.Pending, got.Bytes}) != want {
		violate("what waits of a tenant is counted", "%s: its door says %+v, want %+v", tenant, got, want)
	}
	if got.Files != files {
		violate("the files of a tenant are counted", "%s: its door says %+v, want %d", tenant, got, files)
	}
}

// weightOf is how many turns a tenant has in a shard.
func (m *model) weightOf(shardNo int, tenant string) int {
	r := m.named[shardNo][limitsKey(tenant)]
	return max(1, r.Limits().Weight)
}

// guarded is a world whose tenants get limits.
func (s *shape) guarded() {
	s.guards = true
	s.adds(operation{name: "limit tenants", weight: 60, do: (*world).limitTenant})
}

// limitTenant is somebody who replaces the limits of a tenant.
func (w *world) limitTenant() {
	c := w.chance
	l := wire.TenantLimits{PendingTasks: pick(c, []int64{0, 0, 3, 12, 40}), PendingBytes: pick(c, []int64{0, 0, 0, 300, 5000}), Weight: pick(c, []int{0, 1, 2, 5})}
	for _, door := range []*wire.DoorLimits{&l.DoorLimits, &l.PerCredential} {
		door.EnqueuesPerSecond, door.ClaimsPerSecond = pick(c, []int{0, 0, 1, 5, 50}), pick(c, []int{0, 0, 1, 30})
		if door.EnqueuesPerSecond > 0 {
			door.Burst = pick(c, []int{0, 1, 10})
		}
	}
	if l.Weight == 5 {
		l.ArtifactBytes = 100 // uploads are not held up by it here, they count
	}
	if c.oneIn(4) {
		l = wire.TenantLimits{}
	}
	w.setLimits(pick(c, w.shape.tenants), &l)
}

func (w *world) setLimits(tenant string, l *wire.TenantLimits) {
	value := ""
	if *l != (wire.TenantLimits{}) {
		value = string(wire.AppendTenantLimits(nil, l))
	}
	w.setNamed(limitsKey(tenant), value, func(now record.Named) { w.doors.set(tenant, now.Limits(), w.nowMs) })
}

// freeTenants sets every tenant free.
func (w *world) freeTenants() {
	if !w.shape.guards {
		return
	}
	for _, tenant := range w.shape.tenants {
		w.setLimits(tenant, &wire.TenantLimits{})
		w.settle()
	}
}

// enterClaim asks the door for a claim and judges the answer.
func (w *world) enterClaim(tenant, subject string, n int) (untake func(got int), refused bool) {
	giveBack, _, refusal := w.server.engine.Limits().Claim(tenant, subject, n, w.nowMs)
	d := w.doors.of[tenant]
	if d == nil || d.limits.ClaimsPerSecond == 0 && d.limits.PerCredential.ClaimsPerSecond == 0 {
		if giveBack != nil || refusal != nil {
			violate("who has no limit is let in", "%s: %+v", tenant, refusal)
		}
		return func(int) {}, false
	}
	all, own := d.all.claims, d.subject(subject).claims
	lacks := all.lacks(n, w.nowMs)
	if lacks == 0 {
		lacks = own.lacks(n, w.nowMs)
	}
	if lacks > 0 {
		w.wantRefusal(tenant, refusal, wire.CodeRateLimited, wire.LimitClaims, secondsOf(lacks))
		return nil, true
	}
	if refusal != nil {
		violate("a tenant that has some left is let in", "a claim of %d by %s: %+v", n, tenant, refusal)
	}
	all.take(n)
	own.take(n)
	return func(got int) {
		if left := n - max(got, 1); left > 0 {
			giveBack(left)
			all.take(-left)
			own.take(-left)
		}
	}, false
}
