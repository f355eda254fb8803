package blackbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// startFor is how long a server may take until it says where it listens.
const startFor = time.Minute

// Server is `codeq serve` as a process, on one data directory and one address
// for all its lives. Its methods are for the goroutine of the test, which they
// end when something is wrong with the process itself.
type Server struct {
	t testing.TB
	// Addr is host:port, Dir the data directory.
	Addr string
	Dir  string

	args []string
	// under is what a shell does before it becomes the program.
	under string
	cmd   *exec.Cmd
	said  *tail
	// seen is told the id of each process, and 0 when it has ended; nil if nobody asks.
	seen *atomic.Int64
}

// Serve starts a server on a new directory and waits until it listens. args are
// further flags of `codeq serve`. It is killed at the end of the test, whose
// failure shows the end of its log.
func Serve(t testing.TB, args ...string) *Server {
	t.Helper()
	return ServeUnder(t, ":", args...)
}

// ServeUnder is Serve for a process that begins as a shell, which runs some
// commands (ulimit, export) and then becomes codeq.
func ServeUnder(t testing.TB, commands string, args ...string) *Server {
	t.Helper()
	return serve(t, commands, filepath.Join(t.TempDir(), "data"), args)
}

// ServeOver is Serve on a directory that is there.
func ServeOver(t testing.TB, dir string, args ...string) *Server {
	t.Helper()
	return serve(t, ":", dir, args)
}

func serve(t testing.TB, commands, dir string, args []string) *Server {
	t.Helper()
	s := &Server{t: t, Addr: Address(t), Dir: dir, args: args, under: commands, said: &tail{}}
	t.Cleanup(s.end)
	s.Start()
	return s
}

// end ends the process with the test.
func (s *Server) end() {
	if s.cmd != nil {
		s.Kill()
	}
	if s.t.Failed() {
		s.t.Logf("the server on %s said at the end:\n%s", s.Addr, s.said.String())
	}
}

// Address is a loopback address for a server that a test starts, kills and starts
// again; until the end of the test nobody else gets it. The system chooses the port
// for a socket that stays bound and never listens: no other bind and no connection
// gets a port that is bound, but a socket that has SO_REUSEADDR, as Go's listeners
// have, may listen on one where nobody does.
func Address(t testing.TB) string {
	t.Helper()
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) }) // nothing was written to it
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
}

// URL is the server's address for HTTP.
func (s *Server) URL() string { return "http://" + s.Addr }

// Start begins another life of a server that has ended, and returns when it
// listens.
func (s *Server) Start() {
	s.t.Helper()
	path, err := Program()
	if err != nil {
		s.t.Fatal(err)
	}
	args := []string{"serve", "--json", "--log-format", "json", "--listen", s.Addr, "--data", s.Dir}
	cmd := Under(s.under, path, append(args, s.args...)...)
	cmd.Stderr = s.said
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.cmd = cmd
	s.tell(int64(cmd.Process.Pid))
	if err := awaitAnnouncement(out); err != nil {
		s.t.Fatalf("start codeq: %v; it said:\n%s", err, s.said.String())
	}
}

func (s *Server) tell(pid int64) {
	if s.seen != nil {
		s.seen.Store(pid)
	}
}

// Refused starts a life that must end by itself, and returns what it said.
func (s *Server) Refused() string {
	s.t.Helper()
	path, err := Program()
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startFor)
	defer cancel()
	args := []string{"serve", "--json", "--log-format", "json", "--listen", s.Addr, "--data", s.Dir}
	said, err := exec.CommandContext(ctx, path, append(args, s.args...)...).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		s.t.Fatalf("codeq serve did not end by itself with an error: %s", said)
	}
	return string(said)
}

// awaitAnnouncement reads the line with which a server says that it serves.
func awaitAnnouncement(out io.Reader) error {
	line := make(chan error, 1)
	go func() {
		text, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil && !json.Valid(text) {
			err = fmt.Errorf("it announces itself with %q", text)
		}
		line <- err
	}()
	select {
	case err := <-line:
		return err
	case <-time.After(startFor):
		return fmt.Errorf("it does not say that it serves within %v", startFor)
	}
}

// Kill ends the process with -9: nothing is flushed, nobody is told.
func (s *Server) Kill() {
	s.t.Helper()
	s.signal(syscall.SIGKILL)
	_ = s.cmd.Wait() // ended by our signal, which it reports as an error
	s.cmd = nil
	s.tell(0)
}

// Stop ends the process with SIGTERM and returns how long that took. An exit
// code other than 0 fails the test; a process that does not end is killed after
// answerFor, which is one too.
func (s *Server) Stop() time.Duration {
	s.t.Helper()
	began := time.Now()
	s.signal(syscall.SIGTERM)
	process := s.cmd.Process
	defer time.AfterFunc(answerFor, func() { _ = process.Kill() /* it may have ended just now */ }).Stop()
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("stop codeq: %v", err)
	}
	s.cmd = nil
	s.tell(0)
	return time.Since(began)
}

// Pause stops the process where it stands, until Continue.
func (s *Server) Pause() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
}

// Continue ends a Pause.
func (s *Server) Continue() {
	s.t.Helper()
	s.signal(syscall.SIGCONT)
}

// Signal sends a signal to the process.
func (s *Server) Signal(sig syscall.Signal) {
	s.t.Helper()
	s.signal(sig)
}

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil && (sig != syscall.SIGKILL || !errors.Is(err, os.ErrProcessDone)) {
		s.t.Fatalf("send %v to codeq: %v", sig, err)
	}
}

// ResidentBytes is the memory of the process as the system counts it.
func (s *Server) ResidentBytes() int64 {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return kib << 10
		}
	}
	s.t.Fatalf("the system does not say how much memory codeq has:\n%s", status)
	return 0
}

// Log is the end of what the server said on standard error, over all its lives.
func (s *Server) Log() string { return s.said.String() }

// tailBytes is how much of a log is kept.
const tailBytes = 64 << 10

// tail keeps the end of what is written. Any goroutine.
type tail struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write implements io.Writer.
func (x *tail) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.buffer.Write(p)
	if over := x.buffer.Len() - tailBytes; over > 0 {
		x.buffer.Next(over)
	}
	return len(p), nil
}

// String is what is kept.
func (x *tail) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.buffer.String()
}
