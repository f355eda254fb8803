// Package shard is the queue: what a task may do, and when.
//
// Shard is one value per shard, stepped by Round with a time and a list of messages.
// A round changes its state, appends to the open batch of its store.Span and to its
// list of effects, and says when the next one is due. Whoever owns the value calls
// Round; calls never overlap. There is no goroutine, lock, clock or global chance in
// the package, so the same messages at the same times give the same bytes and
// effects. What shards share, the credit of a consumer, is behind the interface
// Credit.
//
// Every change of a task goes through transition, which alone moves index keys,
// counters, record, history, result and event.
//
// The package knows no socket, no HTTP, no JSON and no file name. What it says
// reaches the outside through the one interface that it declares for that, Sink.
// Package shardactor runs it; a test or a simulator may do that as well.
//
// It is one package because every message changes the same value, and one
// function moves all tasks.
package shard
