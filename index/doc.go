// Package index keeps the order of the tasks of one shard in memory: ready
// tasks by priority and sequence, delayed ones by due time, those that expire by
// when they do, and the counters and low watermarks of every queue.
//
// Memory is a window over the store, which has every key. Each order of a
// queue (ten priorities and two by time) is a run of keys in memory and a
// cursor. One invariant holds at all times: every live key at or before the
// cursor is in the run, none behind it is. So the head of a run is the head of
// the order, and a read that begins strictly behind the cursor can never bring
// a key that memory has. A run is complete exactly when it is as long as its
// counter says; nothing else records that.
//
// A new key joins the run if it sorts before the cursor, or if the run is
// complete, and then moves the cursor; otherwise only the counter knows of it
// until a refill. A run that grew too long drops its tail and moves its cursor
// back. A run that got short asks for a refill, which its owner serves at a
// moment when the store has everything the index was told: keys of a batch
// that is not applied yet would be missed.
//
// A low watermark is a lower bound of the live keys of an order. It is stored with
// the counters, so that a restart seeks to it and neither counts keys nor scans
// tombstones.
//
// An Index is owned by the goroutine of its shard and has no lock. The package
// reads and writes nothing and knows no time; it must not know why a task
// moves, and it trusts its owner to tell it every move.
package index
