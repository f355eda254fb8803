package shard

import (
	"cmp"

	"codeq/wire"
)

// Effective is what holds for a queue with these settings: the server's default for
// each that is zero. A retention that stays zero has no end.
func (r Retention) Effective(set wire.QueueSettings) wire.QueueSettings {
	set.MaxAttempts = cmp.Or(set.MaxAttempts, wire.DefaultMaxAttempts)
	set.LeaseSeconds = cmp.Or(set.LeaseSeconds, wire.DefaultLeaseSeconds)
	set.Backoff = backoffInForce(set.Backoff)
	set.RetentionSeconds = cmp.Or(set.RetentionSeconds, wholeSeconds(r.DoneForMs))
	set.DLQRetentionSeconds = cmp.Or(set.DLQRetentionSeconds, wholeSeconds(r.DeadForMs))
	return set
}
