// Package faults is what has gone wrong with queues of this kind in public, one
// test for each, against codeq as it is built and over networks that lose,
// delay, go silent one way, reset or leave half a connection. It has no code but
// tests, and no program imports it.
//
// A test carries the number of its fault. It is scaled to seconds, and runs
// beside the others, each with a server of its own; `make faults` runs the heavy
// forms, which take as long and as much as the reports speak of.
//
// The tests know the protocol, the client and the command line, and nothing of
// the inside.
package faults
