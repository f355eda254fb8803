// Package actor runs the one goroutine that owns a state: it waits for
// messages or for a deadline, takes the whole backlog of its mailbox and hands
// it to a function.
//
// The function is the actor. It is called from one goroutine, one call at a
// time, and says after each call how long it has nothing to do. There is one
// timer per actor, whatever the number of things it waits for: the function
// knows its next deadline and sleeps to that one.
//
// The package must not know what a message is or what the function does. It
// restarts nothing: a panic in the function ends the process, because nobody
// can trust the state it left.
package actor
