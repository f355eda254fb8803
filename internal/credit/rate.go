package credit

import "sync/atomic"

// Rate says when the next start of many may be, in one word, which any goroutine may
// change: in each second at most as many start as SetRate was told. It is the generic
// cell rate algorithm. The time is an argument, in Unix milliseconds.
type Rate struct {
	// nextNs is when the next start is due. It is at most slackNs behind the time, so
	// a pause is not made up for.
	nextNs  atomic.Int64
	everyNs atomic.Int64
}

const (
	secondNs      = int64(1e9)
	millisecondNs = int64(1e6)
	// slackNs is by how much a start may be late without delaying those after it: a
	// shard asks once a round, which is milliseconds after the one before.
	slackNs = 10 * millisecondNs
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
	every := (secondNs + slackNs) / int64(perSecond)
	if r.everyNs.Swap(every) == 0 {
		r.nextNs.Store(nowMs*millisecondNs + every)
	}
}

// Start takes a start, and returns 0, or the time at which the next one may be.
func (r *Rate) Start(nowMs int64) (againAtMs int64) {
	every := r.everyNs.Load()
	if every == 0 {
		return 0
	}
	for now := nowMs * millisecondNs; ; {
		next := r.nextNs.Load()
		at := max(next, now-slackNs)
		if at > now {
			return ceilMs(at)
		}
		if r.nextNs.CompareAndSwap(next, at+every) {
			return 0
		}
	}
}

// NextMs is the time from which on the next start may be.
func (r *Rate) NextMs() int64 { return ceilMs(r.nextNs.Load()) }

// IdleMs is the time from which on a rate that is set anew says the same as this one.
func (r *Rate) IdleMs() int64 { return ceilMs(r.nextNs.Load() + slackNs) }

func ceilMs(ns int64) int64 { return (ns + millisecondNs - 1) / millisecondNs }

// Unstart gives a start back that was taken and did not come about.
func (r *Rate) Unstart() { r.nextNs.Add(-r.everyNs.Load()) }
