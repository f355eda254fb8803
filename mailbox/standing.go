package mailbox

// StandingForMs is how long drains may leave new work behind before the mailbox
// takes less of it. A burst is over by then, at whatever pace it is worked off;
// a queue that still stands makes whoever is accepted wait, and nobody any
// faster.
const StandingForMs = 100

// standingDrains is how many drains' worth of new work may wait while a queue
// stands: what the next one takes, and as much again, so that it never finds
// less than it could take because others were turned away.
const standingDrains = 2

// standing is the one decision about new work that looks at time. Its zero value
// is a mailbox whose drains leave nothing behind.
type standing struct {
	// sinceMs is when a drain first left new work behind that all drains since
	// have left some of; it counts only while behind.
	sinceMs int64
	behind  bool
}

// drained notes what a drain left of the new work.
func (s *standing) drained(left int, nowMs int64) {
	switch {
	case left == 0:
		s.behind = false
	case !s.behind:
		s.behind, s.sinceMs = true, nowMs
	}
}

// admits says, while drains leave something behind, whether more new work may join
// what waits of it. A push is not measured by its own size: one larger than a drain
// waits its turn like others.
func (s *standing) admits(waiting, perDrain int, nowMs int64) bool {
	return waiting < standingDrains*perDrain || nowMs-s.sinceMs < StandingForMs
}
