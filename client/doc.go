// Package client is the Go side of the protocol: what a producer and a worker
// need to talk to a codeq server, and nothing of how the server does it.
//
// It owns three things. Client asks over HTTP, one call and one answer.
// Session posts tasks over a WebSocket with many in flight. Worker subscribes
// over a WebSocket, runs a handler for each task it is pushed, keeps the
// leases alive and hands every delivery back with an outcome.
//
// Session and Worker are each one goroutine, the loop, that owns all their
// state; there is no lock. Around a live socket stand two more, one that reads
// and one that writes, and a third while a new socket is dialled. A loop never
// waits for the network, and each of them is gone when Close or Run returns.
// Methods of exported types may be called from any goroutine; callbacks and
// hooks run on the loop and must not block.
//
// The package imports wire and knows nothing of the server's packages, of
// flags or of terminals. It never compares its clock with the server's: a
// lease is over when the server says so.
package client
