package shard

import (
	"cmp"
	"math/rand/v2"

	"codeq/record"
	"codeq/wire"
)

// backoff is the retry policy of a queue. Without one it is exponential with
// full jitter, so that tasks that failed together do not come back together.
type backoff struct {
	policy string
	baseMs int64
	maxMs  int64
}

// backoffOf is the policy that holds for a task now.
func (s *Shard) backoffOf(t *record.Task) backoff {
	set := backoffInForce(s.queueOf(t.Queue()).settings.Backoff)
	return backoff{policy: set.Policy, baseMs: set.BaseSeconds * 1000, maxMs: set.MaxSeconds * 1000}
}

// backoffInForce is what a queue has set, and the server's defaults for the rest.
func backoffInForce(set wire.Backoff) wire.Backoff {
	return wire.Backoff{
		Policy:      cmp.Or(set.Policy, wire.BackoffFullJitter),
		BaseSeconds: cmp.Or(set.BaseSeconds, wire.DefaultBackoffBaseSeconds),
		MaxSeconds:  cmp.Or(set.MaxSeconds, wire.DefaultBackoffMaxSeconds),
	}
}

// delayMs is the delay before retry n (from 1), never more than the maximum.
func (b backoff) delayMs(n int, chance rand.Source) int64 {
	switch b.policy {
	case wire.BackoffFixed:
		return min(b.baseMs, b.maxMs)
	case wire.BackoffLinear:
		return min(b.baseMs*int64(n), b.maxMs)
	case wire.BackoffExponential:
		return b.doubledMs(n)
	case wire.BackoffEqualJitter:
		half := b.doubledMs(n) / 2
		return half + rand.New(chance).Int64N(half+1)
	}
	return rand.New(chance).Int64N(b.doubledMs(n) + 1)
}

// doubledMs is the base doubled n−1 times. The doubling stops at the maximum,
// so no n overflows.
func (b backoff) doubledMs(n int) int64 {
	ceiling := b.baseMs
	for range n - 1 {
		if ceiling >= b.maxMs {
			break
		}
		ceiling *= 2
	}
	return min(ceiling, b.maxMs)
}

// wholeSeconds rounds a span up, so that a stated delay is never shorter than
// the real one.
func wholeSeconds(ms int64) int64 { return (ms + 999) / 1000 }
