// Package keeper starts a program under a process that watches over it: the
// keeper, which is the same executable in another role. Neither has a terminal,
// and the program leads a process group. A pipe
// brings the keeper its orders; when it ends without a word, because whoever
// started the keeper has died in any way, the group gets TERM and, 5 s later,
// KILL. That works for a kill -9, for what the program has started, and on
// every Unix, since it is nothing but a pipe.
//
// A second pipe brings back what has happened: that the program runs, why it
// could not be started, that it was stopped and continued, and how it ended.
//
// The role is taken in the initialisation of this package. It imports os,
// os/signal, syscall, time and errors and nothing else, so that its turn comes
// before that of most others, whose initialisation takes longer than the start of
// a program. Nobody else calls the role.
package keeper
