package crash

import (
	"math"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"

	"codeq/wire"
)

// story is the history of one task by hand: each operation begins and ends
// after the one before it.
type story struct{ operations []porcupine.Operation }

func (s *story) then(in input, out output) *story {
	n := int64(10 * len(s.operations))
	s.operations = append(s.operations, porcupine.Operation{Input: in, Output: out, Call: n, Return: n + 5})
	return s
}

// open makes the last operation one that nobody answered.
func (s *story) open() *story {
	last := &s.operations[len(s.operations)-1]
	last.Output, last.Return = output{unknown: true}, math.MaxInt64
	return s
}

func (s *story) explained() bool {
	v := check(map[string][]porcupine.Operation{"1": s.operations})
	return len(v.unexplained)+len(v.undecided) == 0
}

func TestSearchThatRunsOutOfTimeAccusesNobody(t *testing.T) {
	var v verdict
	v.add("a", porcupine.Unknown)
	v.add("b", porcupine.Ok)
	if len(v.unexplained) != 0 || !slices.Equal(v.undecided, []string{"a"}) {
		t.Errorf("the verdict is %+v", v)
	}
	v.add("c", porcupine.Illegal)
	if !slices.Equal(v.unexplained, []string{"c"}) || len(v.undecided) != 1 {
		t.Errorf("the verdict is %+v", v)
	}
}

var (
	theID          = wire.TaskID{1}
	first, second  = wire.Token{1}, wire.Token{2}
	done           = output{}
	lost           = output{code: wire.CodeLeaseLost}
	posted         = output{id: theID}
	pending        = output{id: theID, status: wire.StatusPending}
	inProgress     = output{id: theID, status: wire.StatusInProgress, deliveries: 1}
	ended          = output{id: theID, status: wire.StatusCompleted, deliveries: 1, result: "x"}
	endedOtherwise = output{id: theID, status: wire.StatusCompleted, deliveries: 1, result: "y"}
	cancelled      = output{id: theID, status: wire.StatusCancelled, deliveries: 1}
	over           = output{code: wire.CodeNotInProgress}
	quietly        = output{id: theID, quiet: true}
	off            = input{verb: callOff}
)

func delivered(token wire.Token, n int) input {
	return input{verb: grant, token: token, delivery: n}
}

func claimed(token wire.Token, n int) input {
	return input{verb: grant, by: byHTTP, token: token, delivery: n}
}

func completed(token wire.Token, result string) input {
	return input{verb: complete, token: token, status: wire.StatusCompleted, result: result}
}

func handedBack(token wire.Token, costs bool) input {
	return input{verb: giveBack, token: token, costs: costs}
}

// What is right is explained, whatever had no answer.
func TestCheckerExplainsWhatIsRight(t *testing.T) {
	ask, look := input{verb: enqueue}, input{verb: read}
	for name, s := range map[string]*story{
		"one life": new(story).then(ask, posted).then(look, pending).then(delivered(first, 1), posted).
			then(look, inProgress).then(completed(first, "x"), done).then(look, ended),
		"the same completion twice": new(story).then(ask, posted).then(delivered(first, 1), posted).
			then(completed(first, "x"), done).then(completed(first, "x"), done).then(look, ended),
		"an enqueue without an answer that happened": new(story).then(ask, posted).open().
			then(delivered(first, 1), posted).then(look, inProgress),
		"an enqueue without an answer that did not": new(story).then(ask, posted).open(),
		"a key asked for again": new(story).then(ask, posted).open().
			then(ask, output{id: theID, replayed: true}).then(look, pending),
		"a completion without an answer that happened": new(story).then(ask, posted).then(delivered(first, 1), posted).
			then(completed(first, "x"), done).open().then(look, ended).then(completed(first, "x"), done),
		"a completion without an answer that did not": new(story).then(ask, posted).then(delivered(first, 1), posted).
			then(completed(first, "x"), done).open().then(look, inProgress),
		"a delivery that never arrived": new(story).then(ask, posted).then(delivered(first, 1), posted).
			then(input{verb: lapse, token: first}, done).open().then(completed(first, "x"), lost).
			then(look, output{id: theID, status: wire.StatusInProgress, deliveries: 2}),
		"a lapse, and a result all the same": new(story).then(ask, posted).then(delivered(first, 1), posted).
			then(input{verb: lapse, token: first}, done).open().then(input{verb: heartbeat, token: first}, lost).
			then(completed(first, "x"), done).then(look, ended),
		"handed back and done by another": new(story).then(ask, posted).then(delivered(first, 1), posted).
			then(handedBack(first, true), done).then(delivered(second, 2), output{id: theID, attempts: 1}).
			then(completed(first, "x"), lost).then(completed(second, "y"), done),
		"a key twice in one batch": new(story).then(ask, quietly).then(ask, quietly).then(look, pending),
		"a claim without an answer, and one after its lease": new(story).then(ask, posted).
			then(look, inProgress).then(claimed(second, 2), posted).then(completed(second, "y"), done),
		"cancelled, and the worker comes too late": new(story).then(ask, posted).then(delivered(first, 1), posted).
			then(off, done).then(off, done).then(completed(first, "x"), over).then(look, cancelled),
		"done, and the cancel comes too late": new(story).then(ask, posted).then(delivered(first, 1), posted).
			then(completed(first, "x"), done).then(off, output{code: wire.CodeAlreadyTerminal}).then(look, ended),
		"a cancel without an answer that happened": new(story).then(ask, posted).then(off, done).open().
			then(look, output{id: theID, status: wire.StatusCancelled}),
	} {
		if !s.explained() {
			t.Errorf("%s: not explained\n%s", name, tell(s.operations))
		}
	}
}

// Clients that ask again and again while nobody answers leave no history that cannot be decided, be it
// right or wrong.
func TestCheckerDecidesWhatWasAskedManyTimes(t *testing.T) {
	const asked = 90
	unanswered := func(s *story, in input) *story {
		for n := range asked {
			in.by = way(n % 2)
			s.then(in, done).open()
		}
		return s
	}
	ask, cancel := input{verb: enqueue}, off
	for ends, wrong := range map[output]int{ended: 0, endedOtherwise: 1, pending: 1} {
		s := unanswered(new(story), ask).then(ask, output{id: theID, replayed: true}).then(delivered(first, 1), posted)
		unanswered(s, completed(first, "x")).then(completed(first, "x"), done).then(input{verb: read}, ended)
		unanswered(s, cancel).then(input{verb: read}, ends)
		if v := check(map[string][]porcupine.Operation{"1": s.operations}); len(v.unexplained) != wrong || len(v.undecided) != 0 {
			t.Errorf("%d of each question without an answer, then %v: the verdict is %+v", asked, ends, v)
		}
	}
}

// A checker that explains everything proves nothing: each of these is what a
// queue must not do.
func TestCheckerFindsWhatIsWrong(t *testing.T) {
	ask, look := input{verb: enqueue}, input{verb: read}
	missing := output{code: wire.CodeTaskNotFound}
	begun := func() *story { return new(story).then(ask, posted).then(delivered(first, 1), posted) }
	finished := func() *story { return begun().then(completed(first, "x"), done) }
	for name, s := range map[string]*story{
		"an acknowledged task is lost":        new(story).then(ask, posted).then(look, missing),
		"a task that was read is lost":        new(story).then(ask, posted).open().then(look, pending).then(look, missing),
		"two completions of two deliveries":   finished().then(delivered(second, 2), posted).then(completed(second, "y"), done),
		"two completions of one task":         finished().then(completed(second, "y"), done),
		"a completion is replaced":            finished().then(look, ended).then(look, endedOtherwise),
		"a completion is undone":              finished().then(look, inProgress),
		"a stale read":                        begun().then(look, inProgress).then(look, pending),
		"a stale read of what was ended":      finished().then(look, ended).then(look, inProgress),
		"a stale count":                       begun().then(look, output{id: theID, status: wire.StatusPending}),
		"a key makes two tasks":               new(story).then(ask, posted).then(ask, output{id: wire.TaskID{2}}),
		"a replay names another task":         new(story).then(ask, posted).then(ask, output{id: wire.TaskID{2}, replayed: true}),
		"a second enqueue makes a new one":    new(story).then(ask, posted).then(ask, posted),
		"two live deliveries":                 begun().then(delivered(second, 2), posted),
		"one delivery twice":                  begun().then(delivered(first, 1), posted),
		"a delivery of what has ended":        finished().then(delivered(second, 2), posted),
		"a delivery before the task":          new(story).then(delivered(first, 1), posted),
		"an old token completes":              begun().then(handedBack(first, false), done).then(delivered(second, 2), posted).then(completed(first, "x"), done),
		"a live token is refused":             begun().then(handedBack(first, false), lost),
		"a heartbeat keeps what was lost":     begun().then(handedBack(first, false), done).then(input{verb: heartbeat, token: first}, done),
		"what was handed back is completed":   begun().then(handedBack(first, false), done).then(completed(first, "x"), done),
		"a failed attempt is forgotten":       begun().then(handedBack(first, true), done).then(look, output{id: theID, status: wire.StatusPending, deliveries: 1}),
		"more attempts than deliveries":       begun().then(look, output{id: theID, status: wire.StatusInProgress, deliveries: 1, attempts: 2}),
		"an acknowledged completion is lost":  finished().then(completed(first, "x"), lost),
		"a key twice in one batch, two tasks": new(story).then(ask, quietly).then(ask, output{id: wire.TaskID{2}, quiet: true}),
		"a claim of what a session holds":     begun().then(claimed(second, 2), posted),
		"a claim of what another claim holds": new(story).then(ask, posted).then(claimed(first, 1), posted).
			then(claimed(second, 2), posted),
		"a claim of what has ended":           finished().then(claimed(second, 2), posted),
		"a claim of what was cancelled":       new(story).then(ask, posted).then(off, done).then(claimed(first, 1), posted),
		"a cancelled task is completed":       begun().then(off, done).then(completed(first, "x"), done),
		"a completed task is cancelled":       finished().then(off, done),
		"a cancel is forgotten":               begun().then(off, done).then(look, inProgress),
		"a cancel of what runs is refused":    begun().then(off, output{code: wire.CodeAlreadyTerminal}),
		"a cancelled task keeps its lease":    begun().then(off, done).then(input{verb: heartbeat, by: byHTTP, token: first}, done),
		"a late answer names another reason":  begun().then(off, done).then(completed(first, "x"), lost),
		"one answer for two items of a batch": begun().then(completed(first, "x"), over),
	} {
		if s.explained() {
			t.Errorf("%s: explained\n%s", name, tell(s.operations))
		}
	}
}
