// Package blackbox runs codeq as its users have it, for tests that know nothing
// of its inside: the program as it is built, started as a process that can be
// paused and killed; a session and HTTP requests spoken by hand; and a TCP proxy
// that stands between the two and behaves like a bad network. No program imports
// it.
//
// A Program is built once for a test binary. A Server belongs to the goroutine
// of its test. A Peer and a Proxy may be used from any goroutine; each has
// goroutines of its own, which are gone when its Close returns.
//
// The package must not know any package of the server. Of codeq it knows the
// words that cross a socket, and the command line.
package blackbox
