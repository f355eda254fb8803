// Package shardactor is the queue: what a task may do, and when.
//
// It comes in two halves that share no file. The core is Shard and everything
// Round calls: one value per shard, stepped with a time and a list of
// messages, that changes its state, appends to the open batch of its
// store.Span and to its list of effects, and says when it wants to be called
// again. It has no goroutine, lock, clock or global chance, so the same
// messages at the same times give the same bytes and effects. Every change of
// a task goes through transition, which alone moves index keys, counters,
// record, history, result and event.
//
// The shell (change.go, engine.go, figures.go, loop.go, outlet.go,
// room.go, router.go, seat.go) is the rest: one actor per shard that drains the
// mailbox, runs rounds, applies one batch per round and lets effects out once the
// sync that covers them is over. The shard's actor alone calls the core; Seat,
// Engine.Post and Engine.Route may be called from any goroutine.
//
// The package knows no socket, no HTTP, no JSON and no file name. What it
// says reaches the outside through the one interface it declares, Sink.
package shardactor
