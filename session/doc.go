// Package session holds the WebSocket sessions of workers and producers.
//
// A session is two halves. A Conversation is a value: it is stepped with what
// happened (a client's message, effects of shards, a pong, the time) and says
// what follows (frames, messages to shards, what the seat shall do, a close).
// It has no goroutine, clock, lock or socket, so a test or a simulator owns
// every step. The session around it is two goroutines and one mutex: a reader,
// which gws drives, and a writer, an actor over a mailbox. Both step the
// conversation under the mutex and do what it says before they let go of it;
// none of that blocks. Only the writer writes, only outside the mutex, and
// every write has a deadline. A Registry upgrades requests to sessions, counts
// them and ends them when the server goes.
//
// What a client may owe and be owed is bounded. Every frame counts as an
// unanswered request, by number and by bytes, until its answer has left; at
// the bound the reader stops in the middle of a message if need be, and the
// idle clock stands still. Tasks are bounded by the session's window and, in
// bytes, by the seat. So Deliver never has to wait or to refuse.
//
// What gws 1.9.1 does that this package must see to:
//   - A frame whose 64-bit length has its top bit set panics in ReadLoop. The
//     reader recovers, closes the socket and ends the session as gone. A panic
//     out of our own handlers is not recovered.
//   - A message over the limit, or anything else against RFC 6455, is answered
//     by gws itself. Its close frame passes our connection, which writes 4400
//     into it; the client gets the code the protocol promises.
//   - Its write mutex has no deadline: every write sets one on the connection
//     below, and cutting closes that connection.
//   - WriteAsync has no bound and is not used.
//
// The package must not know how a task lives: it looks up no task and decides
// no transition. Payloads, results, tokens and keys appear in no log line.
//
// It is one package because the conversation and the goroutines around it
// share the types of its events and actions.
package session
