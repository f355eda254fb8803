// Command driver lets codeq conform drive the Go SDK: it reads commands from standard input and
// prints events, one JSON object on a line, as docs/sdk-lines.md has them. It uses nothing but the
// public interface of package client, and adds nothing to it.
package main
