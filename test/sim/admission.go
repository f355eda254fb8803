package sim

import (
	"slices"

	"codeq/mailbox"
	"codeq/shard"
)

// behind is what the world knows of the new work that one mailbox holds: since
// when no run of its shard has come to the end of it, how much of what waited then
// the runs have not counted off, and when it was last seen
// to have stood, with how much of it could wait then.
type behind struct {
	sinceMs int64
	is      bool
	passing int
	stoodMs int64
	bound   int
}

// What the protocol says of new work that stands: after how long less of it is
// taken, the first time and while there is a bound, by how much less with each
// run, and how long none may have stood for twice as much. A bound of so many
// doublings is none.
const (
	standingForMs = 200
	againForMs    = 100
	shrinkPart    = 4
	reopenMs      = 5000
	doublings     = 24
)

// fromMs is when what waits has waited for long enough to stand.
func (b *behind) fromMs() int64 {
	if b.bound > 0 {
		return b.sinceMs + againForMs
	}
	return b.sinceMs + standingForMs
}

// now is the bound at a moment, 0 for none.
func (b *behind) now(nowMs int64) int {
	bound := b.bound
	if b.is && nowMs >= b.fromMs() && b.stoodMs >= b.fromMs() {
		return bound
	}
	for at, n := b.stoodMs+reopenMs, 0; bound > 0 && at <= nowMs; at, n = at+reopenMs, n+1 {
		if n == doublings-1 {
			return 0
		}
		bound *= 2
	}
	return bound
}

// look notes whether what waits stands; shrink is what the bound comes down by
// if that was known.
func (b *behind) look(waiting, perDrain, shrink int, nowMs int64) {
	if !b.is || nowMs < b.fromMs() {
		return
	}
	known := b.bound > 0 && b.stoodMs >= b.fromMs()
	bound := b.now(nowMs)
	switch {
	case known:
		bound -= shrink
	case bound == 0 || waiting < bound:
		bound = waiting
	}
	b.bound, b.stoodMs = max(bound, perDrain), nowMs
}

// newWork is what waits in a mailbox of one push of new work. Its bytes wait as long as its
// last message.
type newWork struct {
	messages []shard.Message
	tenant   string
	bytes    int
}

// tenantOf is whose new work a message is.
func tenantOf(message shard.Message) string {
	switch m := message.(type) {
	case *shard.Enqueue:
		return m.Tenant
	case *shard.Claim:
		return m.Consumer.Tenant
	case *shard.Cleanup:
		return m.Queues[0].Tenant
	case *shard.Manage:
		return m.Tenant
	case *shard.Explain:
		return m.Tenant
	}
	violate("new work has an owner", "%T", message)
	return ""
}

// newOf sums up what waits in a mailbox of a tenant, of all for "".
func (s *server) newOf(shardNo int, tenant string) (messages, bytes int) {
	for _, n := range s.waiting[shardNo] {
		if n.tenant == tenant || tenant == "" {
			messages, bytes = messages+len(n.messages), bytes+n.bytes
		}
	}
	return messages, bytes
}

// post pushes messages to a shard, as any client of the engine does, and judges
// the answer.
func (w *world) post(shardNo int, messages []shard.Message, bytes int, class mailbox.Class) mailbox.Verdict {
	before := w.server.engine.MailboxFigures(shardNo)
	verdict := w.server.engine.Post(shardNo, messages, bytes, class)
	if verdict != mailbox.Accepted {
		w.doors.notPosted(messages)
	}
	if class == mailbox.ClassNew {
		w.judgeNew(shardNo, &newWork{slices.Clone(messages), tenantOf(messages[0]), bytes}, &before, verdict)
		return verdict
	}
	// Control messages take no place, so with them there may be less room than it
	// looks like, never more.
	most := &w.shape.mailbox
	if verdict == mailbox.Full && before.Depth+len(messages) <= most.Messages && before.DepthBytes+bytes <= most.Bytes {
		violate("a refusal has its reason", "shard %d: %d messages that end work were refused, %d waited", shardNo, len(messages), before.Depth)
	}
	return verdict
}

// judgeNew judges the answer to a push of new work.
func (w *world) judgeNew(shardNo int, n *newWork, before *mailbox.Figures, verdict mailbox.Verdict) {
	s, most := w.server, w.shape.mailbox
	own, ownBytes := s.newOf(shardNo, n.tenant)
	all, _ := s.newOf(shardNo, "")
	if all != before.New {
		violate("new work is counted", "shard %d has %d, its mailbox says %d", shardNo, all, before.New)
	}
	spared, half := 4, false
	if own < all {
		spared = 8
		half = own > 0 && (own+len(n.messages) > (most.Messages-most.Messages/4)/2 || ownBytes+n.bytes > (most.Bytes-most.Bytes/4)/2)
	}
	full := before.Depth+len(n.messages) > most.Messages-most.Messages/spared || before.DepthBytes+n.bytes > most.Bytes-most.Bytes/spared
	stands := w.stands(shardNo, n.tenant)
	switch {
	case verdict == mailbox.Full && !half && !full && !stands:
		violate("a refusal has its reason", "shard %d: %+v was refused, %d waited, new work %+v, behind %+v",
			shardNo, *n, before.Depth, s.waiting[shardNo], s.behind[shardNo])
	case verdict == mailbox.Accepted && half:
		violate("no tenant has more than half while another waits", "shard %d took %+v beside %+v", shardNo, *n, s.waiting[shardNo])
	case verdict == mailbox.Accepted && stands:
		violate("a queue that stands does not grow", "shard %d took %+v beside %+v at %d ms, behind %+v",
			shardNo, *n, s.waiting[shardNo], w.nowMs, s.behind[shardNo])
	case verdict == mailbox.Accepted:
		s.waiting[shardNo] = append(s.waiting[shardNo], *n)
	}
	if verdict == mailbox.Full && !full {
		w.trace.say("  new work stands in shard %d", shardNo)
	}
}

// stands says that as much new work waits as a tenant may add to.
func (w *world) stands(shardNo int, tenant string) bool {
	s := w.server
	b, perDrain := &s.behind[shardNo], w.shape.mailbox.NewPerDrain
	if perDrain == 0 {
		return false
	}
	all, _ := s.newOf(shardNo, "")
	own, _ := s.newOf(shardNo, tenant)
	b.look(all, perDrain, 0, w.nowMs)
	bound := b.now(w.nowMs)
	switch {
	case bound == 0:
		return false
	case own == all:
		return all >= bound
	}
	counted := 0
	for _, other := range w.shape.tenants {
		has, _ := s.newOf(shardNo, other)
		counted += min(has, (bound+1)/2)
	}
	return 2*own >= bound || counted >= bound
}

// drained notes what a round took of the new work that waits.
func (s *server) drained(shardNo int, messages []shard.Message) {
	for _, m := range messages {
		i := slices.IndexFunc(s.waiting[shardNo], func(n newWork) bool { return n.messages[0] == m })
		if i < 0 {
			continue // it is no new work
		}
		if n := &s.waiting[shardNo][i]; len(n.messages) > 1 {
			n.messages = n.messages[1:]
			continue
		}
		s.waiting[shardNo] = slices.Delete(s.waiting[shardNo], i, i+1)
	}
}

// runs lets a shard work through its mailbox, and looks whose new work it took: whoever
// waits has a turn before long, and nobody makes the round of others longer.
func (w *world) runs(shardNo int, run func()) {
	s, waited, sharing := w.server, make([]int, len(tenants)), 0
	for i, tenant := range tenants {
		if waited[i], _ = s.newOf(shardNo, tenant); waited[i] > 0 {
			sharing++
		}
	}
	before, _ := s.newOf(shardNo, "")
	run()
	left, _ := s.newOf(shardNo, "")
	if most := w.shape.mailbox.NewPerDrain; sharing > 1 && most > 0 && before-left > most {
		violate("rounds are short while tenants share a shard", "shard %d took %d of %d in one run, at most %d", shardNo, before-left, before, most)
	}
	for i, tenant := range tenants {
		passed := &s.passed[shardNo][i]
		if left, _ := s.newOf(shardNo, tenant); waited[i] == 0 || left < waited[i] {
			*passed = 0
		} else if *passed++; *passed >= len(w.shape.tenants) {
			violate("no new work waits for that of others", "shard %d took none of %s in %d runs, %+v wait", shardNo, tenant, *passed, s.waiting[shardNo])
		}
	}
}

// noteBehind looks at what a run has left that began at a time, when so much new work waited.
func (w *world) noteBehind(shard, before int, nowMs int64) {
	b, left := &w.server.behind[shard], w.server.engine.MailboxFigures(shard).New
	was := b.is
	b.is, b.passing = left > 0, b.passing-(before-left)
	if b.is && (!was || b.passing <= 0) {
		b.sinceMs, b.passing = nowMs, left
	}
	perDrain := w.shape.mailbox.NewPerDrain
	b.look(left, perDrain, max(perDrain/shrinkPart, 1), nowMs)
	if !b.is && b.now(nowMs) == 0 {
		b.bound = 0
	}
}
