package client

import (
	"math/rand/v2"
	"time"
)

const (
	firstBackoff = 200 * time.Millisecond
	// maxBackoff stays, with its jitter, well under the grace a server gives
	// to the tasks of a lost session, so that a restart costs no lease.
	maxBackoff = 5 * time.Second
	// drainSpread is the time over which clients reconnect after a server has announced
	// its end: all of them heard of it at the same moment.
	drainSpread = 2 * time.Second
)

// backoff is the wait before attempt number failures + 1: it doubles, is capped, and is
// then drawn from half to one and a half of that.
func backoff(failures int) time.Duration {
	delay := maxBackoff
	if failures < 5 {
		delay = min(firstBackoff<<failures, maxBackoff)
	}
	return delay/2 + rand.N(delay)
}
