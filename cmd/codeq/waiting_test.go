package main

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A worker may be started before its server.
func TestU09WorkerWaitsForAServerThatIsNotThereYet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	server, said := serve(t, dir, "127.0.0.1:0")
	server.kill()
	worker := start(t, "--url", said.URL, "work", "hash", "--", "cat")
	worker.err.await(t, "codeq: no codeq server answers at "+said.URL)
	lines := prepare(t, "--url", said.URL, "enqueue", "hash", "--file", "-")
	lines.cmd.Stdin = strings.NewReader("1\n")
	lines.begin()
	lines.err.await(t, "it is tried again")
	serve(t, dir, said.Address)
	worker.err.await(t, "working on hash, 1 at a time")
	if code := lines.exit(); code != exitFine {
		t.Errorf("exit code %d, %s", code, lines.err)
	}
	worker.err.await(t, "completed in")
	worker.signal(syscall.SIGTERM)
	if code := worker.exit(); code != exitFine {
		t.Errorf("the worker ended with exit code %d, errors %q", code, worker.err)
	}
}

// One stop ends a worker that never had a session: nothing is left to wait for.
func TestU09OneStopEndsAWorkerWithoutASession(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	full := start(t, "serve", "--json", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--max-sessions", "1")
	full.out.await(t, "\n")
	_, rest, _ := strings.Cut(full.out.String(), `"url":"`)
	fullURL, _, _ := strings.Cut(rest, `"`)
	first := start(t, "--url", fullURL, "work", "hash", "--", "cat")
	first.err.await(t, "Ctrl-C stops")
	for url, says := range map[string]string{
		"http://" + nowhere:                "no codeq server answers",
		"http://" + silent.Addr().String(): "",
		fullURL:                            "it is tried again",
	} {
		worker := start(t, "--url", url, "work", "hash", "--", "cat")
		if says == "" {
			conn, err := silent.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }() // nothing was said over it
		}
		worker.err.await(t, says)
		worker.signal(syscall.SIGTERM)
		if code := worker.exit(); code != exitFine || strings.Contains(worker.err.String(), "stopp") {
			t.Errorf("%s: the worker ended with exit code %d, errors %q", url, code, worker.err)
		}
	}
	if err := silent.Close(); err != nil {
		t.Error(err)
	}
}
