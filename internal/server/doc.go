// Package server joins the parts of codeq into one process: options, port, store, engine,
// sessions, HTTP, and the order in which they start and stop. It has no rule about a task.
//
// Open takes the port first, so that a port in use is reported before the data directory
// changes; until the store is recovered, the port answers that the server lives and is not
// ready. Shutdown stops in the reverse order: it accepts no new connections, tells sessions
// to drain, lets the engine finish and sync what it has accepted, and closes the store.
//
// The package owns the goroutine that accepts connections, and the engine clock. Open and Shutdown
// wait for everything that they start and stop; between them the methods may be called from
// any goroutine.
//
// In a cluster a Server is the node, and a further one over the same port is made for each time
// that the node leads: leading ends, and what was made for it is thrown away, while the process
// goes on.
//
// It is one package because a server alone and a node of a cluster are made of the same parts, in
// the same order.
package server
