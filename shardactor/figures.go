package shardactor

import (
	"strconv"

	"codeq/internal/meter"
	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
)

// figures are the counts that the loops of all shards take from the outcomes of
// their rounds. Any goroutine may read them.
type figures struct {
	set meter.Set
	// transitions are by cause; the first, of no cause, is nil.
	transitions [record.Causes]*meter.Counter
	suspects    *meter.Counter
	perRound    *meter.Histogram
	perCommit   *meter.Histogram
}

// shardFigures are those of one loop, with its own view of its mailbox.
type shardFigures struct {
	all  *figures
	size *meter.Histogram
	wait *meter.Histogram
}

func newFigures() *figures {
	f := &figures{}
	for cause := record.Cause(1); cause < record.Causes; cause++ {
		f.transitions[cause] = f.set.Counter("codeq_transitions_total",
			"Tasks that moved, by what moved them.", meter.Label{Name: "cause", Value: cause.String()})
	}
	f.suspects = f.set.Counter("codeq_suspect_deliveries_total",
		"Deliveries that did not arrive, each the third in a row of its task or a later one.")
	f.perRound = f.set.Histogram("codeq_round_batch_messages",
		"Messages that one round took from a backlog.", meter.Doubling(1, 11))
	f.perCommit = f.set.Histogram("codeq_commit_batch_transitions",
		"Tasks that one commit moved, of those that moved any.", meter.Doubling(1, 12))
	return f
}

func (f *figures) of(shard int) shardFigures {
	label := shardLabel(shard)
	return shardFigures{
		all: f,
		size: f.set.Histogram("codeq_mailbox_batch_messages",
			"Messages that were drained from the mailbox of a shard at once.", meter.Doubling(1, 15), label),
		wait: f.set.Histogram("codeq_mailbox_wait_seconds",
			"Time that the oldest message of a drained batch had waited.", meter.Doubling(25e-6, 18), label),
	}
}

func shardLabel(shard int) meter.Label { return meter.Label{Name: "shard", Value: strconv.Itoa(shard)} }

// drained counts a backlog from the mailbox.
func (f *shardFigures) drained(box *mailbox.Mailbox[shard.Message], messages int) {
	if messages == 0 {
		return
	}
	f.size.Update(float64(messages))
	f.wait.Update(box.Figures().LastWait.Seconds())
}

// round counts the outcome of a round, once its batch is applied.
func (f *shardFigures) round(out *shard.Outcome) {
	if out.Taken > 0 {
		f.all.perRound.Update(float64(out.Taken))
	}
	if len(out.Events) == 0 {
		return
	}
	f.all.perCommit.Update(float64(len(out.Events)))
	f.all.suspects.Add(out.Suspects)
	var moved [record.Causes]int
	for i := range out.Events {
		moved[out.Events[i].Cause]++
	}
	for i, n := range moved {
		if n > 0 {
			f.all.transitions[i].Add(n)
		}
	}
}

// WriteMetrics adds the counts of the shards, and the lengths of their mailboxes,
// to a page.
func (e *Engine) WriteMetrics(p *meter.Page) {
	p.Add(&e.figures.set)
	boxes := make([]mailbox.Figures, len(e.loops))
	for shard := range e.loops {
		boxes[shard] = e.MailboxFigures(shard)
	}
	family := func(name string, kind meter.Kind, help string, value func(*mailbox.Figures) float64) {
		p.Family("codeq_mailbox_"+name, kind, help)
		for shard := range boxes {
			p.Put(value(&boxes[shard]), shardLabel(shard))
		}
	}
	family("messages", meter.Gauge, "Messages that wait for a shard.",
		func(f *mailbox.Figures) float64 { return float64(f.Depth) })
	family("new_messages", meter.Gauge, "Those of them that are new work.",
		func(f *mailbox.Figures) float64 { return float64(f.New) })
	family("new_messages_bound", meter.Gauge, "With how many of those waiting more are refused because some have stood, 0 for no such bound.",
		func(f *mailbox.Figures) float64 { return float64(f.NewLimit) })
	family("backlog_seconds", meter.Gauge, "For how long every round of a shard has left new work waiting; from 0.2 on new work is limited.",
		func(f *mailbox.Figures) float64 { return float64(f.BacklogForMs) / 1000 })
	family("bytes", meter.Gauge, "What these messages keep in memory.",
		func(f *mailbox.Figures) float64 { return float64(f.DepthBytes) })
	family("high_water_messages", meter.Gauge, "The most messages that ever waited since the start.",
		func(f *mailbox.Figures) float64 { return float64(f.HighWater) })
	family("accepted_total", meter.Total, "Messages that the mailbox of a shard took.",
		func(f *mailbox.Figures) float64 { return float64(f.Pushed) })
	family("merged_total", meter.Total, "Control messages that joined one that waited.",
		func(f *mailbox.Figures) float64 { return float64(f.Merged) })
	family("refused_total", meter.Total, "Messages that a full mailbox refused.",
		func(f *mailbox.Figures) float64 { return float64(f.Refused) })
}
