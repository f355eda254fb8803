// Package gosdk holds the programs that docs/go.md shows, each in a directory of its own. A test builds
// them in a module outside this one, runs them against a server, and looks at what they depend on:
// nothing of the server.
package gosdk
