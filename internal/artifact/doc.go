// Package artifact keeps the files that workers upload for their tasks.
//
// The shards know which files a task has: a file is begun under a number that the lease of the
// delivery holds, and lasts if a result names it; see package shard. What is on disk or in a
// bucket is found by task and number alone, never by a name that a client gave. A file is whole
// and durable before a shard hears of it. It is deleted after the batch is durable that ends or
// removes its task, because the event of that says so; what a crash leaves behind is found by one
// pass over all tasks with files when the server starts.
//
// The package must not know names of artifacts, results or clients.
package artifact
