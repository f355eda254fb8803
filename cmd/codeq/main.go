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
	if os.Getpid() == firstProcess {
		if code, ok := runAsInit(); ok {
			os.Exit(code)
		}
	}
	stops := make(chan os.Signal, 2)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM)
	// Go ends a process that writes to a standard output or error nobody reads any
	// more, unless it has asked for SIGPIPE. With it the write fails instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(os.Args[1:], &app{
		program:       os.Args[0],
		in:            os.Stdin,
		out:           os.Stdout,
		err:           os.Stderr,
		outIsNull:     isNull(os.Stdout),
		inIsTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		outIsTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		outWidth:      widthOf(os.Stdout),
		errIsTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		stops:         stops,
	}))
}

// isNull reports the null device. A descriptor that was closed looks the same,
// because Go opens the null device in its place.
func isNull(f *os.File) bool {
	is, err := f.Stat()
	null, nullErr := os.Stat(os.DevNull)
	return err == nil && nullErr == nil && os.SameFile(is, null)
}
