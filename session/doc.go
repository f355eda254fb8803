// Package session has the WebSocket sessions of workers and producers.
//
// Here each socket has a session and a Conversation of its own; a resume takes over the id. A
// Conversation is a value: it is stepped by what happened (a message of the client, effects of
// shards, a pong, the time) and returns what follows (frames, messages to shards, calls of the
// consumer, a close). It has no goroutine, clock, lock or socket, so a test or a simulator
// controls every step. The session around it has two goroutines and one mutex: a reader, which
// gws drives, and a writer, an actor over a mailbox. Both step the conversation under the mutex
// and do its actions before they unlock it; no action blocks. Only the writer writes, only
// outside the mutex, and every write has a deadline. A Registry upgrades requests to sessions,
// counts sessions, and ends them when the server stops.
//
// What a client can leave unread is bounded. Every frame of the client counts as an
// unanswered request, by number and by bytes, until its answer has left; at the limit the
// reader stops, even in the middle of a message, and missed pings do not count. Tasks are
// bounded by the window of the session and, in bytes, by the consumer. So Deliver never waits
// and never refuses.
//
// gws 1.9.1 has four properties that this package works around:
//   - A frame whose 64-bit length has its top bit set panics in ReadLoop. The reader recovers,
//     closes the socket with 4400 and ends the session. It does not recover from a panic of our
//     own handlers.
//   - gws itself answers a message over the limit, or any other breach of RFC 6455. Its close
//     frame passes our connection, which replaces the code by 4400, as the protocol promises.
//   - The write mutex of gws has no deadline: every write sets one on the connection below, and
//     cut closes that connection.
//   - WriteAsync has no bound and is not used.
//
// The package must not know the life of a task: it reads no task and decides no transition. No
// log line has a payload, result, token or key.
//
// It is one package because the conversation and the goroutines around it share the types of
// its events and actions.
package session
