// Package watch serves GET /v1/codeq/events: clients see figures, tasks and events of queues as
// they change.
//
// A subscriber is a client as a value. It is told what its client asks (Take), and gives one
// message at a time (Next), at most 256 KiB, when the socket has sent the one before. It has no
// queue of what happened: it has cursors into the Board, which has the newest figures of each
// queue, and into the ring of events. So a client that reads slowly costs nothing and gets fewer
// ticks, never old ones, and its lost events are said to be a gap. A subscriber has no goroutine,
// clock, lock or socket.
//
// A subscription to queues gets a snapshot of the rows that it may see, and then the rows whose
// version is newer than what it has. A row that changes while the parts of a snapshot are sent
// has a newer version, so it comes again with the first tick. The name of a slot comes before its
// first row.
//
// A subscription to events has, for each shard, the number of the last event that it is past,
// and reads on from there: what the ring has no more is a gap.
//
// The package must not know how a task moves, and it changes nothing.
package watch
