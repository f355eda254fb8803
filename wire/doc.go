// Package wire holds the words of codeq: what crosses a socket or a file and
// therefore has one spelling for everybody. Ids and tokens, error codes,
// limits, the Task and ResultRecord a client sees, and the frames of a
// session, each with a strict parser and an append-style encoder.
//
// Nothing here runs on a goroutine of its own and nothing keeps state between
// calls, so every function may be called from anywhere. The package knows no
// socket, no storage and no clock: times are Unix milliseconds handed in by
// the caller.
//
// Payloads and results are opaque. The scanner checks that they are one JSON
// value and hands out the bytes as they came; nothing re-encodes them.
//
// It is one package because the limits, codes, parsers and encoders of a frame
// change together, and all other packages use its types.
package wire
