// Package testserver runs the server of codeq for tests: the whole server with its real sockets, on
// a file system in memory and with a clock that stands still until Advance moves it. Delays, leases,
// backoff, grace, retention and rates follow this clock; sockets, pings and the waits of HTTP
// requests follow that of the machine. The ids of tasks follow from a seed.
//
// It is behind `codeq test-server`, the kit of `codeq conform`, and client/codeqtest.
package testserver
