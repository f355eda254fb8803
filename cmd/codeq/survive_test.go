package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

// Four `codeq work` processes hash the files that `codeq enqueue` posts, while
// the server is killed with -9 and started again three times and two of the
// workers are killed. Every file has one task and the right result. The short
// form kills the server once.
func TestThousandFilesSurviveKills(t *testing.T) {
	files := 1000
	if testing.Short() {
		files = 60
	}
	s := newSurvival(t, files)
	s.startServer()
	s.awaitReady()
	for range 4 {
		s.startWorker()
	}
	posted := make(chan map[int]string, 1)
	go func() { posted <- s.enqueueAll() }()

	// The programs of the workers count what they finish, so that every kill
	// falls into the work and not behind it.
	s.awaitHashed(files / 8)
	s.killServer()
	s.startServer()
	if !testing.Short() {
		s.killMore(files)
	}
	s.awaitReady()
	s.checkResults(<-posted)
}

// killMore kills the server twice more and two of the workers, whose tasks come
// back after the grace.
func (s *survival) killMore(files int) {
	s.awaitHashed(files / 4)
	s.killWorker(0)
	s.killServer()
	s.startServer()
	s.awaitHashed(files / 2)
	s.killWorker(1)
	s.killServer()
	s.startServer()
}

// survival is the machine room of the test: a server and workers as processes
// of their own, and a counter that the workers' programs move.
type survival struct {
	t       *testing.T
	dir     string
	address string
	want    []string
	// hashed gets one word for each program that ended well; finished counts
	// those that were taken from it.
	hashed   chan struct{}
	finished int

	mu      sync.Mutex
	server  *exec.Cmd
	workers []*exec.Cmd
}

func newSurvival(t *testing.T, files int) *survival {
	t.Helper()
	s := &survival{t: t, dir: t.TempDir(), address: blackbox.Address(t), hashed: make(chan struct{}, 100*files)}
	s.writeFiles(files)
	s.writeProgram()
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, cmd := range append(s.workers, s.server) {
			if cmd != nil {
				_ = cmd.Process.Kill() // it may have ended by itself
				_ = cmd.Wait()         // so it has, by our own signal
			}
		}
	})
	return s
}

// writeFiles makes the files, what they hash to, and the list of tasks.
func (s *survival) writeFiles(files int) {
	chance := rand.New(rand.NewPCG(1, 2))
	var tasks bytes.Buffer
	for i := range files {
		data := make([]byte, chance.IntN(20_000))
		for j := range data {
			data[j] = byte(chance.Uint32())
		}
		path := filepath.Join(s.dir, fmt.Sprintf("file%04d", i))
		s.write(path, data, 0o600)
		sum := sha256.Sum256(data)
		s.want = append(s.want, hex.EncodeToString(sum[:]))
		fmt.Fprintf(&tasks, "{\"file\":%q}\n", path)
	}
	s.write(filepath.Join(s.dir, "tasks.ndjson"), tasks.Bytes(), 0o600)
}

// writeProgram makes hash.sh, which uses nothing but a shell and sha256sum,
// and the pipe over which it tells that it is done.
func (s *survival) writeProgram() {
	pipe := filepath.Join(s.dir, "hashed")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		s.t.Fatal(err)
	}
	// Opened for both directions it never ends while a program is between two.
	told, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = told.Close() }) // nothing was written through it
	go func() {
		lines := bufio.NewScanner(told)
		for lines.Scan() {
			s.hashed <- struct{}{}
		}
	}()
	s.write(filepath.Join(s.dir, "hash.sh"), fmt.Appendf(nil, `#!/bin/sh
file=$(sed 's/.*"file":"\([^"]*\)".*/\1/')
sum=$(sha256sum "$file") || exit 1
printf '{"sha256":"%%s"}' "${sum%%%% *}"
echo done >%s
`, pipe), 0o700)
}

func (s *survival) write(path string, data []byte, mode os.FileMode) {
	if err := os.WriteFile(path, data, mode); err != nil {
		s.t.Fatal(err)
	}
}

// command is this test binary as codeq.
func (s *survival) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), asCodeq+"=1", "CODEQ_URL=http://"+s.address)
	return cmd
}

// start runs codeq and collects what it says for a failed test.
func (s *survival) start(args ...string) *exec.Cmd {
	cmd := s.command(args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if s.t.Failed() && said.Len() > 0 {
			s.t.Logf("codeq %s:\n%s", args[0], lastBytes(said.String(), 2000))
		}
	})
	return cmd
}

func lastBytes(text string, n int) string { return text[max(0, len(text)-n):] }

func (s *survival) startServer() {
	cmd := s.start("serve", "--listen", s.address, "--data", filepath.Join(s.dir, "data"))
	s.mu.Lock()
	s.server = cmd
	s.mu.Unlock()
}

// awaitReady waits for the first answer of the server.
func (s *survival) awaitReady() {
	s.t.Helper()
	for range 600 {
		response, err := http.Get("http://" + s.address + "/readyz")
		if err == nil {
			_ = response.Body.Close() // nothing of it is used
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(50 * time.Millisecond) // another process starts; there is no event to wait for
	}
	s.t.Fatal("the server does not become ready")
}

// killServer is kill -9: nothing is flushed, nobody is told.
func (s *survival) killServer() {
	s.mu.Lock()
	cmd := s.server
	s.server = nil
	s.mu.Unlock()
	s.kill(cmd)
}

func (s *survival) startWorker() {
	cmd := s.start("work", "sha256", "--window", "8", "--", "./hash.sh")
	s.mu.Lock()
	s.workers = append(s.workers, cmd)
	s.mu.Unlock()
}

func (s *survival) killWorker(i int) {
	s.mu.Lock()
	cmd := s.workers[i]
	s.workers[i] = nil
	s.mu.Unlock()
	s.kill(cmd)
}

func (s *survival) kill(cmd *exec.Cmd) {
	if err := cmd.Process.Kill(); err != nil {
		s.t.Fatalf("kill %v: %v", cmd.Args, err)
	}
	_ = cmd.Wait() // ended by our signal, which it reports as an error
}

// enqueueAll posts the whole file, again and again until every line has its
// task: a repetition makes no second one.
func (s *survival) enqueueAll() map[int]string {
	ids := make(map[int]string)
	for range 50 {
		cmd := s.command("enqueue", "sha256", "--file", "tasks.ndjson", "--run", "survive", "--json")
		// A run that met a killed server ends with an error; what it did say counts.
		out, err := cmd.Output()
		for line := range strings.Lines(string(out)) {
			var answer struct {
				Line   int
				TaskID string
			}
			if json.Unmarshal([]byte(line), &answer) != nil || answer.TaskID == "" {
				continue
			}
			if was, known := ids[answer.Line]; known && was != answer.TaskID {
				s.t.Errorf("line %d has two tasks, %s and %s", answer.Line, was, answer.TaskID)
			}
			ids[answer.Line] = answer.TaskID
		}
		if err == nil && len(ids) == len(s.want) {
			return ids
		}
	}
	return ids
}

// awaitHashed waits until the programs have finished n times.
func (s *survival) awaitHashed(n int) {
	s.t.Helper()
	late := time.After(2 * time.Minute)
	for ; s.finished < n; s.finished++ {
		select {
		case <-s.hashed:
		case <-late:
			s.t.Fatalf("%d of %d files were hashed in time", s.finished, n)
		}
	}
}

func (s *survival) checkResults(ids map[int]string) {
	t := s.t
	if len(ids) != len(s.want) {
		t.Fatalf("%d of %d lines have a task", len(ids), len(s.want))
	}
	c, err := client.New(s.address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	seen := make(map[string]bool)
	for line, id := range ids {
		if seen[id] {
			t.Errorf("task %s stands for two lines", id)
		}
		seen[id] = true
		taskID, _ := wire.ParseTaskID(id)
		outcome, err := c.ResultWithin(ctx, taskID, time.Minute)
		if err != nil {
			t.Fatalf("result of line %d: %v", line, err)
		}
		want := fmt.Sprintf(`{"sha256":"%s"}`, s.want[line-1])
		if outcome.Result.Status != wire.StatusCompleted || string(outcome.Result.Result) != want {
			t.Errorf("line %d: %s %s %s, want %s", line, outcome.Result.Status, outcome.Result.Result, outcome.Result.Error, want)
		}
	}
}
