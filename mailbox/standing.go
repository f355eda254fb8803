package mailbox

import "math"

const (
	// StandingForMs is how long drains may leave new work behind before the mailbox
	// takes less of it. A burst is over by then, at whatever pace it is worked off;
	// a queue that still stands makes whoever is accepted wait, and nobody any
	// faster. While a bound is remembered half of it is enough.
	StandingForMs = 200

	// ReopenMs is how long new work must not have stood for twice as much of it to be
	// taken. Who was refused has come back by then, several times, after the second
	// that the protocol advises: a mailbox that opened wide at the first quiet moment
	// would take all of them, and then refuse all of them.
	ReopenMs = 5000
	// reopened doublings are more than any mailbox has places for.
	reopened = 24
)

// shrinkPart is how much of a drain the bound comes down with each, until what
// waits is one drain: one in so many of its messages. All at once would refuse
// everybody until the burst is worked off, and leave nothing to do when they rest.
const shrinkPart = 4

// standing is the one decision about new work that looks at time. Its zero value
// is a mailbox whose drains leave nothing behind.
type standing struct {
	// behind says that the last drain left new work behind, and all since sinceMs
	// did.
	behind  bool
	sinceMs int64
	// most is how much new work could wait when it stood last, at stoodAtMs; 0 is
	// as much as there is room for.
	most      int
	stoodAtMs int64
}

// quiet says that there is nothing to remember.
func (s *standing) quiet() bool { return !s.behind && s.most == 0 }

// stands says that all drains have left something for long enough.
func (s *standing) stands(nowMs int64) bool { return s.behind && nowMs-s.sinceMs >= s.forMs() }

// noted says that this is known of since drains leave something.
func (s *standing) noted() bool { return s.most > 0 && s.stoodAtMs-s.sinceMs >= s.forMs() }

// forMs is how long is long enough.
func (s *standing) forMs() int64 {
	if s.most > 0 {
		return StandingForMs / 2
	}
	return StandingForMs
}

// drained notes what a drain left of the new work.
func (s *standing) drained(left, perDrain int, nowMs int64) {
	if left == 0 {
		s.behind = false
		if s.bound(nowMs) == math.MaxInt {
			s.most = 0
		}
		return
	}
	if !s.behind {
		s.behind, s.sinceMs = true, nowMs
	}
	if !s.stands(nowMs) {
		return
	}
	if s.noted() {
		s.most -= max(perDrain/shrinkPart, 1)
	}
	s.note(left, perDrain, nowMs)
}

// note begins a bound where new work stands anew: what waits now is the most that
// may.
func (s *standing) note(waiting, perDrain int, nowMs int64) {
	if !s.noted() {
		s.most = min(s.bound(nowMs), waiting)
	}
	s.most, s.stoodAtMs = max(s.most, perDrain), nowMs
}

// bound is how much new work may wait.
func (s *standing) bound(nowMs int64) int {
	if s.most == 0 {
		return math.MaxInt
	}
	if s.stands(nowMs) && s.noted() {
		return s.most
	}
	doublings := max(nowMs-s.stoodAtMs, 0) / ReopenMs
	if doublings >= reopened {
		return math.MaxInt
	}
	return s.most << doublings
}

// admits says whether more new work may join what waits of it. A push is not
// measured by its own size: one larger than a drain waits its turn like others.
func (s *standing) admits(waiting, perDrain int, nowMs int64) bool {
	if s.stands(nowMs) {
		s.note(waiting, perDrain, nowMs)
	}
	return waiting < s.bound(nowMs)
}
