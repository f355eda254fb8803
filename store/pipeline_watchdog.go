package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A disk that hangs makes Pebble wait for ever without an error. The watchdog
// turns that into an end of the process, which is a state a restart repairs.
const (
	watchStep  = time.Second
	watchSteps = 10
)

// watchdog watches one operation at a time. It counts steps it has seen
// instead of looking at the clock, so a process that was stopped or suspended
// in the middle of a sync is not ended for it when it goes on. begin and end
// are called by the goroutine that does the operation.
type watchdog struct {
	what string
	// failed says that the store has failed already; a hanging operation is then no
	// new reason to die.
	failed *atomic.Bool
	die    func(error)

	mu    sync.Mutex
	timer *time.Timer
	// armed: the timer runs. It runs on when an operation ends, up to its next step, because
	// there are thousands of operations in a second.
	armed bool
	busy  bool
	steps int
}

func newWatchdog(what string, failed *atomic.Bool, die func(error)) *watchdog {
	return &watchdog{what: what, failed: failed, die: die}
}

func (w *watchdog) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy, w.steps = true, 0
	switch {
	case w.armed:
		return
	case w.timer == nil:
		w.timer = time.AfterFunc(watchStep, w.step)
	default:
		w.timer.Reset(watchStep)
	}
	w.armed = true
}

func (w *watchdog) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
}

func (w *watchdog) step() {
	if w.countStep() {
		w.die(fmt.Errorf("%s is stuck for %v", w.what, watchSteps*watchStep))
	}
}

// countStep counts a step and reports whether it was the last allowed one. The first step of an
// operation may come soon after it began, so it is ended after 9 to 10 seconds.
func (w *watchdog) countStep() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = w.busy && !w.failed.Load()
	if !w.armed {
		return false
	}
	w.steps++
	if w.steps >= watchSteps {
		return true
	}
	w.timer.Reset(watchStep)
	return false
}
