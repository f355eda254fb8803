package sim

import (
	"codeq/mailbox"
	"codeq/shardactor"
)

// behind is what the world knows of the new work that one mailbox holds: since
// when no run of its shard has come to the end of it.
type behind struct {
	sinceMs int64
	is      bool
}

// standingForMs and standingDrains are what the protocol says of a queue that
// stands: how long it may before less is taken, and how much of it then.
const (
	standingForMs  = 100
	standingDrains = 2
)

// post pushes messages to a shard, as any client of the engine does, and judges
// the answer.
func (w *world) post(shard int, messages []shardactor.Message, bytes int, class mailbox.Class) mailbox.Verdict {
	before := w.server.engine.MailboxFigures(shard)
	verdict := w.server.engine.Post(shard, messages, bytes, class)
	most := w.shape.mailbox
	if class == mailbox.ClassNew {
		most.Messages -= most.Messages / 4
		most.Bytes -= most.Bytes / 4
	}
	// Control messages take no place, so with them there may be less room than it
	// looks like, never more.
	mayBeFull := before.Depth+len(messages) > most.Messages || before.DepthBytes+bytes > most.Bytes
	stands := class == mailbox.ClassNew && w.stands(shard, &before)
	switch {
	case verdict == mailbox.Full && !mayBeFull && !stands:
		violate("a refusal has its reason", "shard %d: %d messages of class %d were refused, %d waited, %d of them new, behind %+v",
			shard, len(messages), class, before.Depth, before.New, w.server.behind[shard])
	case verdict == mailbox.Accepted && stands:
		violate("a queue that stands does not grow", "shard %d took new work, %d waited at %d ms, behind %+v",
			shard, before.New, w.nowMs, w.server.behind[shard])
	}
	if verdict == mailbox.Full && !mayBeFull {
		w.trace.say("  new work stands in shard %d", shard)
	}
	return verdict
}

func (w *world) stands(shard int, f *mailbox.Figures) bool {
	b := w.server.behind[shard]
	perDrain := w.shape.mailbox.NewPerDrain
	return perDrain > 0 && b.is && w.nowMs >= b.sinceMs+standingForMs && f.New >= standingDrains*perDrain
}

// noteBehind looks at what a run has left.
func (w *world) noteBehind(shard int) {
	b := &w.server.behind[shard]
	was := b.is
	b.is = w.server.engine.MailboxFigures(shard).New > 0
	if b.is && !was {
		b.sinceMs = w.nowMs
	}
}
