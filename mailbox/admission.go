package mailbox

import "math"

// The mailbox limits new work as CoDel (RFC 8289) limits a packet queue: it looks
// at how long a backlog persists, not at its length. A burst is gone within
// OverloadAfterMs, whatever the speed of the owner. A backlog that is still there
// makes every accepted message wait and finishes none sooner.
const (
	// OverloadAfterMs is for how long every drain must leave new work waiting before
	// the mailbox limits it. While a limit is known, half of it is enough.
	OverloadAfterMs = 200

	// DoubleAfterMs is how long after the last overload the limit doubles. Refused
	// clients send again after a second, as the protocol advises, so all of them have
	// come back by then: a mailbox without a limit at the first quiet moment would
	// accept all of them, and then refuse all of them.
	DoubleAfterMs = 5000
	// maxDoublings times the smallest limit is more than any mailbox holds.
	maxDoublings = 24
)

// shrinkPart is the part of a drain by which each drain lowers the limit, until as
// many messages wait as one drain takes. Without steps the mailbox would refuse
// everything until the backlog is done, and then have nothing to drain.
const shrinkPart = 4

// admission decides whether new work is accepted. Its zero value is a mailbox
// without a backlog. All times are those of the mailbox's clock.
type admission struct {
	// backlogged says that every drain since sinceMs left new work waiting.
	backlogged bool
	sinceMs    int64
	// limit is how many messages of new work could wait at overloadedAtMs, the time
	// of the last overload; 0 is no limit.
	limit          int
	overloadedAtMs int64
}

// idle says that there is neither a backlog nor a limit.
func (a *admission) idle() bool { return !a.backlogged && a.limit == 0 }

// overloaded says that the backlog has lasted for long enough.
func (a *admission) overloaded(nowMs int64) bool {
	return a.backlogged && nowMs-a.sinceMs >= a.afterMs()
}

// limited says that the limit was set during the present overload.
func (a *admission) limited() bool { return a.limit > 0 && a.overloadedAtMs-a.sinceMs >= a.afterMs() }

// afterMs is for how long a backlog lasts before it is an overload.
func (a *admission) afterMs() int64 {
	if a.limit > 0 {
		return OverloadAfterMs / 2
	}
	return OverloadAfterMs
}

// drained takes note of how much new work a drain left waiting.
func (a *admission) drained(left, perDrain int, nowMs int64) {
	if left == 0 {
		a.backlogged = false
		if a.limitAt(nowMs) == math.MaxInt {
			a.limit = 0
		}
		return
	}
	if !a.backlogged {
		a.backlogged, a.sinceMs = true, nowMs
	}
	if !a.overloaded(nowMs) {
		return
	}
	if a.limited() {
		a.limit -= max(perDrain/shrinkPart, 1)
	}
	a.keepLimit(left, perDrain, nowMs)
}

// keepLimit sets the limit to what waits when an overload begins, and keeps it at
// no less than one drain.
func (a *admission) keepLimit(waiting, perDrain int, nowMs int64) {
	if !a.limited() {
		a.limit = min(a.limitAt(nowMs), waiting)
	}
	a.limit, a.overloadedAtMs = max(a.limit, perDrain), nowMs
}

// limitAt is how many messages of new work may wait at a time.
func (a *admission) limitAt(nowMs int64) int {
	if a.limit == 0 {
		return math.MaxInt
	}
	if a.overloaded(nowMs) && a.limited() {
		return a.limit
	}
	doublings := max(nowMs-a.overloadedAtMs, 0) / DoubleAfterMs
	if doublings >= maxDoublings {
		return math.MaxInt
	}
	return a.limit << doublings
}

// admits says whether a push of new work is accepted beside what waits. The size of
// the push does not count: one larger than a drain waits its turn like others.
func (a *admission) admits(waiting, perDrain int, nowMs int64) bool {
	if a.overloaded(nowMs) {
		a.keepLimit(waiting, perDrain, nowMs)
	}
	return waiting < a.limitAt(nowMs)
}
