// Package crash kills codeq while many clients use it, and asks whether what
// they saw can be explained. It has no code but tests, and no program imports
// it.
//
// Producers, readers and workers, over HTTP and over sessions, note each thing
// they ask, when, and what came back; what had no answer stays open for ever,
// because it may have happened or not. Afterwards the notes of each task are
// given to a checker of linearizability together with a model of one task: there
// must be one order of all that was asked, true to the order in time, in which
// every answer is what the model says. The model knows the promises of the
// protocol and nothing of the inside.
//
// `go test ./test/crash` kills the server a few times; `make crash` goes on for
// minutes, with new seeds.
package crash
