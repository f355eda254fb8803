//go:build unix

package server

import "syscall"

// raiseFileLimit raises the limit of open files as far as the system lets it, and
// returns it. Go leaves one to see whether somebody else changes the limit; the
// server starts no program to which that would matter.
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
