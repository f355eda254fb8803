//go:build unix && !linux && !clientonly

package main

import (
	"os"
	"os/exec"
)

// endWithParent can do nothing here: a bench that is killed leaves its server.
func endWithParent(*exec.Cmd) {}

// syncData makes what was written to f durable.
func syncData(f *os.File) error { return f.Sync() }

// inMemory reports a directory that no disk is behind, where that is known.
func inMemory(string) bool { return false }
