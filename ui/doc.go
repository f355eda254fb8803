// Package ui has the pages of the dashboard and serves them below /ui/. Their source is in
// src, in TypeScript; `make ui` builds dist, which is committed, so that a build of the program
// needs no Node. The package knows nothing of tasks: the pages ask the API like every client.
// Any goroutine may use its handler.
package ui
