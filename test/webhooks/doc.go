// Package webhooks has a library of Standard Webhooks that nobody here wrote, the one of npm,
// verify what the built program posts. It needs Node and `npm ci` in this directory, and
// knows no package of the server: what crosses the sockets is all it sees. The test owns the
// server and the receiver, two processes that end with it.
package webhooks
