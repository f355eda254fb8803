package server

import (
	"sync"
	"time"
)

const (
	// tellFrom is the least difference to the system clock that is reported, tellEvery the
	// time between two reports.
	tellFrom  = 10 * time.Second
	tellEvery = time.Hour
	// driftDivisor bounds how much faster or slower than real time an engineClock runs while it
	// differs from the system clock: one part in a hundred.
	driftDivisor = 100
)

// processStart is read once, so that time.Since uses the monotonic clock.
var processStart = time.Now()

// engineClock is the time of the engine. It begins at the time of the system clock, but not
// before a floor, and advances by the time that has elapsed, suspensions of the machine
// included. A step of the system clock does not move it at once: it runs at most 1 %
// faster or slower until both agree again. It never runs backwards. Any goroutine.
type engineClock struct {
	from TimeSource
	// tell is called with how far the clock is ahead of the system clock; nil is no report.
	// It must not block.
	tell func(ahead time.Duration)

	mu sync.Mutex
	// Under mu.
	nowNs       int64
	atElapsedNs int64
	toldAtNs    int64 // of ElapsedNs; 0 if the last difference was small
}

// TimeSource is the source of the time of an engineClock. The zero value is the machine. Both
// functions count nanoseconds and may be called from any goroutine.
type TimeSource struct {
	// WallNs is Unix time by the system clock, which can be set.
	WallNs func() int64
	// ElapsedNs is the time since some moment in the past, suspensions included.
	ElapsedNs func() int64
	// manual is the clock of a server for tests; see Manual.Time.
	manual *Manual
}

func (s TimeSource) orMachine() TimeSource {
	if s.WallNs == nil {
		s.WallNs = func() int64 { return time.Now().UnixNano() }
	}
	if s.ElapsedNs == nil {
		s.ElapsedNs = elapsedNs
	}
	return s
}

func (s TimeSource) wallMs() int64 { return s.WallNs() / int64(time.Millisecond) }

// newEngineClock starts a clock at the time of the system clock or at floorMs, Unix
// milliseconds, whichever is later. The floor is the latest time in the data directory.
func newEngineClock(floorMs int64, from TimeSource) *engineClock {
	from = from.orMachine()
	floorNs := floorMs * int64(time.Millisecond)
	return &engineClock{from: from, nowNs: max(from.WallNs(), floorNs), atElapsedNs: from.ElapsedNs()}
}

// NowMs is the engine's time in Unix milliseconds.
func (c *engineClock) NowMs() int64 {
	c.mu.Lock()
	ahead := c.advance()
	nowMs, mustTell := c.nowNs/int64(time.Millisecond), c.mustTell(ahead)
	c.mu.Unlock()
	if mustTell {
		c.tell(ahead)
	}
	return nowMs
}

// mustTell reports whether a difference must be reported now. c.mu is held.
func (c *engineClock) mustTell(ahead time.Duration) bool {
	if ahead.Abs() < tellFrom {
		c.toldAtNs = 0
		return false
	}
	if c.tell == nil || c.toldAtNs != 0 && c.atElapsedNs-c.toldAtNs < int64(tellEvery) {
		return false
	}
	c.toldAtNs = c.atElapsedNs
	return true
}

// advance moves the clock by the time that has elapsed and returns how far it is ahead of
// the system clock then. c.mu is held.
func (c *engineClock) advance() (ahead time.Duration) {
	elapsedNs, wallNs := c.from.ElapsedNs(), c.from.WallNs()
	passed := max(elapsedNs-c.atElapsedNs, 0)
	c.atElapsedNs += passed
	c.nowNs += passed
	most := passed / driftDivisor
	c.nowNs += min(max(wallNs-c.nowNs, -most), most)
	return time.Duration(c.nowNs - wallNs)
}
