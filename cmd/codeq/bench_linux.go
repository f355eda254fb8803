//go:build !clientonly

package main

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// endWithParent ends the server with this process, whatever ends that. A
// signal of the terminal is for the bench alone.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// syncData makes what was written to f durable, in the way that the store's
// log does.
func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// inMemory reports a directory that no disk is behind.
func inMemory(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && (s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC)
}
