// Package httpapi is the HTTP interface of the queue: producers, readers, administrators and
// workers send JSON to it, and workers open their sessions by it.
//
// It owns the routes, the order in which a request is checked, and the bytes of every answer:
// each answer is a JSON object, except the metrics and the backup, and a refusal has the same
// form everywhere. Each request runs on its goroutine of net/http; the package starts none. A
// handler returns its answer as a value and one function writes it, so a handler that panics
// has not written anything.
//
// Reads have a barrier: a handler reads the store first, and answers when everything that was
// visible then is on disk. A request that waits for a result registers with the shard of the
// task before it reads, so no result is missed between the two.
//
// The labels of /metrics do not grow without bound: the largest queues have series of their
// own, the others are summed, and no task, worker or key is a label. Everybody who reaches
// the port may read the metrics, which have the names of tenants and commands.
//
// The package must not know the rules of a task (the shards know them), how records lie on
// disk (the store knows it), or the frames of a session.
//
// It is one package because all routes share their checks, answers and
// refusals.
package httpapi
