// Package websocket holds the WebSocket client of the Python SDK against RFC 6455: it plays the server's part of the
// cases in testdata/cases.txt, frame by frame, for a program that sends each message back. It has no code but tests,
// and no program imports it.
package websocket
