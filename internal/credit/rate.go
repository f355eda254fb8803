package credit

import "sync/atomic"

// Rate says when the next start of many may be, in one word, which any goroutine may
// change: in each second at most as many start as SetRate was told, or with SetBurst as
// many on the long run. It is the generic cell rate algorithm. The time is an argument,
// in Unix milliseconds.
type Rate struct {
	// nextNs is when the next start is due. It is at most slackNs behind the time, so
	// a pause is made up for by so much only.
	nextNs  atomic.Int64
	everyNs atomic.Int64
	slackNs atomic.Int64
}

const (
	secondNs      = int64(1e9)
	millisecondNs = int64(1e6)
	// startSlackNs is by how much a start may be late without delaying those after it: a
	// shard asks once a round, which is milliseconds after the one before.
	startSlackNs = 10 * millisecondNs
)

// SetRate sets how many start in a second; 0 is no limit. A rate that had no limit
// begins now, without a start to spare: a restart allows no second burst.
func (r *Rate) SetRate(perSecond int, nowMs int64) {
	if perSecond == 0 {
		r.everyNs.Store(0)
		return
	}
	// n starts take at least n-1 times everyNs less the slack, so no second has more than
	// perSecond. A caller that always asks gets a hundredth fewer.
	r.set((secondNs+startSlackNs)/int64(perSecond), startSlackNs, nowMs)
}

// SetBurst sets how many start in a second, and how many at once after a pause; 0 a
// second is no limit. A rate that had no limit is as if it had been empty at sinceMs.
func (r *Rate) SetBurst(perSecond, burst int, sinceMs int64) {
	if perSecond == 0 {
		r.everyNs.Store(0)
		return
	}
	every := (secondNs + int64(perSecond) - 1) / int64(perSecond)
	r.set(every, int64(burst-1)*every, sinceMs)
}

func (r *Rate) set(every, slack, sinceMs int64) {
	r.slackNs.Store(slack)
	if r.everyNs.Swap(every) == 0 {
		r.nextNs.Store(sinceMs*millisecondNs + every)
	}
}

// Start takes a start, and returns 0, or the time at which the next one may be.
func (r *Rate) Start(nowMs int64) (againAtMs int64) { return r.StartMany(1, nowMs) }

// StartMany takes n starts, and returns 0, or takes none and returns the time at which they
// may be. More than a burst may never be.
func (r *Rate) StartMany(n int, nowMs int64) (againAtMs int64) {
	every, slackNs := r.everyNs.Load(), r.slackNs.Load()
	if every == 0 {
		return 0
	}
	for now := nowMs * millisecondNs; ; {
		next := r.nextNs.Load()
		at := max(next, now-slackNs)
		if last := at + int64(n-1)*every; last > now {
			return ceilMs(last)
		}
		if r.nextNs.CompareAndSwap(next, at+int64(n)*every) {
			return 0
		}
	}
}

// NextMs is the time from which on the next start may be.
func (r *Rate) NextMs() int64 { return ceilMs(r.nextNs.Load()) }

// IdleMs is the time from which on a rate that is set anew says the same as this one.
func (r *Rate) IdleMs() int64 { return ceilMs(r.nextNs.Load() + r.slackNs.Load()) }

func ceilMs(ns int64) int64 { return (ns + millisecondNs - 1) / millisecondNs }

// Unstart gives a start back that was taken and did not come about.
func (r *Rate) Unstart() { r.UnstartMany(1) }

// UnstartMany gives n starts back.
func (r *Rate) UnstartMany(n int) { r.nextNs.Add(-int64(n) * r.everyNs.Load()) }

// Left is how many starts may be now, and for how many milliseconds nothing may be taken
// until as many may be as ever. Both are 0 without a limit.
func (r *Rate) Left(nowMs int64) (starts, fullInMs int64) {
	every, now := r.everyNs.Load(), nowMs*millisecondNs
	if every == 0 {
		return 0, 0
	}
	at := max(r.nextNs.Load(), now-r.slackNs.Load())
	fullInMs = (at - (now - r.slackNs.Load()) + millisecondNs - 1) / millisecondNs
	if at > now {
		return 0, fullInMs
	}
	return (now-at)/every + 1, fullInMs
}
