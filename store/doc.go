// Package store keeps the spans of all shards in one Pebble database: batches,
// the commit pipeline, recovery, the manifest, the disk guard and the full check.
// What it keeps, and as which keys and bytes, is package record.
//
// A Span is the part of the database that one shard owns. Its reads and its
// open Batch belong to the goroutine of that shard, and nobody else writes
// there. Everybody else reads through Store.ReadTask and its neighbours, from
// any goroutine. Applying does not wait for the disk; whoever runs
// Store.Barrier, the syncer's goroutine or a test by hand, makes what all
// shards have applied durable with one sync and says so in order. A shard with
// nothing else to do does that with its batch: Span.ApplyAndSync.
//
// The package must not know what a task may do: it stores what the core
// decides. The file system is injected (vfs.FS), so the same code runs on a
// disk, in memory, and on a memory that crashes. What cannot be trusted ends
// the process through Options.Fatal; a restart is the recovery. How much was
// synced is noted beside the logs, and a start from less is refused; OpenReadOnly
// looks at a directory without changing it.
//
// Files begin with the name of their layer:
//
//	batch     what one round writes, and what its reads see of it before Apply
//	pipeline  Apply, the barrier, who waits; what readers see of queues in memory
//	recovery  what a shard starts from, and what is set aside
//	guard     free space, the ballast, the spare log
//	manifest  what a directory is: made, opened, copied, restored
//	synced    how much of each log was synced, and the loss of it
//	replicated  the same database at a node of a cluster: batches of its log, a received
//	            copy, the database of the log itself
//	read      tasks, lists, queues and keys for everybody but the shards
//
// span.go is what the core uses of them, store.go opens and closes, pebble.go and
// figures.go face the database, files.go the file system.
//
// It is one package because batches, syncs, recovery and reads share the state
// of one database.
package store
