package shard

import (
	"cmp"

	"codeq/wire"
)

// MaxUntakenBytes is the default of Limits.UntakenBytes.
const MaxUntakenBytes = 1 << 20

// Limits bounds what a shard does in one round and what it keeps. A zero field
// means the one of DefaultLimits.
type Limits struct {
	// What does not fit into a round is the next round, which follows at once:
	// Messages taken, BatchBytes after which none is taken, Due tasks and leases,
	// Grants, Refills of an order with Refilled keys in all, low Watermarks that are
	// recomputed, Expiries of ended tasks, and Cleanups, the queues that one scans:
	// each is a scan or two, and many may have nothing to remove.
	Messages, BatchBytes, Due, Grants, Refills, Refilled, Watermarks, Expiries, Cleanups int
	// Compared is how many open subscribers one grant looks at; more only cost time,
	// the ring moves on.
	Compared int
	// UntakenBytes is how much payload may be untaken by a client before shards
	// stop granting to it, whatever its session says; one task always fits.
	UntakenBytes int
	// ReusedInRow is how many credits a shard keeps one after the other while
	// another waits for one.
	ReusedInRow int
	// Releases bounds hand-backs: a task released more than this often for each of
	// its attempts is a dead letter, or it would circle for ever. A hand-back that
	// the worker owes to itself does not count: the work never began, or the worker
	// stops.
	Releases int
	// Failed is how many letters with the cause wire.DeadFailed are kept of a queue
	// that does not say how long its dead letters stay.
	Failed int
}

// DefaultLimits is what holds outside of tests.
var DefaultLimits = Limits{
	Messages: 1024, BatchBytes: 1 << 20, Due: 1024, Grants: 1024, Refills: 64, Refilled: 8192, Watermarks: 16, Expiries: 256, Cleanups: 64,
	Compared: 32, UntakenBytes: MaxUntakenBytes, ReusedInRow: 8, Releases: 10,
	Failed: wire.MaxFailedLetters,
}

// OrDefault is DefaultLimits where l is zero.
func (l Limits) OrDefault() Limits {
	d := &DefaultLimits
	return Limits{
		Messages: cmp.Or(l.Messages, d.Messages), BatchBytes: cmp.Or(l.BatchBytes, d.BatchBytes), Due: cmp.Or(l.Due, d.Due),
		Grants: cmp.Or(l.Grants, d.Grants), Refills: cmp.Or(l.Refills, d.Refills), Refilled: cmp.Or(l.Refilled, d.Refilled),
		Watermarks: cmp.Or(l.Watermarks, d.Watermarks), Expiries: cmp.Or(l.Expiries, d.Expiries), Cleanups: cmp.Or(l.Cleanups, d.Cleanups),
		Compared:     cmp.Or(l.Compared, d.Compared),
		UntakenBytes: cmp.Or(l.UntakenBytes, d.UntakenBytes), ReusedInRow: cmp.Or(l.ReusedInRow, d.ReusedInRow), Releases: cmp.Or(l.Releases, d.Releases),
		Failed: cmp.Or(l.Failed, d.Failed),
	}
}
