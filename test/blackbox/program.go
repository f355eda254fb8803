package blackbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
)

// program is built by whoever needs it first.
var program struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// OverlayVariable names an overlay for the build of the program, as go build
// -overlay takes it, for tests that put faults into it.
const OverlayVariable = "CODEQ_TEST_OVERLAY"

// earlier is what Program is while it is not empty.
var earlier atomic.Value

// Earlier has every process from here on be that of another program, one of an earlier version, until it is
// called with an empty path. Any goroutine.
func Earlier(path string) { earlier.Store(path) }

// Program is the path of codeq, built from the source that is tested. Remove
// takes it away again. Any goroutine.
func Program() (string, error) {
	if path, is := earlier.Load().(string); is && path != "" {
		return path, nil
	}
	program.once.Do(build)
	return program.path, program.err
}

func build() {
	dir, err := os.MkdirTemp("", "codeq-blackbox-")
	if err != nil {
		program.err = fmt.Errorf("make a directory for the program: %w", err)
		return
	}
	program.dir = dir
	program.path = filepath.Join(dir, "codeq")
	args := []string{"build", "-trimpath", "-o", program.path}
	if overlay := os.Getenv(OverlayVariable); overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, "codeq/cmd/codeq")...)
	// As it is built for users: without a C compiler, and without the race
	// detector of the test around it.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		program.err = fmt.Errorf("build codeq: %w\n%s", err, said)
	}
}

// HearSignals undoes what nohup, or a shell that starts a job in the background,
// does to a process and to all that it starts, which is to ignore HUP, or INT and
// QUIT: what a test starts takes these signals as it would in a terminal. It is for
// the beginning of a TestMain.
func HearSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// Under is a command that begins as a shell, runs the commands there and then
// becomes the program.
func Under(commands, program string, args ...string) *exec.Cmd {
	script := commands + "\nexec \"$0\" \"$@\""
	return exec.Command("sh", append([]string{"-c", script, program}, args...)...)
}

// Remove takes away what Program built. It is for the end of a TestMain, when
// no process of it runs any more.
func Remove() error {
	if program.dir == "" {
		return nil
	}
	if err := os.RemoveAll(program.dir); err != nil {
		return fmt.Errorf("remove the program: %w", err)
	}
	return nil
}

// Exit is the end of a TestMain: it removes the program and ends the process.
func Exit(code int) {
	if err := Remove(); err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(err))
		code = max(code, 1)
	}
	os.Exit(code)
}
