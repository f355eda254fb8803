package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// Set by the linker.
var (
	version = "unknown"
	commit  = "unknown"
)

func main() {
	stops := make(chan os.Signal, 2)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(os.Args[1:], &app{
		program:       os.Args[0],
		in:            os.Stdin,
		out:           os.Stdout,
		err:           os.Stderr,
		inIsTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		errIsTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		stops:         stops,
	}))
}
