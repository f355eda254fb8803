// Package socket has the WebSocket connections of the server, below what is said over them:
// upgrade, reading over gws, and writes that last as long as the client takes enough.
//
// The package has no goroutine and no lock. It must not know frames.
package socket
