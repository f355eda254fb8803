package server

import (
	"sync"
	"time"
)

// driftDivisor bounds how much faster or slower than real time a Clock runs
// while it works off its difference to the wall: one part in a hundred.
const driftDivisor = 100

// processStart is read once, so that time.Since uses the monotonic clock.
var processStart = time.Now()

// Clock is the time of the engine. It begins at the wall's time, but not
// before a floor, and goes on by what has really elapsed, time in suspension
// included. A step of the system clock therefore moves it by nothing at once:
// the difference is worked off by running at most 1 % faster or slower. It
// never runs backwards.
//
// Any goroutine.
type Clock struct {
	// wall is Unix time, elapsed the time since some moment in the past; both
	// in nanoseconds.
	wall    func() int64
	elapsed func() int64

	mu sync.Mutex
	// The rest is guarded by mu.
	nowNs       int64
	atElapsedNs int64
}

// NewClock starts a clock at the wall's time or at floorMs, Unix milliseconds,
// whichever is later. The floor is the latest time that was ever stored.
func NewClock(floorMs int64) *Clock {
	return newClock(floorMs, func() int64 { return time.Now().UnixNano() }, elapsedNs)
}

func newClock(floorMs int64, wall, elapsed func() int64) *Clock {
	floorNs := floorMs * int64(time.Millisecond)
	return &Clock{wall: wall, elapsed: elapsed, nowNs: max(wall(), floorNs), atElapsedNs: elapsed()}
}

// NowMs is the engine's time in Unix milliseconds.
func (c *Clock) NowMs() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsedNs := c.elapsed()
	passed := max(elapsedNs-c.atElapsedNs, 0)
	c.atElapsedNs += passed
	c.nowNs += passed
	most := passed / driftDivisor
	c.nowNs += min(max(c.wall()-c.nowNs, -most), most)
	return c.nowNs / int64(time.Millisecond)
}
