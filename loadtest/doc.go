// Package loadtest puts a codeq server under load, checks every answer and
// measures how fast the server was.
//
// A Workload is the canonical one unless told otherwise: 32 producers that
// each wait for their answer, one worker with a window of 128 that completes
// at once. Run carries it out against a Target: Remote is a server behind its
// public protocol; tests have other targets. The ledger keeps one record
// per posted task and knows at the end whether each acknowledged task was
// completed exactly once and with its own payload; speed without that verdict
// is not reported.
//
// Goroutines: one per producer, a reader and a writer per session, one that
// measures. The goroutine that receives answers owns a Tally; the ledger is shared and made
// of atomics, because a task is posted, acknowledged and worked on by three
// goroutines. The generator shares its machine with the server, so the hot
// path parses only the members it needs and allocates nothing per task.
//
// The package knows the public protocol and nothing of the server's packages,
// of flags or of terminals.
//
// It is one package because the load, the ledger and the report share the
// record of each task.
package loadtest
