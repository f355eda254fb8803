package main

import (
	"slices"
	"syscall"
	"testing"
)

// Wait statuses as the system packs them.
const (
	exited0   = 0
	exited1   = 1 << 8
	exited143 = 143 << 8
	byTerm    = uint32(syscall.SIGTERM)
	byKill    = uint32(syscall.SIGKILL)
)

type told struct {
	event event
	value uint32
	want  []action
}

// A run is a value: what happens goes in, what is to be done comes out.
func TestRunStepByStep(t *testing.T) {
	quiet := []action(nil)
	ends := []action{actGoesOn, actPipes}
	term := []action{actGoesOn, actTerm, actPatience}
	kill := []action{actGoesOn, actKill}
	done := quiet
	runs := told{eventRuns, 7, quiet}
	for name, c := range map[string]struct {
		steps []told
		cause cause
		told  bool
	}{
		"it ends":                         {[]told{runs, {eventEnds, exited0, ends}, {eventPiped, 0, done}}, causeNone, false},
		"it fails":                        {[]told{runs, {eventEnds, exited1, ends}, {eventPiped, 0, done}}, causeNone, false},
		"it cannot be started":            {[]told{{eventFails, 2, ends}, {eventGone, 0, quiet}, {eventPiped, 0, done}}, causeNone, false},
		"its keeper dies before it runs":  {[]told{{eventGone, byKill, append([]action{actKill}, ends...)}, {eventPiped, 0, done}}, causeNone, false},
		"its keeper is killed":            {[]told{runs, {eventGone, byKill, append([]action{actKill}, ends...)}, {eventPiped, 0, done}}, causeNone, false},
		"its keeper is killed at the end": {[]told{runs, {eventEnds, exited0, ends}, {eventGone, byKill, quiet}, {eventPiped, 0, done}}, causeNone, false},
		"N01 it dies by TERM, and the worker is told in time": {
			[]told{runs, {eventEnds, byTerm, ends}, {eventPiped, 0, []action{actVerdict}}, {eventDrain, 0, done}, {eventVerdict, 0, quiet}}, causeNone, true},
		"N01 the worker was told before": {[]told{runs, {eventDrain, 0, quiet}, {eventEnds, byTerm, ends}, {eventPiped, 0, done}}, causeNone, true},
		"N01 the worker is never told":   {[]told{runs, {eventEnds, exited143, ends}, {eventPiped, 0, []action{actVerdict}}, {eventVerdict, 0, done}}, causeNone, false},
		"N01 a look at the keeper is no verdict": {
			[]told{runs, {eventEnds, byTerm, ends}, {eventPiped, 0, []action{actVerdict}}, {eventNothing, 0, quiet}, {eventDrain, 0, done}}, causeNone, true},
		"N01 it dies by KILL": {[]told{runs, {eventEnds, byKill, ends}, {eventPiped, 0, done}}, causeNone, false},
		"the lease is lost":   {[]told{runs, {eventLost, 0, term}, {eventEnds, byTerm, ends}, {eventPiped, 0, quiet}, {eventEmpty, 0, done}}, causeLost, false},
		"N01 the lease is lost, and it exits with 0 on TERM": {
			[]told{runs, {eventLost, 0, term}, {eventEnds, exited0, ends}, {eventPiped, 0, quiet}, {eventEmpty, 0, done}}, causeLost, false},
		"N01 the worker stops without waiting, and it exits with 0 on TERM": {
			[]told{runs, {eventDrain, 0, quiet}, {eventHard, 0, term}, {eventEnds, exited0, ends}, {eventEmpty, 0, quiet}, {eventPiped, 0, done}}, causeHard, true},
		"the worker stops without waiting": {
			[]told{runs, {eventHard, 0, term}, {eventEnds, byTerm, ends}, {eventEmpty, 0, quiet}, {eventPiped, 0, done}}, causeHard, true},
		"it ignores TERM": {
			[]told{runs, {eventLost, 0, term}, {eventPatience, 0, kill}, {eventEnds, byKill, ends}, {eventPiped, 0, done}}, causeLost, false},
		"what it left ignores TERM": {
			[]told{runs, {eventLost, 0, term}, {eventEnds, byTerm, ends}, {eventPiped, 0, quiet}, {eventPatience, 0, kill}}, causeLost, false},
		"N04 it takes too long": {[]told{runs, {eventTimeout, 0, term}, {eventEnds, exited0, ends}, {eventPiped, 0, quiet}, {eventEmpty, 0, done}}, causeTimeout, false},
		"N04 it ended in time":  {[]told{runs, {eventEnds, exited0, ends}, {eventTimeout, 0, quiet}, {eventPiped, 0, done}}, causeNone, false},
		"N04 it is stopped": {
			[]told{runs, {eventStops, 19, []action{actTell, actStall}}, {eventStall, 0, term}, {eventContinues, 0, []action{actGoesOn}},
				{eventEnds, byTerm, ends}, {eventEmpty, 0, quiet}, {eventPiped, 0, done}}, causeStall, false},
		"N04 it goes on": {
			[]told{runs, {eventStops, 19, []action{actTell, actStall}}, {eventContinues, 0, []action{actGoesOn}}, {eventEnds, exited0, ends}, {eventPiped, 0, done}}, causeNone, false},
		"it floods":               {[]told{runs, {eventFloods, 0, kill}, {eventEnds, byKill, ends}, {eventPiped, 0, done}}, causeFlood, false},
		"it floods after TERM":    {[]told{runs, {eventLost, 0, term}, {eventFloods, 0, kill}, {eventPatience, 0, quiet}, {eventEnds, byKill, ends}, {eventPiped, 0, done}}, causeLost, false},
		"the lease is lost twice": {[]told{runs, {eventLost, 0, term}, {eventHard, 0, quiet}, {eventTimeout, 0, quiet}}, causeLost, true},
		"the lease is lost while somebody has its pipes": {
			[]told{runs, {eventEnds, exited0, ends}, {eventLost, 0, term}, {eventPiped, 0, quiet}, {eventEmpty, 0, done}}, causeNone, false},
		"the lease is lost before it runs": {[]told{{eventLost, 0, term}, runs, {eventEnds, byTerm, ends}, {eventEmpty, 0, quiet}, {eventPiped, 0, done}}, causeLost, false},
	} {
		r := &runState{}
		for i, s := range c.steps {
			if got := r.step(s.event, s.value); !slices.Equal(got, s.want) {
				t.Errorf("%s: step %d (event %d) wants %v done, want %v", name, i, s.event, got, s.want)
			}
		}
		if r.cause != c.cause || r.told != c.told {
			t.Errorf("%s: cause %d, told %t, want %d and %t", name, r.cause, r.told, c.cause, c.told)
		}
	}
}

// Whatever comes in whatever order, a run that has ended, whose pipes are read and
// whose group is gone is over, once.
func TestRunAlwaysEnds(t *testing.T) {
	var events []event
	for e := eventRuns; e <= eventVerdict; e++ {
		events = append(events, e)
	}
	for n := range len(events) * len(events) * len(events) {
		order := []event{
			eventRuns, events[n%len(events)], events[n/len(events)%len(events)], events[n/len(events)/len(events)],
			eventEnds, eventPiped, eventPatience, eventEmpty, eventVerdict,
		}
		r := &runState{}
		for _, e := range order {
			r.step(e, byTerm)
		}
		if r.phase != over {
			t.Fatalf("after %v the run is in phase %d", order, r.phase)
		}
	}
}
