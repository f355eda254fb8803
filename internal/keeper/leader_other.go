//go:build !linux

package keeper

import "syscall"

// leader makes the program lead a group of its own.
func leader() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
