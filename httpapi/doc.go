// Package httpapi is the HTTP face of the queue: producers, readers and
// administrators speak JSON to it, workers pass through it once to open a
// session.
//
// It owns the routes, the order in which a request is checked, and the bytes
// of every answer: whatever happens to a request, its answer is a JSON object
// (the figures for Prometheus excepted), and a refusal is the same object
// everywhere. Each request runs on the
// goroutine that net/http gives it; the package starts none. A handler returns
// its answer as a value and one place writes it, so a handler that panics has
// written nothing yet.
//
// Reads have a barrier: the store is read first, and the answer waits until
// everything that was visible then is on disk. Waiting for a result is
// registering with the shard of the task before reading, so no result falls
// in between.
//
// The figures of /metrics have no label that grows without bound: the largest
// queues stand under their names, the others together, and no task, worker or
// key is named. Anybody who reaches the port may read them, the names of
// tenants and commands included.
//
// The package must not know what a task may do (the shards do), how records
// lie on disk (the store does), or what a session says.
package httpapi
