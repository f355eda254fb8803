package session

import "codeq/shard"

const (
	// A client may have so much payload untaken, at most and at least: one task
	// more always fits. It is as much as the link carries in a quarter of a lease,
	// so that what is on its way arrives with most of its lease before it.
	mostUntakenBytes  = shard.MaxUntakenBytes
	leastUntakenBytes = 16 << 10
	leaseShare        = 4

	// paceOverMs is the least time over which a pace is one, and keepPaceMs the
	// time after which what was measured counts half.
	paceOverMs = 1_000
	keepPaceMs = 10_000
)

// pace measures how fast a client takes deliveries: from when the first of them
// is on its way, for as long as one is. What arrived is what it has confirmed, so
// buffers on the way, proxies and TLS make no difference.
type pace struct {
	untakenBytes int
	// takenBytes were taken since a time.
	takenBytes int
	sinceMs    int64
	leaseForMs int64
	// bound is how much may be untaken, 0 before anything was taken.
	bound int
}

// gives notes that a delivery is on its way.
func (p *pace) gives(payloadBytes int, leaseForMs, nowMs int64) {
	if p.untakenBytes == 0 {
		p.takenBytes, p.sinceMs = 0, nowMs
	}
	p.untakenBytes += payloadBytes
	p.leaseForMs = leaseForMs
}

// takes notes that deliveries have arrived, and says how much may be on its way
// from now on. What comes back within a second only raises that: so short a time
// says more about what there was to give.
func (p *pace) takes(payloadBytes int, nowMs int64) (bound int) {
	p.untakenBytes -= payloadBytes
	p.takenBytes += payloadBytes
	tookMs := max(nowMs-p.sinceMs, 1)
	carries := int64(p.takenBytes) * p.leaseForMs / leaseShare / tookMs
	fits := int(min(max(carries, leastUntakenBytes), mostUntakenBytes))
	switch {
	case p.bound == 0 && tookMs < paceOverMs:
		p.bound = mostUntakenBytes
	case tookMs >= paceOverMs || fits > p.bound:
		p.bound = fits
	}
	if tookMs >= keepPaceMs {
		p.takenBytes /= 2
		p.sinceMs = nowMs - tookMs/2
	}
	return p.bound
}
