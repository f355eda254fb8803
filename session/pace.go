package session

import "codeq/shard"

const (
	// mostUntakenBytes and leastUntakenBytes bound the payload that a client has not taken; one
	// more task is always allowed. Between them it is what the connection carries in a quarter
	// of a lease, so that a task arrives with most of its lease left.
	mostUntakenBytes  = shard.MaxUntakenBytes
	leastUntakenBytes = 16 << 10
	leaseShare        = 4

	// paceOverMs is the least time of a measurement; after keepPaceMs what was measured counts
	// half.
	paceOverMs = 1_000
	keepPaceMs = 10_000
)

// pace measures how fast a client takes deliveries, while at least one is on its way. A delivery
// has arrived when the client has confirmed it, so buffers, proxies and TLS on the way make no
// difference.
type pace struct {
	untakenBytes int
	// takenBytes were taken since sinceMs.
	takenBytes int
	sinceMs    int64
	leaseForMs int64
	// bound is the payload that may be untaken, 0 before the first confirmation.
	bound int
}

// sends adds a delivery that is on its way.
func (p *pace) sends(payloadBytes int, leaseForMs, nowMs int64) {
	if p.untakenBytes == 0 {
		p.takenBytes, p.sinceMs = 0, nowMs
	}
	p.untakenBytes += payloadBytes
	p.leaseForMs = leaseForMs
}

// takes subtracts deliveries that have arrived, and is the new bound. A measurement of less than
// a second only raises the bound: in so short a time the pace depends on how many tasks there
// were.
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
