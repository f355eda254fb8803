// Package server joins the parts of codeq into one process: options, port,
// store, engine, sessions, HTTP, and the order in which they begin and end. No
// rule of a task is written here.
//
// Open takes the port first, because a port in use is the mistake to report
// before a data directory is touched; until the store is recovered, the port
// answers that the server lives and is not ready. Shutdown goes the other way:
// no new connections, sessions told to drain, the engine finishes what it
// accepted with a last sync, the store closes.
//
// The package owns the goroutine that accepts connections and the Clock. Open
// and Shutdown wait for everything they start and stop; between them the
// methods may be called from any goroutine.
package server
