// Command peers carries the same tasks through codeq and through other queues, in turn
// on one machine, and prints how they compare: `make peers`.
//
// A task has a JSON payload of 100 bytes. 32 producers create tasks, workers get and
// complete them; a task counts once its completion is confirmed, where the queue confirms
// one. Each queue is measured with producers that wait for every answer, and with up to
// 64 tasks without an answer for each producer, in the way that its client offers. At
// most 8,192 tasks are unfinished at a time. Every task is counted: one that is lost or
// delivered twice fails the run.
//
// Servers run as children of this program, on a new directory, and listen on the loopback
// interface. Nothing is installed: what is missing is named, and left out. codeq is
// measured by its own bench.
//
// The module is one of its own, so that the program's go.mod names no client of another
// queue.
package main
