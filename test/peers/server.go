package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startsFor is how long a server may take to answer.
const startsFor = time.Minute

// server is a child process with all that it starts: a process group.
type server struct {
	cmd   *exec.Cmd
	addr  string
	said  *words
	ended chan struct{}
	// after, if any, is called when it has ended.
	after func() error
}

// words keeps the end of what a server prints.
type words struct {
	mu   sync.Mutex
	text []byte
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	w.text = w.text[max(0, len(w.text)-2000):]
	return len(p), nil
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(bytes.TrimSpace(w.text))
}

// freePort is a port of the loopback interface that nobody uses.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// launch starts a program that is to listen on that port.
func launch(port string, environment []string, program string, args ...string) (*server, error) {
	s := &server{cmd: exec.Command(program, args...), addr: "127.0.0.1:" + port, said: &words{}, ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = s.said, s.said
	s.cmd.Env = append(os.Environ(), environment...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // its last words say why it ended
		close(s.ended)
	}()
	return s, nil
}

// stop ends the process group.
func (s *server) stop() error {
	err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.ended
	if errors.Is(err, syscall.ESRCH) {
		err = nil
	}
	if s.after != nil {
		err = errors.Join(err, s.after())
	}
	return err
}

// eventually tries until the server answers.
func eventually[T any](ctx context.Context, s *server, try func() (T, error)) (got T, err error) {
	for late := time.Now().Add(startsFor); ; {
		if got, err = try(); err == nil {
			return got, nil
		}
		select {
		case <-s.ended:
			return got, fmt.Errorf("the server ended: %s", s.said)
		case <-ctx.Done():
			return got, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(late) {
			return got, fmt.Errorf("the server does not answer: %w: %s", err, s.said)
		}
	}
}

// stats are the fields of /proc/PID/stat behind the name, of each process of the group.
func (s *server) stats() (all [][]string, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if fields[2] == strconv.Itoa(s.cmd.Process.Pid) {
			all = append(all, fields)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the server ended: %s", s.said)
	}
	return all, nil
}

// sum adds up fields of all processes, counted from the state, which is 0.
func (s *server) sum(fields ...int) (sum int64, err error) {
	all, err := s.stats()
	if err != nil {
		return 0, err
	}
	for _, one := range all {
		for _, field := range fields {
			n, err := strconv.ParseInt(one[field], 10, 64)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return sum, nil
}

// cpu is the processor time of the group, which Linux counts in hundredths of a second.
func (s *server) cpu() (time.Duration, error) {
	ticks, err := s.sum(11, 12)
	return time.Duration(ticks) * 10 * time.Millisecond, err
}

// mib is the memory of the group that is in use.
func (s *server) mib() (float64, error) {
	pages, err := s.sum(21)
	return float64(pages) * float64(os.Getpagesize()) / (1 << 20), err
}

// need looks for a program, and says with what it comes.
func need(program, from string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("there is no %s: %s", program, from)
	}
	return nil
}

// versionOf is the first word with a dot between digits that a program prints.
func versionOf(program string, args ...string) string {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return "of unknown version"
	}
	for _, word := range strings.FieldsFunc(string(out), func(r rune) bool { return !strings.ContainsRune("0123456789.", r) }) {
		if strings.Contains(strings.Trim(word, "."), ".") {
			return strings.Trim(word, ".")
		}
	}
	return "of unknown version"
}
