package keeper

import "syscall"

// leader makes the program lead a group of its own, and die with its keeper, also
// with one that could not say yet which process it is. The initialisation of a
// program runs on one thread for as long as there is one, so the death of that
// thread is that of the keeper.
func leader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
