// Package wire has what crosses a socket or a file: ids and tokens, error codes,
// limits, the Task and ResultRecord that a client sees, requests, and the frames of a
// session, with a parser and an append-style encoder for each.
//
// The package starts no goroutine and keeps no state between calls, so every function may
// be called from any goroutine. It uses no socket, no storage and no clock: the caller
// passes times as Unix milliseconds.
//
// Parsers of requests are strict: they refuse unknown members, members that come twice,
// values over their limits and deep nesting, and say which member is wrong. Parsers of
// answers ignore unknown members, so that a client works with a newer server.
//
// Payloads and results are opaque. The scanner checks that they are one JSON value and
// returns slices of the input; nothing re-encodes them.
//
// It is one package because the limits, codes, parsers and encoders of a frame
// change together, and all other packages use its types.
package wire
