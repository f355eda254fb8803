package faults

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeq/test/blackbox"
)

// The log goes to somebody who leaves, to somebody who stays and never reads, and
// to a disk that is full. The server loses lines, counts them, works on, and stops
// in order.
func TestN13LogThatNobodyTakesCostsLinesOnly(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T) (to string, then func()){
		"reader leaves":      func(t *testing.T) (string, func()) { return logPipe(t, true) },
		"reader never reads": func(t *testing.T) (string, func()) { return logPipe(t, false) },
		"full disk":          func(*testing.T) (string, func()) { return "/dev/full", func() {} },
	} {
		t.Run(name, func(t *testing.T) {
			to, then := prepare(t)
			x := newSiteUnder(t, "exec 2>"+to, "--log-level", "debug")
			then()
			// A line for each request: more than a pipe takes, and than may wait.
			w := x.worker(x.server.Addr, "w", 1, 60)
			x.eventually(patience, "lines are lost", func() bool {
				for range 100 {
					x.ask(http.MethodGet, "/admin/queues", "")
				}
				return blackbox.Figure(x.server.Metrics(), "codeq_log_lines_lost_total") > 0
			})
			x.through(w, 10)
			if took := x.server.Stop(); took > slack {
				t.Errorf("the stop took %v", took)
			}
		})
	}
}

// logPipe is a named pipe with a reader, which leaves then or does not read.
func logPipe(t *testing.T, leaves bool) (path string, then func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() }) // it may have left
	return path, func() {
		if leaves {
			_ = reader.Close() // nothing was read
		}
	}
}

// `codeq serve | head -1`: the address is read, the rest is not. HUP is not the end
// of a server that was started without a terminal, and says what it did.
func TestN13ServerWhoseOutputIsClosed(t *testing.T) {
	x := newSiteUnder(t, ":")
	x.server.Signal(syscall.SIGHUP)
	x.eventually(patience, "HUP is said to change nothing", func() bool {
		return strings.Contains(x.server.Log(), "there is no file of tokens to read again")
	})
	x.through(x.worker(x.server.Addr, "w", 1, 60), 10)
	x.server.Stop()
	path, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := blackbox.Under(":", path, "serve", "--listen", x.server.Addr, "--data", x.server.Dir)
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close() // nothing was written to it
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	x.eventually(patience, "the server serves", func() bool {
		_, err := x.api.Do(x.ctx, http.MethodGet, "/admin/queues", "")
		return err == nil
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(patience):
		_ = cmd.Process.Kill() // the test has failed
		t.Fatal("it does not stop")
	}
}
