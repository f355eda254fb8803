package shard

import (
	"cmp"

	"codeq/wire"
)

// MaxUntakenBytes is the default of Limits.UntakenBytes.
const MaxUntakenBytes = 1 << 20

// Limits bounds what a shard does in one round and what it keeps. A zero field
// means that of DefaultLimits.
type Limits struct {
	// What exceeds a limit waits for the next round, which follows at once. A round
	// takes Messages, but none once its batch has BatchBytes; handles Due tasks and
	// leases; makes Grants; reads Refills orders with Refilled keys in all;
	// recomputes Watermarks; removes Removals ended tasks; scans Cleanups
	// queues for a cleanup: each is one or two scans, and many may have nothing to
	// remove; and scans the tasks that wait for a concurrency key, for Keys of them.
	Messages, BatchBytes, Due, Grants, Refills, Refilled, Watermarks, Removals, Cleanups, Keys int
	// Compared is how many open subscribers one grant compares. More would only
	// cost time: the next grant compares others.
	Compared int
	// UntakenBytes is how many payload bytes a client may have unconfirmed before
	// shards stop granting to it, whatever its session asks for; one task always
	// fits.
	UntakenBytes int
	// ReusedInRow is how many credits a shard reuses in a row while another shard
	// waits for one.
	ReusedInRow int
	// Releases bounds hand-backs: a task released more than this often for each of
	// its attempts is a dead letter, or it would be released for ever. A release
	// does not count if the work never began or the worker stops.
	Releases int
	// Failed is how many dead letters with the cause wire.DeadFailed a queue keeps
	// that sets no retention for dead letters.
	Failed int
}

// DefaultLimits is what holds outside of tests.
var DefaultLimits = Limits{
	Messages: 1024, BatchBytes: 1 << 20, Due: 1024, Grants: 1024, Refills: 64, Refilled: 8192, Watermarks: 16, Removals: 256, Cleanups: 64, Keys: 256,
	Compared: 32, UntakenBytes: MaxUntakenBytes, ReusedInRow: 8, Releases: 10,
	Failed: wire.MaxFailedLetters,
}

// OrDefault returns l with the fields of DefaultLimits where it is zero.
func (l Limits) OrDefault() Limits {
	d := &DefaultLimits
	return Limits{
		Messages: cmp.Or(l.Messages, d.Messages), BatchBytes: cmp.Or(l.BatchBytes, d.BatchBytes), Due: cmp.Or(l.Due, d.Due),
		Grants: cmp.Or(l.Grants, d.Grants), Refills: cmp.Or(l.Refills, d.Refills), Refilled: cmp.Or(l.Refilled, d.Refilled),
		Watermarks: cmp.Or(l.Watermarks, d.Watermarks), Removals: cmp.Or(l.Removals, d.Removals), Cleanups: cmp.Or(l.Cleanups, d.Cleanups), Keys: cmp.Or(l.Keys, d.Keys),
		Compared:     cmp.Or(l.Compared, d.Compared),
		UntakenBytes: cmp.Or(l.UntakenBytes, d.UntakenBytes), ReusedInRow: cmp.Or(l.ReusedInRow, d.ReusedInRow), Releases: cmp.Or(l.Releases, d.Releases),
		Failed: cmp.Or(l.Failed, d.Failed),
	}
}
