// Package sim is the machine that looks for our bugs before users do: the
// production shards, store and conversations, driven by hand by one seeded
// scheduler, and a small model that says what may be observed. It is for tests
// only; no program imports it.
//
// A run is a seed and a list of step numbers. Every step draws what it does
// from (seed, number) alone, so that steps can be left out of a failing run
// without changing the others, and the same list gives the same trace. The
// scheduler owns the clock, the chance, the disk (Pebble on a file system in
// memory that forgets what was not synced), the network between clients and
// sessions, and the end of the process. One goroutine steps everything; what
// Pebble starts for itself cannot be seen in what the world reads, because
// tables are written only when a step says so.
//
// world.go is the scheduler, server.go the process with its disk, lives.go how it ends and
// begins, cluster.go three of them and the log between them, voters.go their
// clocks and disks, conn.go the server's half of a socket, client.go and
// producer.go who speaks to it, moments.go what they must do just then,
// model.go, rules.go and verdict.go the model with every property of a round,
// checks.go the properties of a world at rest, shrink.go the search for a
// shorter story.
//
// The package must not know how a shard, an index or a record is built: what it
// expects it has from the promises of the lifecycle alone.
package sim
