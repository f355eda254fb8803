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
	if w.timer == nil {
		w.timer = time.AfterFunc(watchStep, w.step)
		return
	}
	w.timer.Reset(watchStep)
}

func (w *watchdog) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	w.timer.Stop()
}

func (w *watchdog) step() {
	if w.countStep() {
		w.die(fmt.Errorf("%s is stuck for %v", w.what, watchSteps*watchStep))
	}
}

// countStep counts a step and reports whether it was the last allowed one. A timer that
// fires just as an operation ends may count for the next operation, which is harmless.
func (w *watchdog) countStep() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.busy || w.failed.Load() {
		return false
	}
	w.steps++
	if w.steps >= watchSteps {
		return true
	}
	w.timer.Reset(watchStep)
	return false
}
