package mailbox

import "math"

// The mailbox limits new work as CoDel (RFC 8289) limits a packet queue: it looks
// at how long work waits, not at how much does. What a drain leaves is taken within
// OverloadAfterMs, whatever the speed of the owner, and other work may stand behind it for
// ever: producers that wait for answers before they post more always have some there. What
// is still there after that time makes every accepted message wait and finishes none sooner.
const (
	// OverloadAfterMs is for how long the drains must not have taken all that waited
	// before the mailbox limits new work. While a limit of an earlier overload is in force, half of
	// this time is enough, because that overload has probably returned.
	OverloadAfterMs = 200

	// DoubleAfterMs is how long after the last overload the limit doubles. Refused
	// clients send again after a second, as the protocol advises, so all of them have
	// come back by then: a mailbox without a limit at the first quiet moment would
	// accept all of them, and then refuse all of them.
	DoubleAfterMs = 5000
	// maxDoublings times the smallest limit is more than any mailbox holds.
	maxDoublings = 24
)

// shrinkDivisor divides the size of a drain: by so much each drain lowers the limit,
// until as many messages wait as one drain takes. Without steps the mailbox would refuse
// everything until the backlog is done, and then have nothing to drain.
const shrinkDivisor = 4

// admission decides whether new work is accepted. Its zero value is a mailbox
// without a backlog. All times are those of the mailbox's clock.
type admission struct {
	// backlogged says that every drain since sinceMs left new work waiting. passing is how
	// much of what waited then the drains have not taken yet, by their number: the work that
	// waits now stands only as long as that is above 0.
	backlogged bool
	sinceMs    int64
	passing    int
	// limit is how many messages of new work could wait at overloadedAtMs, the time
	// of the last overload; 0 is no limit.
	limit          int
	overloadedAtMs int64
}

// idle says that there is neither a backlog nor a limit.
func (a *admission) idle() bool { return !a.backlogged && a.limit == 0 }

// overloaded says that the backlog has lasted for long enough.
func (a *admission) overloaded(nowMs int64) bool {
	return a.backlogged && nowMs-a.sinceMs >= a.overloadAfterMs()
}

// limitIsOfThisOverload says that the limit was set during the present overload.
func (a *admission) limitIsOfThisOverload() bool {
	return a.limit > 0 && a.overloadedAtMs-a.sinceMs >= a.overloadAfterMs()
}

// overloadAfterMs is how long a backlog lasts before it is an overload.
func (a *admission) overloadAfterMs() int64 {
	if a.limit > 0 {
		return OverloadAfterMs / 2
	}
	return OverloadAfterMs
}

// drained notes what a drain took and left waiting, and in an overload sets or lowers the limit.
func (a *admission) drained(taken, left, perDrain int, nowMs int64) {
	if left == 0 {
		a.backlogged = false
		if a.limitAt(nowMs) == math.MaxInt {
			a.limit = 0
		}
		return
	}
	if a.passing -= taken; !a.backlogged || a.passing <= 0 {
		a.backlogged, a.sinceMs, a.passing = true, nowMs, left
	}
	if !a.overloaded(nowMs) {
		return
	}
	if a.limitIsOfThisOverload() {
		a.limit -= max(perDrain/shrinkDivisor, 1)
	}
	a.setLimit(left, perDrain, nowMs)
}

// setLimit sets the limit when an overload begins: to what waits, or to the old limit
// with its doublings if that is less. The limit is never less than one drain.
func (a *admission) setLimit(waiting, perDrain int, nowMs int64) {
	if !a.limitIsOfThisOverload() {
		a.limit = min(a.limitAt(nowMs), waiting)
	}
	a.limit, a.overloadedAtMs = max(a.limit, perDrain), nowMs
}

// limitAt is how many messages of new work may wait at a time.
func (a *admission) limitAt(nowMs int64) int {
	if a.limit == 0 {
		return math.MaxInt
	}
	if a.overloaded(nowMs) && a.limitIsOfThisOverload() {
		return a.limit
	}
	doublings := max(nowMs-a.overloadedAtMs, 0) / DoubleAfterMs
	if doublings >= maxDoublings {
		return math.MaxInt
	}
	return a.limit << doublings
}

// limitBeside is how much new work may wait when so much does. The size of a push does
// not count: one larger than a drain waits its turn like others.
func (a *admission) limitBeside(waiting, perDrain int, nowMs int64) int {
	if a.overloaded(nowMs) {
		a.setLimit(waiting, perDrain, nowMs)
	}
	return a.limitAt(nowMs)
}
