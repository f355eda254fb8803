// Command workers is the worker in Go of docs/workers.md, beside the same one
// in Python, in JavaScript and as shell scripts.
//
// It owns nothing: each file is a whole program that a reader may take away, so
// none has more than 30 lines, and all of them do the same work: the square of
// the integer that is the payload of a task "square". The tests run each of
// them against a server in their own process, the scripts that call codeq in
// those of cmd/codeq.
//
// The worker must not know more of codeq than the package client.
package main
