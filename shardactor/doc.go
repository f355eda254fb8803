// Package shardactor runs the shards: one actor per shard drains its mailbox, runs
// rounds of the core, applies one batch per round and lets the effects out once the
// sync that covers them is over. It draws ids, takes changes of settings through all
// shards, and counts what rounds did. What a task may do is package shard.
//
// A shard's actor alone calls its core; the methods of Consumer and Engine may be called
// from any goroutine unless they say otherwise. The package knows no socket, no HTTP,
// no JSON and no file name.
package shardactor
