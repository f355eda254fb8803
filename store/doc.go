// Package store keeps the spans of all shards in one Pebble database: keys,
// records, batches, the commit pipeline, recovery and the manifest. Records,
// lease values and counters become bytes here and nowhere else.
//
// A Span is the part of the database that one shard owns. Its reads and its
// Batch belong to the goroutine of that shard; nobody else writes there. A
// Reader serves everybody else (HTTP reads) and may be used from any
// goroutine. The Pipeline takes applied batches of all shards and makes them
// durable with one sync for everybody.
//
// The package must not know what a task may do: it stores what the core
// decides. The file system is injected (vfs.FS), so the same code runs on a
// disk, in memory, and on a memory that crashes.
package store
