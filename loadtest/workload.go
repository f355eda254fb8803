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
	// Pipeline is how many batches a producer has in flight.
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
	// Sheds makes a refused producer drop the tasks that come due during its pause.
	// Without it they are posted after the pause, and at a rate above what the
	// server takes every producer is always late.
	Sheds bool
	// WarmUpFor is not measured, MeasureFor is.
	WarmUpFor, MeasureFor time.Duration
	// WorkAfter lets the workers begin when the measured time is over: creates alone
	// are measured, and every answer is checked all the same.
	WorkAfter bool
	// Watchers is how many sockets watch the figures of all queues meanwhile. With any, one
	// more watches events.
	Watchers int
	// OverHTTP makes producers post over HTTP; workers keep their sessions.
	OverHTTP bool
}

const maxProducers = 10_000

// Canonical is the workload of the published figures.
func Canonical() Workload {
	return Workload{
		Name: "canonical", Commands: []string{"bench"},
		Producers: 32, Pipeline: 1, Batch: 1, Sessions: 1, Window: 128, PayloadBytes: 100,
		WarmUpFor: 2 * time.Second, MeasureFor: 15 * time.Second,
	}
}

// ManyProducers gives each task that the workload has in flight a producer of its own.
// It makes so many sessions that each stays below wire.MaxUnansweredRequests with
// underWay tasks in flight: at that number the server stops reading the session, and
// a refusal would wait too. The window of each worker session holds its share of
// underWay, so that no task waits for a worker.
func (w Workload) ManyProducers(underWay int) Workload {
	const perSession = wire.MaxUnansweredRequests / 2
	before := w.UnderWay()
	w.Batch = 1
	w.Sessions = max((underWay+perSession-1)/perSession, 1)
	w.Producers = min(max(min(before, underWay), w.Sessions), maxProducers)
	w.Pipeline = max(before/w.Producers, 1)
	w.Window = min(max(w.Window, underWay)/w.Sessions+1, wire.MaxWindow)
	return w
}

// Overload offers that many tasks a second, more than the server takes, with at most
// underWay of them in flight. A refused producer pauses, and drops the tasks that come
// due meanwhile, as callers do that are asked to come later. There are many producers:
// with few, one refusal would pause a large share of the load.
func (w Workload) Overload(perSecond float64, underWay int) Workload {
	const each = 4 // tasks in flight
	w = w.ManyProducers(underWay)
	w.Name = "more than the shards can take"
	w.RatePerSecond, w.Sheds = max(math.Round(perSecond), 1), true
	w.Producers = min(max(underWay/each, w.Sessions), maxProducers)
	w.Pipeline = max(underWay/w.Producers, 1)
	return w
}

// UnderWay is the largest number of tasks in flight, which have no answer yet.
func (w *Workload) UnderWay() int { return w.Producers * w.Pipeline * w.Batch }

// Check returns an error about the first value that is out of range.
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
		{"watchers", w.Watchers, 0, 1000},
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
		return fmt.Errorf("a producer over HTTP waits for each answer: set --batch, not --pipeline %d", w.Pipeline)
	}
	return nil
}

// pause is the time between two batches of one producer at RatePerSecond, 0 without a
// rate.
func (w *Workload) pause() time.Duration {
	if w.RatePerSecond == 0 {
		return 0
	}
	return time.Duration(float64(w.Producers*w.Batch) / w.RatePerSecond * float64(time.Second))
}

// sessionOf is the number of the session of a producer.
func (w *Workload) sessionOf(producer int) int { return producer % w.Sessions }

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
		line += fmt.Sprintf(", %d in flight each", w.Pipeline)
	}
	if w.Batch > 1 {
		line += fmt.Sprintf(", batches of %d", w.Batch)
	}
	if w.RatePerSecond > 0 {
		line += fmt.Sprintf(", %g tasks/s offered", w.RatePerSecond)
	}
	if len(w.Commands) > 1 {
		line += fmt.Sprintf(", %d queues", len(w.Commands))
	}
	if w.Watchers > 0 {
		line += fmt.Sprintf(", %d watch queues and one watches events", w.Watchers)
	}
	if w.WorkAfter {
		line += ", workers begin after it"
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
