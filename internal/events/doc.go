// Package events shows what the shards did: the last events of each shard, and figures of
// each queue.
//
// A Log is a shardactor.Observer: it gets every event once, in order per shard, after the
// sync that made it durable. It keeps the events in rings and counts them in a tally. The
// tally has the number of tasks in each place of each queue. It takes them from recovery
// and moves them only by events, so that its figures are exactly those at the position of
// the ring: neither the store nor the counters of a shard are asked.
//
// Tick takes what has changed in a second into the history, whose steps are a second, ten
// seconds and a minute. Only the minutes survive a restart, in a file of their own.
//
// Each queue has a slot, a small number that is the same for all shards. What a Log keeps
// is bounded by Options.MemoryBytes; queues beyond that are summed in slot 0.
//
// There is one lock per shard, which Observe takes for itself and Figures takes of all
// shards. Nothing is allocated per event. The package has no goroutine and no clock: its
// owner calls Tick.
package events
