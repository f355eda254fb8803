package crash

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"codeq/wire"
)

// doctors change the true history of one task in one place, as the faults of a
// queue would. Each says at which operation, or that the task has no place for
// it.
var doctors = map[string]func(operations []porcupine.Operation) (changed []porcupine.Operation, ok bool){
	"a lost acknowledgement": func(operations []porcupine.Operation) ([]porcupine.Operation, bool) {
		return changeRead(operations, func(out *output) { *out = output{code: wire.CodeTaskNotFound} })
	},
	"another completion": func(operations []porcupine.Operation) ([]porcupine.Operation, bool) {
		return changeRead(operations, func(out *output) { out.result += "?" })
	},
	"a stale read": staleRead,
	"a claim of what has ended": func(operations []porcupine.Operation) ([]porcupine.Operation, bool) {
		read, ok := lastRead(operations)
		if !ok {
			return nil, false
		}
		out := operations[read].Output.(output)
		return append(slices.Clone(operations), porcupine.Operation{
			Input:  input{verb: grant, by: byHTTP, token: wire.Token{1}, delivery: out.deliveries + 1},
			Output: output{id: out.id, attempts: out.attempts}, Call: operations[read].Return + 1, Return: operations[read].Return + 2,
		}), true
	},
	"a claim of what another claim holds": claimTwice,
	"a second task for the key of a batch": func(operations []porcupine.Operation) ([]porcupine.Operation, bool) {
		return changeFirst(operations, func(in input, out output) bool { return in.verb == enqueue && in.by == inBatch && out.quiet },
			func(out *output) { out.id = wire.TaskID{1} })
	},
	"a completion over HTTP that is refused and counts":      func(o []porcupine.Operation) ([]porcupine.Operation, bool) { return refuseTheOnly(o, byHTTP) },
	"a completion in a batch that is refused and counts":     func(o []porcupine.Operation) ([]porcupine.Operation, bool) { return refuseTheOnly(o, inBatch) },
	"a completion over a session that is refused and counts": func(o []porcupine.Operation) ([]porcupine.Operation, bool) { return refuseTheOnly(o, bySession) },
}

// lastRead finds the read that came after everything else and found the end, so
// that nothing else can explain what is changed there.
func lastRead(operations []porcupine.Operation) (at int, ok bool) {
	at = -1
	for i, o := range operations {
		if o.Input.(input).verb == read && o.Output.(output).status.Terminal() && (at < 0 || o.Call > operations[at].Call) {
			at = i
		}
	}
	return at, at >= 0
}

// staleRead has the last read miss an end that somebody was told of before it
// began.
func staleRead(operations []porcupine.Operation) ([]porcupine.Operation, bool) {
	at, ok := lastRead(operations)
	if !ok || !slices.ContainsFunc(operations, func(o porcupine.Operation) bool {
		in, out := o.Input.(input), o.Output.(output)
		return (in.verb == complete || in.verb == callOff) && !out.unknown && out.code == "" && o.Return < operations[at].Call
	}) {
		return nil, false
	}
	return changeAt(operations, at, func(out *output) { out.status, out.result = wire.StatusPending, "" }), true
}

// changeRead changes what the last read of a completed task said.
func changeRead(operations []porcupine.Operation, change func(out *output)) ([]porcupine.Operation, bool) {
	at, ok := lastRead(operations)
	if !ok || operations[at].Output.(output).result == "" {
		return nil, false
	}
	return changeAt(operations, at, change), true
}

func changeAt(operations []porcupine.Operation, at int, change func(out *output)) []porcupine.Operation {
	changed := slices.Clone(operations)
	out := changed[at].Output.(output)
	change(&out)
	changed[at].Output = out
	return changed
}

func changeFirst(operations []porcupine.Operation, fits func(in input, out output) bool,
	change func(out *output)) ([]porcupine.Operation, bool) {
	at := slices.IndexFunc(operations, func(o porcupine.Operation) bool { return fits(o.Input.(input), o.Output.(output)) })
	if at < 0 {
		return nil, false
	}
	return changeAt(operations, at, change), true
}

// refuseTheOnly says that what ended the task did not: nobody else said to have
// done so.
func refuseTheOnly(operations []porcupine.Operation, by way) ([]porcupine.Operation, bool) {
	ends := 0
	for _, o := range operations {
		if in := o.Input.(input); in.verb == complete || in.verb == callOff {
			ends++
		}
	}
	if ends != 1 {
		return nil, false
	}
	return changeFirst(operations, func(in input, out output) bool {
		return in.verb == complete && in.by == by && !out.unknown && out.code == ""
	}, func(out *output) { *out = output{code: wire.CodeNotInProgress} })
}

// claimTwice has another worker claim what one has just claimed, before
// anything could have ended that delivery.
func claimTwice(operations []porcupine.Operation) ([]porcupine.Operation, bool) {
	for _, first := range operations {
		in := first.Input.(input)
		if in.verb != grant || in.by != byHTTP {
			continue
		}
		next := int64(math.MaxInt64)
		for _, o := range operations {
			if o.Return > first.Return {
				next = min(next, max(o.Call, first.Call))
			}
		}
		if next <= first.Return+2 {
			continue // something else was under way
		}
		second := porcupine.Operation{Input: in, Output: first.Output, Call: first.Return + 1, Return: first.Return + 2}
		in.token, in.delivery = wire.Token{1}, in.delivery+1
		second.Input = in
		return append(slices.Clone(operations), second), true
	}
	return nil, false
}

// mustFindDoctored changes the history of each task in turn, in one place at a
// time; the checker must object each time. In a short run no task may have a place for some changes.
func mustFindDoctored(t *testing.T, tasks map[string][]porcupine.Operation, short bool) {
	t.Helper()
	for name, doctor := range doctors {
		tried, began := 0, time.Now()
		for label, operations := range tasks {
			changed, ok := doctor(operations)
			if !ok {
				continue
			}
			v := check(map[string][]porcupine.Operation{label: changed})
			if len(v.undecided) > 0 {
				continue
			}
			tried++
			if len(v.unexplained) == 0 {
				t.Errorf("%s was put into the history of task %s and explained:\n%s", name, label, tell(changed))
				return
			}
		}
		t.Logf("%s was put into the histories of %d tasks and found in each, in %v", name, tried, time.Since(began).Round(time.Millisecond))
		if tried == 0 && !short {
			t.Errorf("no task had a place for %s", name)
		}
	}
}
