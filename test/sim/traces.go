package sim

import (
	"fmt"
	"hash/crc32"

	"codeq/internal/callback"
	"codeq/shard"
	"codeq/wire"
)

// Tasks are posted with trace contexts, or without, which go on to every delivery and callback. In
// worlds whose server traces, the shards hand on what its function says instead, and events have the
// context of their task.

const traceGoesOn = "a trace goes on from its producer to deliveries and callbacks"

// traceOf is the trace context that a task with this payload is posted with.
func traceOf(payload []byte) (t shard.Trace) {
	n := crc32.ChecksumIEEE(payload) / 11
	if n%3 > 0 {
		t.Parent = fmt.Sprintf("00-%032x-%016x-01", n+1, n+1)
	}
	if n%3 > 1 {
		t.State = fmt.Sprintf("vendor=%d", n)
	}
	return t
}

// handedOn is shard.Config.TraceParent of servers that trace.
func handedOn(id wire.TaskID, parent string, delivery int) string {
	return fmt.Sprintf("%s > %v %d", parent, id, delivery)
}

// following is what a delivery of a task is given, and what its end hands on.
func (m *model) following(t *task, delivery int) shard.Trace {
	if !m.traced {
		return t.trace
	}
	return shard.Trace{Parent: handedOn(t.id, t.trace.Parent, delivery), State: t.trace.State}
}

// goesOut holds a call against what the deliveries of its task are given. One that is over by then may
// still be on its way.
func (m *model) goesOut(t *task, c *callback.Call) {
	for delivery := t.deliveries; delivery > 0; delivery-- {
		if m.following(t, delivery) == (shard.Trace{Parent: c.TraceParent, State: c.TraceState}) {
			return
		}
	}
	violate(traceGoesOn, "a call for task %v, posted with %+v, has %s and %s", t.id, t.trace, c.TraceParent, c.TraceState)
}

// isGiven holds the trace context that somebody gets against what a task should give.
func (t *task) isGiven(parent, state string, want shard.Trace) {
	if got := (shard.Trace{Parent: parent, State: state}); got != want {
		violate(traceGoesOn, "task %v gives %+v, want %+v", t.id, got, want)
	}
}

// tells is the trace context in an event of a task, as it should be: nothing is told of the removal.
func (m *model) tells(t *task, got *shard.Trace) *shard.Trace {
	if (got != nil) != (m.traced && t.place != "") || got != nil && *got != t.trace {
		violate(traceGoesOn, "an event of task %v tells %+v, posted was %+v", t.id, got, t.trace)
	}
	return got
}
