package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/internal/server"
)

// asWorker makes the test binary be the worker in Go, as a process of its own.
const asWorker = "CODEQ_TEST_AS_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// patience is how long a test waits for something that must come.
const patience = time.Minute

func TestTheWorkerInGoWorks(t *testing.T) {
	t.Setenv(asWorker, "1")
	tryWorker(t, os.Args[0])
}

func TestTheWorkerInPythonWorks(t *testing.T) {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import asyncio, websockets; asyncio.TaskGroup").Run() == nil {
			tryWorker(t, python, "worker.py")
			return
		}
	}
	t.Skip("no Python of at least 3.11 with the package websockets is installed") // it runs wherever there is one
}

func TestTheWorkerInJavaScriptWorks(t *testing.T) {
	for _, flags := range [][]string{{}, {"--experimental-websocket"}} { // the flag is for Node 20 and 21
		probe := append(flags[:len(flags):len(flags)], "-e", "process.exit(globalThis.WebSocket ? 0 : 1)")
		if exec.Command("node", probe...).Run() == nil {
			tryWorker(t, "node", append(flags, "worker.mjs")...)
			return
		}
	}
	t.Skip("no Node with a WebSocket is installed") // it runs wherever there is one
}

func TestTheWorkerWithCurlWorks(t *testing.T) {
	mustHaveCurl(t)
	tryWorker(t, "sh", "worker_curl.sh")
}

// mustHaveCurl ends a test where there is none.
func mustHaveCurl(t *testing.T) {
	t.Helper()
	if exec.Command("curl", "--version").Run() != nil {
		t.Skip("no curl is installed") // it runs wherever there is one
	}
}

// serve starts a server and returns its address.
func serve(t *testing.T) (url string) {
	t.Helper()
	s, err := server.Open(server.Options{DataDir: "data", FS: vfs.NewMem(), Listen: "127.0.0.1:0", Log: zerolog.Nop(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.Addr()
}

// start runs a worker until the end of the test, with all that it starts.
func start(t *testing.T, url, program string, args ...string) *output {
	t.Helper()
	said := &output{}
	worker := exec.Command(program, args...)
	worker.Env = append(os.Environ(), "CODEQ_URL="+url)
	worker.Stdout, worker.Stderr = said, said
	worker.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Kill(-worker.Process.Pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		_ = worker.Wait() // it was killed
		if t.Failed() {
			t.Logf("the worker said at the end: %s", said.end())
		}
	})
	return said
}

// output is what a worker has said so far. Any goroutine.
type output struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	return len(p), nil
}

func (o *output) end() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text[max(0, len(o.text)-1000):])
}

// count is how often it has said a word.
func (o *output) count(word string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Count(o.text, []byte(word))
}

// tryWorker runs a worker against a server and gives it a task it can do and
// one it can not.
func tryWorker(t *testing.T, program string, args ...string) {
	t.Helper()
	url := serve(t)
	good := post(t, url, `{"command":"square","payload":12}`)
	bad := post(t, url, `{"command":"square","payload":"twelve","maxAttempts":1}`)
	start(t, url, program, args...)
	if r := result(t, url, good); r.Status != "COMPLETED" || string(r.Result) != `{"square":144}` && string(r.Result) != `{"square": 144}` {
		t.Errorf("the result of 12 is %s %s", r.Status, r.Result)
	}
	if r := result(t, url, bad); r.Status != "FAILED" || r.Error == "" {
		t.Errorf("the result of what is no integer is %s %s %q", r.Status, r.Result, r.Error)
	}
}

func post(t *testing.T, url, body string) (id string) {
	t.Helper()
	response, err := http.Post(url+"/v1/codeq/tasks", "application/json", strings.NewReader(body))
	var task struct{ ID string }
	if err := errors.Join(err, read(response, &task)); err != nil {
		t.Fatal(err)
	}
	return task.ID
}

// record is a result record.
type record struct {
	Status, Error string
	Result        json.RawMessage
}

func result(t *testing.T, url, id string) record {
	t.Helper()
	response, err := http.Get(url + "/v1/codeq/tasks/" + id + "/result?waitSeconds=60")
	var answer struct{ Result record }
	if err := errors.Join(err, read(response, &answer)); err != nil {
		t.Fatal(err)
	}
	return answer.Result
}

// read reads an answer that is no refusal.
func read(response *http.Response, into any) error {
	if response == nil {
		return nil // the request failed, which is told already
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the server answered %d %s", response.StatusCode, body)
	}
	return json.Unmarshal(body, into)
}
