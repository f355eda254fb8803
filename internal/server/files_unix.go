//go:build unix

package server

import "syscall"

// raiseFileLimit raises the soft limit of open files to the hard limit and returns it. Go
// does so as well, but leaves one out to notice when a program changes the limit for its
// children; the server has no children.
func raiseFileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return anyFiles // a system without such a limit
	}
	if raised := (syscall.Rlimit{Cur: limit.Max, Max: limit.Max}); syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil {
		limit = raised
	}
	return int(min(limit.Cur, anyFiles))
}
