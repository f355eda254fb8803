package server

import (
	"sync"
	"time"
)

// A difference to the wall is told from tellFrom on, and again every tellEvery while
// it lasts.
const (
	tellFrom  = 10 * time.Second
	tellEvery = time.Hour
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
	// tell is told how far the clock is ahead of the wall; nil tells nobody. It must
	// not block.
	tell func(ahead time.Duration)

	mu sync.Mutex
	// The rest is guarded by mu.
	nowNs       int64
	atElapsedNs int64
	toldAtNs    int64 // of elapsed; 0 if the last difference was small
}

// TimeSource is where a Clock takes its time from. The zero value is the
// machine. Both functions count nanoseconds and may be called from any goroutine.
type TimeSource struct {
	// WallNs is Unix time, which somebody may step.
	WallNs func() int64
	// ElapsedNs is what has passed since some moment, suspensions included.
	ElapsedNs func() int64
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

// NewClock starts a clock at the wall's time or at floorMs, Unix milliseconds,
// whichever is later. The floor is the latest time that was ever stored.
func NewClock(floorMs int64, from TimeSource) *Clock {
	from = from.orMachine()
	floorNs := floorMs * int64(time.Millisecond)
	return &Clock{
		wall: from.WallNs, elapsed: from.ElapsedNs,
		nowNs: max(from.WallNs(), floorNs), atElapsedNs: from.ElapsedNs(),
	}
}

// NowMs is the engine's time in Unix milliseconds.
func (c *Clock) NowMs() int64 {
	c.mu.Lock()
	ahead := c.goOn()
	nowMs, mustTell := c.nowNs/int64(time.Millisecond), c.mustTell(ahead)
	c.mu.Unlock()
	if mustTell {
		c.tell(ahead)
	}
	return nowMs
}

// mustTell reports whether it is time to tell of a difference.
func (c *Clock) mustTell(ahead time.Duration) bool {
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

// goOn moves the clock by what has elapsed and returns how far it is ahead of the
// wall then.
func (c *Clock) goOn() (ahead time.Duration) {
	elapsedNs, wallNs := c.elapsed(), c.wall()
	passed := max(elapsedNs-c.atElapsedNs, 0)
	c.atElapsedNs += passed
	c.nowNs += passed
	most := passed / driftDivisor
	c.nowNs += min(max(wallNs-c.nowNs, -most), most)
	return time.Duration(c.nowNs - wallNs)
}
