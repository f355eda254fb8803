// Package credit holds the window of one consumer over all shards: how many tasks
// may be in flight to it, and how many bytes of them its client has not confirmed.
//
// A credit allows one task in flight. The shards take credits from their goroutines
// and the session returns them from its own, so the window is one atomic word that
// changes by compare-and-swap, and nothing here blocks. The package knows no message
// and no mailbox: whoever makes a Window says how a shard is woken.
package credit
