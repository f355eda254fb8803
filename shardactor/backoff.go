package shardactor

import "math/rand/v2"

// The default retry policy: exponential with full jitter, so that tasks that
// failed together do not come back together.
const (
	backoffBaseMs = 5_000
	backoffMaxMs  = 900_000
)

// backoffMs is the delay before retry n (from 1): a time drawn between 0 and
// the base doubled n−1 times, capped. The doubling stops at the cap, so no n
// overflows.
func backoffMs(n int, chance rand.Source) int64 {
	ceiling := int64(backoffBaseMs)
	for range n - 1 {
		ceiling *= 2
		if ceiling >= backoffMaxMs {
			ceiling = backoffMaxMs
			break
		}
	}
	return rand.New(chance).Int64N(ceiling + 1)
}

// wholeSeconds rounds a span up, so that a stated delay is never shorter than
// the real one.
func wholeSeconds(ms int64) int64 { return (ms + 999) / 1000 }
