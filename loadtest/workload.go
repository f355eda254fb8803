package loadtest

import (
	"fmt"
	"math"
	"time"

	"codeq/wire"
)

// Workload is what a run does. Canonical makes one that is good as it is.
type Workload struct {
	// Name is what the report calls it.
	Name string
	// Commands are the commands of the tasks, in turn.
	Commands []string
	// Producers is the number of goroutines that post, over all sessions.
	Producers int
	// Pipeline is how many batches a producer has under way.
	Pipeline int
	// Batch is how many tasks a producer posts together.
	Batch int
	// Sessions is the number of producer sessions, and of worker sessions.
	Sessions int
	// Window is how many unfinished tasks each worker session can hold.
	Window int
	// PayloadBytes is the length of each payload.
	PayloadBytes int
	// RatePerSecond is how many tasks are offered in a second; 0 means as many
	// as are answered.
	RatePerSecond float64
	// Sheds makes a producer that was refused let go what comes due while it
	// rests. Without it that is posted afterwards, and at a rate that does not fit
	// every producer is always behind.
	Sheds bool
	// WarmUpFor is not measured, MeasureFor is.
	WarmUpFor, MeasureFor time.Duration
	// WorkAfter lets the workers begin when the measured time is over: what is
	// measured are creates alone, and the answers are checked all the same.
	WorkAfter bool
	// OverHTTP makes producers post over HTTP; workers keep their sessions.
	OverHTTP bool
}

const maxProducers = 10_000

// Canonical is the workload that the figures of this project speak of.
func Canonical() Workload {
	return Workload{
		Name: "canonical", Commands: []string{"bench"},
		Producers: 32, Pipeline: 1, Batch: 1, Sessions: 1, Window: 128, PayloadBytes: 100,
		WarmUpFor: 2 * time.Second, MeasureFor: 15 * time.Second,
	}
}

// Crowd spreads what the workload has under way over as many producers, and over
// so many sessions that none reaches what a server lets one session have
// unanswered when underWay tasks are: there it stops reading, and a refusal could
// not come at once. Each worker session has room for all that its share of
// underWay can be, so that no task waits for a worker.
func (w Workload) Crowd(underWay int) Workload {
	const perSession = wire.MaxUnansweredRequests / 2
	before := w.UnderWay()
	w.Batch = 1
	w.Sessions = max((underWay+perSession-1)/perSession, 1)
	w.Producers = min(max(min(before, underWay), w.Sessions), maxProducers)
	w.Pipeline = max(before/w.Producers, 1)
	w.Window = min(max(w.Window, underWay)/w.Sessions+1, wire.MaxWindow)
	return w
}

// Overload turns the workload into one that offers that many tasks a second, which
// is meant to be more than a server takes, and has at most underWay of them without
// an answer. Each producer rests when it is refused and lets go what it would have
// posted meanwhile, as callers do that are told to come later. There are many, so
// that those who rest are as many as are too many: of few, a moment in which one
// shard refuses would silence all.
func (w Workload) Overload(perSecond float64, underWay int) Workload {
	const each = 4 // tasks under way
	w = w.Crowd(underWay)
	w.Name = "more than the shards can take"
	w.RatePerSecond, w.Sheds = max(math.Round(perSecond), 1), true
	w.Producers = min(max(underWay/each, w.Sessions), maxProducers)
	w.Pipeline = max(underWay/w.Producers, 1)
	return w
}

// UnderWay is the largest number of tasks that wait for their answer.
func (w *Workload) UnderWay() int { return w.Producers * w.Pipeline * w.Batch }

// Check returns a sentence about the first value that cannot be.
func (w *Workload) Check() error {
	ranges := []struct {
		name      string
		got       int
		low, high int
	}{
		{"sessions", w.Sessions, 1, 1000},
		{"producers", w.Producers, w.Sessions, maxProducers},
		{"pipeline", w.Pipeline, 1, 100_000},
		{"batch", w.Batch, 1, wire.MaxBatchTasks},
		{"window", w.Window, 1, wire.MaxWindow},
		{"payload-bytes", w.PayloadBytes, minPayloadBytes, wire.MaxPayloadBytes},
	}
	for _, r := range ranges {
		if r.got < r.low || r.got > r.high {
			return fmt.Errorf("%s must be from %d to %d, got %d", r.name, r.low, r.high, r.got)
		}
	}
	if !(w.RatePerSecond >= 0 && w.RatePerSecond <= 1e7) {
		return fmt.Errorf("rate must be from 0 to 10000000 tasks per second, got %v", w.RatePerSecond)
	}
	if w.MeasureFor <= 0 || w.WarmUpFor < 0 {
		return fmt.Errorf("seconds must be more than 0, got %v", w.MeasureFor.Seconds())
	}
	if w.OverHTTP && w.Pipeline > 1 {
		return fmt.Errorf("a producer over HTTP waits for each answer: use batch in place of pipeline %d", w.Pipeline)
	}
	return nil
}

// pause is the time between two batches of one producer at the rate asked
// for, 0 when there is none.
func (w *Workload) pause() time.Duration {
	if w.RatePerSecond == 0 {
		return 0
	}
	return time.Duration(float64(w.Producers*w.Batch) / w.RatePerSecond * float64(time.Second))
}

// lineOf is the session that a producer uses.
func (w *Workload) lineOf(producer int) int { return producer % w.Sessions }

// String says the workload in one line.
func (w *Workload) String() string {
	how := "over a session"
	if w.Sessions > 1 {
		how = fmt.Sprintf("over %d sessions", w.Sessions)
	}
	if w.OverHTTP {
		how = "over HTTP"
	}
	line := fmt.Sprintf("%s: %d producers %s", w.Name, w.Producers, how)
	if w.Pipeline > 1 {
		line += fmt.Sprintf(", %d under way each", w.Pipeline)
	}
	if w.Batch > 1 {
		line += fmt.Sprintf(", %d tasks at once", w.Batch)
	}
	if w.RatePerSecond > 0 {
		line += fmt.Sprintf(", %g tasks/s offered", w.RatePerSecond)
	}
	if len(w.Commands) > 1 {
		line += fmt.Sprintf(", %d queues", len(w.Commands))
	}
	if w.WorkAfter {
		line += ", workers come after"
	}
	return line + fmt.Sprintf("; window %d; payload %d bytes; %v after %v of warm-up",
		w.Window, w.PayloadBytes, w.MeasureFor, w.WarmUpFor)
}

// CommandOf is the command of the task with that number.
func (w *Workload) CommandOf(n uint64) string { return w.Commands[n%uint64(len(w.Commands))] }

// Payload is the payload of the task with that number, freshly made.
func (w *Workload) Payload(n uint64) []byte {
	return appendPayload(make([]byte, 0, w.PayloadBytes), n, w.PayloadBytes)
}
