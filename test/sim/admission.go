package sim

import (
	"codeq/mailbox"
	"codeq/shard"
)

// behind is what the world knows of the new work that one mailbox holds: since
// when no run of its shard has come to the end of it, and when it was last seen
// to have stood, with how much of it could wait then.
type behind struct {
	sinceMs int64
	is      bool
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

// post pushes messages to a shard, as any client of the engine does, and judges
// the answer.
func (w *world) post(shardNo int, messages []shard.Message, bytes int, class mailbox.Class) mailbox.Verdict {
	before := w.server.engine.MailboxFigures(shardNo)
	verdict := w.server.engine.Post(shardNo, messages, bytes, class)
	most := w.shape.mailbox
	if class == mailbox.ClassNew {
		most.Messages -= most.Messages / 4
		most.Bytes -= most.Bytes / 4
	}
	// Control messages take no place, so with them there may be less room than it
	// looks like, never more.
	mayBeFull := before.Depth+len(messages) > most.Messages || before.DepthBytes+bytes > most.Bytes
	stands := class == mailbox.ClassNew && w.stands(shardNo, &before)
	switch {
	case verdict == mailbox.Full && !mayBeFull && !stands:
		violate("a refusal has its reason", "shard %d: %d messages of class %d were refused, %d waited, %d of them new, behind %+v",
			shardNo, len(messages), class, before.Depth, before.New, w.server.behind[shardNo])
	case verdict == mailbox.Accepted && stands:
		violate("a queue that stands does not grow", "shard %d took new work, %d waited at %d ms, behind %+v",
			shardNo, before.New, w.nowMs, w.server.behind[shardNo])
	}
	if verdict == mailbox.Full && !mayBeFull {
		w.trace.say("  new work stands in shard %d", shardNo)
	}
	return verdict
}

// stands says that as much new work waits as may.
func (w *world) stands(shard int, f *mailbox.Figures) bool {
	b, perDrain := &w.server.behind[shard], w.shape.mailbox.NewPerDrain
	if perDrain == 0 {
		return false
	}
	b.look(f.New, perDrain, 0, w.nowMs)
	bound := b.now(w.nowMs)
	return bound > 0 && f.New >= bound
}

// noteBehind looks at what a run has left.
func (w *world) noteBehind(shard int) {
	b, left := &w.server.behind[shard], w.server.engine.MailboxFigures(shard).New
	was := b.is
	b.is = left > 0
	if b.is && !was {
		b.sinceMs = w.nowMs
	}
	perDrain := w.shape.mailbox.NewPerDrain
	b.look(left, perDrain, max(perDrain/shrinkPart, 1), w.nowMs)
	if !b.is && b.now(w.nowMs) == 0 {
		b.bound = 0
	}
}
