package sim

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"codeq/shard"
	"codeq/wire"
)

// report is what one run came to.
type report struct {
	sum                    uint64
	steps                  int
	rounds, syncs, crashes int
	together               [fates]int
	// failed is nil when every property held. panicked says that production
	// code stopped by itself over a broken invariant.
	failed   *violation
	panicked bool
	story    []string
}

// script is a run to make: a seed and the numbers of its steps.
type script struct {
	seed  uint64
	steps []int
}

func firstSteps(n int) []int {
	steps := make([]int, n)
	for i := range steps {
		steps[i] = i
	}
	return steps
}

// run makes one run.
func run(s script, recording bool) (r report) {
	var w *world
	defer func() {
		r.caught(recover())
		if w == nil {
			return
		}
		r.together = w.together
		r.sum, r.rounds, r.syncs, r.crashes, r.story = w.trace.sum, w.rounds, w.syncs, w.crashes, w.trace.lines
		if w.server == nil {
			return
		}
		w.server.stop()
		if err := errors.Join(w.server.close(), w.cluster.close()); err != nil && r.failed == nil {
			r.failed = &violation{"a store closes", err.Error()}
		}
	}()
	w = newWorld(s.seed, recording)
	for _, number := range s.steps {
		r.steps++
		w.step(number)
	}
	w.drain()
	w.mustBeEmpty()
	w.audience.settle()
	w.everyNodeHasAll()
	return r
}

// caught makes a failure of a panic.
func (r *report) caught(p any) {
	switch p := p.(type) {
	case nil:
	case *violation:
		r.failed = p
	case *death:
		r.failed = &violation{"only a fault of the disk ends the process", p.cause.Error()}
	case *broken:
		r.panicked = true
		r.failed = &violation{"no invariant breaks", p.Error()}
	default:
		r.panicked = true
		r.failed = &violation{"no invariant breaks", fmt.Sprintf("%v\n%s", p, where(debug.Stack()))}
	}
}

// where is the part of a stack between the panic and the simulator.
func where(stack []byte) string {
	_, stackText, _ := strings.Cut(string(stack), "panic(")
	lines := strings.Split(stackText, "\n")
	return strings.Join(lines[:min(len(lines), 24)], "\n")
}

func (w *world) messageText(message shard.Message) string {
	switch m := message.(type) {
	case *shard.Enqueue:
		return fmt.Sprintf("enqueue %s: %s of %s, priority %d, key %q, delay %d, at %d", w.name(m.ID), m.Command, m.Tenant,
			m.Priority, m.IdempotencyKey, m.DelaySeconds, max(0, m.RunAtMs-epochMs))
	case *shard.Subscribe:
		return fmt.Sprintf("subscribe %v to %v for %d ms", m.Consumer.WorkerID, m.Commands, m.LeaseForMs)
	case *shard.HandedCredit:
		return fmt.Sprintf("credit of %v: %d", m.Consumer.WorkerID, m.Credits)
	case *shard.Received:
		return fmt.Sprintf("received by %v: %s", m.Consumer.WorkerID, w.refsText(m.Tasks))
	case *shard.Result:
		return fmt.Sprintf("result of %s: %s by %s", w.refsText([]wire.TaskRef{m.TaskRef}), m.Status, m.Subject)
	case *shard.End:
		how := []string{"nack", "abandon", "release", "put off"}[m.How]
		return fmt.Sprintf("%s of %s: delay %d, counted: %t", how, w.refsText([]wire.TaskRef{m.TaskRef}), m.DelaySeconds, m.Counts())
	case *shard.Heartbeat:
		who := "HTTP"
		if m.Consumer != nil {
			who = fmt.Sprintf("%v/%d", m.Consumer.WorkerID, m.Consumer.Epoch)
		}
		return fmt.Sprintf("heartbeat of %s: %s for %d ms", who, w.refsText(m.Tasks), m.ExtendForMs)
	case *shard.Report:
		return fmt.Sprintf("report of %s: %+v %+v", w.refsText([]wire.TaskRef{m.TaskRef}), m.Progress, m.Output)
	case *shard.SessionGone:
		return fmt.Sprintf("gone %v/%d", m.Consumer.WorkerID, m.Consumer.Epoch)
	case *shard.Resume:
		return fmt.Sprintf("resume %v/%d", m.Consumer.WorkerID, m.Consumer.Epoch)
	case *shard.Cleanup:
		return fmt.Sprintf("cleanup of %v before %d, %d at most", m.Queues, m.BeforeMs-epochMs, m.Limit)
	case *shard.Freeze:
		return fmt.Sprintf("freeze %v", m.Queue)
	case *shard.Configure:
		return fmt.Sprintf("configure %v", m.Queue)
	case *shard.CopySettings:
		return fmt.Sprintf("copy of the settings of %v: %+v, thaw %v", m.Queue, m.Settings, m.Thaw)
	case *shard.Manage:
		return fmt.Sprintf("%s %s that ended at %d", [...]string{"cancel", "replay", "purge", "run", "move", "take back"}[m.Do], w.name(m.TaskID), m.EndedAtMs)
	case *shard.Claim:
		return fmt.Sprintf("claim of %v by %s, looks %v", m.Commands, m.Consumer.WorkerID, m.CountOnly)
	case *shard.Extend:
		return fmt.Sprintf("extend %s for %d ms", w.refsText([]wire.TaskRef{m.TaskRef}), m.ExtendForMs)
	case *shard.Undelivered:
		return fmt.Sprintf("undelivered to %v: %s", m.Consumer.WorkerID, w.refsText(m.Tasks))
	case *shard.Explain:
		return "explain " + w.name(m.TaskID)
	case *shard.TellLeases:
		return fmt.Sprintf("tell the leases of %d tasks", len(m.Tasks))
	case *shard.Watch:
		return "watch " + w.name(m.TaskID)
	}
	return fmt.Sprintf("%T", message)
}

func (w *world) refsText(refs []wire.TaskRef) string {
	words := make([]string, 0, len(refs))
	for _, ref := range refs {
		words = append(words, fmt.Sprintf("%s/%.6s", w.name(ref.TaskID), ref.Token))
	}
	return strings.Join(words, " ")
}

func (w *world) effectText(e shard.Effect) string {
	switch e := e.(type) {
	case *shard.Granted:
		return fmt.Sprintf("granted %s/%.6s, delivery %d", w.name(e.Task.ID), e.Token, e.Task.Deliveries)
	case *shard.Enqueued:
		return fmt.Sprintf("enqueued %s, replayed %v", w.name(e.TaskID), e.Replayed)
	case *shard.Refused:
		return fmt.Sprintf("refused %s: %s: %s", w.name(e.TaskID), e.Err.Code, e.Err.Sentence)
	case *shard.Completed:
		return fmt.Sprintf("completed %s: %s, credit reused %v", w.name(e.Record.TaskID), e.Record.Status, e.CreditReused)
	case *shard.Requeued:
		return fmt.Sprintf("%s %s", e.Status, w.name(e.TaskID))
	case *shard.Resumed:
		return "resumed, held " + w.refsText(e.Held)
	case *shard.Explained:
		if e.Waiting == nil {
			return "explained " + w.name(e.TaskID) + ", which does not wait"
		}
		return fmt.Sprintf("explained %s: %+v", w.name(e.TaskID), *e.Waiting)
	case *shard.LeasesTold:
		return fmt.Sprintf("told leases %+v", e.Leases)
	case *shard.Managed:
		return [...]string{"cancelled ", "replayed ", "purged ", "run ", "moved ", "taken back "}[e.Did] + w.name(e.TaskID)
	case *shard.Answered:
		return fmt.Sprintf("answered elsewhere for %s/%.6s", w.name(e.TaskID), e.Token)
	case *shard.Revoked:
		return fmt.Sprintf("revoked %s/%.6s", w.name(e.TaskID), e.Token)
	}
	return fmt.Sprintf("%T", e)
}
