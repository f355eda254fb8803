// Command codeq is the one binary: the server, a worker around any program,
// and what a person needs to post tasks and look at them.
//
// Each subcommand is a kong struct whose Run does the work; those that share
// their arguments stand in one file. A fresh app carries the streams, the
// signals and the global flags to it. The package parses, builds, runs and
// prints; the server decides what a task may do, and package client how to talk
// to a server.
//
// Text for people goes to standard output when it is the answer and to
// standard error when it is about the work; with --json the answer is JSON.
// Exit codes are decided from the error in one place, exitCode: 0 done, 1 failed,
// 2 wrong call, 3 not there, 75 try again.
//
// It is one package because the subcommands share their flags, output and exit
// codes, and no other package imports them.
package main
