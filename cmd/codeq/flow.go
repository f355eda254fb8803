package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// maxPipeBytes is the most that a pipe holds, unless a privileged process made it larger.
const maxPipeBytes = 1 << 20

// flow reads the output of a program from a pipe. That of os/exec drops what it has not
// read when its time is over; on a busy machine that was the whole result of a program
// that had ended well.
type flow struct {
	from *os.File
	to   io.Writer
	also []listener
	done chan struct{}
}

// newFlow starts to copy into to and the listeners, which never fail. The program gets the
// other end of the pipe, and the caller closes its own descriptor of it.
func newFlow(to io.Writer, also []listener) (*flow, *os.File, error) {
	from, end, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	for _, l := range also {
		to = io.MultiWriter(to, l)
	}
	f := &flow{from: from, to: to, also: also, done: make(chan struct{})}
	go f.run()
	return f, end, nil
}

// run ends after the last byte when no process holds the other end any more, or when the
// deadline is over and the pipe is empty.
func (f *flow) run() {
	defer close(f.done)
	if _, err := io.Copy(f.to, f.from); err != nil {
		f.rest()
	}
}

// rest reads what is in the pipe now, and does not wait for more. The output of the program
// is there; a process that it started and left may print for ever.
func (f *flow) rest() {
	pipe, err := f.from.SyscallConn()
	if err == nil {
		err = f.from.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return // then it is no pipe, and nothing is lost
	}
	part := make([]byte, 64<<10)
	for taken := 0; taken < maxPipeBytes; {
		n, failed := 0, error(nil)
		if pipe.Read(func(fd uintptr) bool {
			n, failed = syscall.Read(int(fd), part)
			return true
		}) != nil {
			return
		}
		switch {
		case n > 0:
			_, _ = f.to.Write(part[:n]) // never fails
			taken += n
		case !errors.Is(failed, syscall.EINTR):
			return
		}
	}
}

// finishAll waits at most that long for the other ends to be closed. After it returns
// nothing is written to the targets.
func finishAll(flows []*flow, within time.Duration) {
	deadline := time.Now().Add(within)
	for _, f := range flows {
		_ = f.from.SetReadDeadline(deadline) // it fails only for what is no pipe
		<-f.done
		_ = f.from.Close() // it was read to its end
		for _, l := range f.also {
			l.end()
		}
	}
}
