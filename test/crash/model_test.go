package crash

import (
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"codeq/wire"
)

// task is what must be true of one task between two operations.
type task struct {
	exists bool
	id     wire.TaskID // zero while no answer has named it
	// status is pending for every task that has not ended.
	status     wire.Status
	deliveries int
	attempts   int

	// token is the newest delivery, zero when that never arrived at a worker.
	// live: nothing has ended it. over: its worker has.
	token wire.Token
	live  bool
	over  bool

	// The completion that stands.
	result string
	by     wire.Token
}

func (s *task) open() bool { return s.exists && s.status == wire.StatusPending }

// holds reports whether a token is the delivery under way.
func (s *task) holds(token wire.Token) bool { return s.open() && s.live && s.token == token }

// mayComplete reports whether a result under a token counts: also one whose
// delivery has lapsed, as long as nobody took the task since.
func (s *task) mayComplete(token wire.Token) bool { return s.open() && s.token == token && !s.over }

// unseen is a delivery that was made and never arrived.
func (s *task) unseen(deliveries int, live bool) {
	s.deliveries, s.token, s.live, s.over = deliveries, wire.Token{}, live, true
}

// model judges the operations on one task.
var model = porcupine.Model{
	Init: func() any { return task{} },
	Step: func(state, in, out any) (bool, any) {
		s, i, o := state.(task), in.(input), out.(output)
		if putOff(o.code) {
			return true, s // the server took nothing
		}
		ok := step(&s, i, o)
		return ok, s
	},
}

// putOff is a refusal of the server's state and not of the task's.
func putOff(code wire.Code) bool {
	return code == wire.CodeOverloaded || code == wire.CodeDraining || code == wire.CodeStorageFull
}

func step(s *task, in input, out output) bool {
	switch in.verb {
	case enqueue:
		return s.enqueue(out)
	case read:
		return out.unknown || s.read(out)
	case grant:
		return s.grant(in, out)
	case complete:
		return s.complete(in, out)
	case giveBack:
		return s.giveBack(in, out)
	case heartbeat:
		return out.unknown || s.judge(in, out)
	case callOff:
		return s.cancel(out)
	default:
		if s.token == in.token {
			s.live = false
		}
		return true
	}
}

// named says whether an answer names the task there is.
func (s *task) named(id wire.TaskID) bool {
	if s.id.IsZero() {
		s.id = id
	}
	return id.IsZero() || s.id == id
}

// enqueue makes the task once; whoever asks again, with its key, gets the same.
func (s *task) enqueue(out output) bool {
	if out.code != "" || out.replayed != s.exists && !out.unknown && !out.quiet {
		return false
	}
	if !s.exists {
		*s = task{exists: true, status: wire.StatusPending}
	}
	return s.named(out.id)
}

func (s *task) read(out output) bool {
	if out.code == wire.CodeTaskNotFound {
		return !s.exists
	}
	// What is counted only grows, and nothing is a failed attempt that was no
	// delivery.
	if out.code != "" || !s.exists || !s.named(out.id) || out.deliveries < s.deliveries ||
		out.attempts < s.attempts || out.attempts > out.deliveries {
		return false
	}
	s.attempts = out.attempts
	if out.status.Terminal() || s.status.Terminal() {
		return out.status == s.status && (out.result == "" || out.result == s.result)
	}
	live := out.status == wire.StatusInProgress
	if out.deliveries == s.deliveries {
		return live == s.live
	}
	s.unseen(out.deliveries, live)
	return true
}

// grant is a delivery that arrived. There is one at a time.
func (s *task) grant(in input, out output) bool {
	if !s.open() || !s.named(out.id) || out.attempts < s.attempts || out.attempts >= in.delivery {
		return false
	}
	seen := in.delivery == s.deliveries && s.token.IsZero() && s.live // a reader saw it first
	if !seen && (in.delivery <= s.deliveries || s.live && !s.token.IsZero()) {
		return false
	}
	s.deliveries, s.attempts = in.delivery, out.attempts
	s.token, s.live, s.over = in.token, true, false
	return true
}

// complete ends the task, once and for good.
func (s *task) complete(in input, out output) bool {
	again := s.status.Terminal() && s.by == in.token && s.status == in.status
	switch {
	case out.unknown || out.code == "":
		if s.mayComplete(in.token) {
			s.status, s.result, s.by, s.live = in.status, in.result, in.token, false
			return true
		}
		return out.unknown || again
	case out.code == wire.CodeLeaseLost:
		if s.mayComplete(in.token) {
			s.unseen(s.deliveries+1, true) // somebody must have taken it
		}
		return s.open()
	case out.code == wire.CodeNotInProgress:
		return s.status.Terminal() && !again
	}
	return false
}

// cancel ends a task that nothing else has ended. It may be said again.
func (s *task) cancel(out output) bool {
	switch {
	case out.unknown || out.code == "":
		if s.open() {
			s.status, s.live = wire.StatusCancelled, false
			return true
		}
		return out.unknown || s.status == wire.StatusCancelled
	case out.code == wire.CodeAlreadyTerminal:
		return s.status.Terminal() && s.status != wire.StatusCancelled
	}
	return out.code == wire.CodeTaskNotFound && !s.exists
}

// giveBack ends the delivery and not the task.
func (s *task) giveBack(in input, out output) bool {
	if !out.unknown && out.code != "" {
		return s.judge(in, out)
	}
	if !s.holds(in.token) {
		return out.unknown
	}
	s.live, s.over = false, true
	if in.costs {
		s.attempts++
	}
	return true
}

// judge says whether the answer to whoever says to hold a delivery is right.
func (s *task) judge(in input, out output) bool {
	switch out.code {
	case "":
		return s.holds(in.token)
	case codeLost:
		return !s.holds(in.token)
	case wire.CodeLeaseLost:
		return s.open() && !s.holds(in.token)
	case wire.CodeNotInProgress:
		return s.status.Terminal()
	}
	return false
}

// codeLost stands for the list of a heartbeat frame: it names what was lost and
// not why.
const codeLost wire.Code = "lost"

// checkFor bounds the search for an order of one task's operations.
const checkFor = 20 * time.Second

// verdict is what the search came to: tasks for which there is no order that
// explains everything, and tasks of which it did not see the end in its time. To
// take those for wrong would be a guess.
type verdict struct{ unexplained, undecided []string }

func (v *verdict) add(label string, found porcupine.CheckResult) {
	switch found {
	case porcupine.Ok:
	case porcupine.Illegal:
		v.unexplained = append(v.unexplained, label)
	default:
		v.undecided = append(v.undecided, label)
	}
}

// check looks for an order for each task.
func check(tasks map[string][]porcupine.Operation) (v verdict) {
	for label, operations := range tasks {
		v.add(label, porcupine.CheckOperationsTimeout(model, withoutRepeats(operations), checkFor))
	}
	slices.Sort(v.unexplained)
	slices.Sort(v.undecided)
	return v
}

// withoutRepeats leaves out what was asked again in the same words while no answer had come to the
// first time, nor came to this one. All that such questions can do is done by one of them, once, and
// the first may be the one, whenever that was: the others change no verdict. Each of them would double
// the search, and a client asks fifty times while nobody leads.
func withoutRepeats(operations []porcupine.Operation) (kept []porcupine.Operation) {
	first := make(map[input]porcupine.Operation)
	for _, o := range operations {
		if !o.Output.(output).unknown {
			kept = append(kept, o)
			continue
		}
		in := o.Input.(input)
		in.by = bySession // the way changes nothing
		if earlier, is := first[in]; !is || o.Call < earlier.Call {
			first[in] = o
		}
	}
	return slices.AppendSeq(kept, maps.Values(first))
}
