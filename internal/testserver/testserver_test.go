package testserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call sends a request and returns the status and the members of the answer.
func call(t *testing.T, s *Server, method, path, body string) (status int, said map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	connection := &http.Transport{DisableKeepAlives: true}
	answer, err := connection.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &said); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return answer.StatusCode, said
}

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start(Options{Log: zerolog.Nop(), Seed: 1, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

const tasks = "/v1/codeq/tasks"

// claim takes a task of the queue "a" and reports whether one was ready.
func claim(t *testing.T, s *Server) bool {
	t.Helper()
	status, _ := call(t, s, "POST", tasks+"/claim", `{"commands":["a"],"leaseSeconds":60}`)
	if status != http.StatusOK && status != http.StatusNoContent {
		t.Fatalf("a claim was answered %d", status)
	}
	return status == http.StatusOK
}

// The rate of a queue passes with the clock of the server, and with no other.
func TestRatesFollowTheClock(t *testing.T) {
	s := start(t)
	if status, said := call(t, s, "PUT", "/v1/codeq/admin/queues/a", `{"startsPerSecond":1}`); status != http.StatusOK {
		t.Fatalf("%d %v", status, said)
	}
	for range 3 {
		if status, said := call(t, s, "POST", tasks, `{"command":"a","payload":1}`); status != http.StatusAccepted {
			t.Fatalf("%d %v", status, said)
		}
	}
	if err := s.Advance(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if !claim(t, s) || claim(t, s) {
			t.Fatal("not one task in a second")
		}
		if err := s.Advance(t.Context(), 1100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// A server that was stopped goes on with its tasks, its clock and its address.
func TestAgain(t *testing.T) {
	s := start(t)
	_, task := call(t, s, "POST", tasks, `{"command":"a","payload":1,"delaySeconds":60}`)
	if err := s.Advance(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	before, url := s.Now(), s.URL()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Again(); err != nil {
		t.Fatal(err)
	}
	if !s.Now().Equal(before) || s.URL() != url || before.Sub(begin) != 30*time.Second {
		t.Errorf("it goes on at %v and %s, was at %v and %s", s.Now(), s.URL(), before, url)
	}
	if claim(t, s) {
		t.Error("the task is ready too early")
	}
	if err := s.Advance(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if status, said := call(t, s, "GET", tasks+"/"+task["id"].(string), ""); status != http.StatusOK || said["lastKnownLocation"] != "PENDING_LIST" {
		t.Errorf("%d %v", status, said)
	}
}

// An advance ends with its context.
func TestAdvanceEndsWithItsContext(t *testing.T) {
	s := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Advance(ctx, time.Hour); err == nil && s.Now().Sub(begin) != time.Hour {
		t.Errorf("no error, and the clock is at %v", s.Now())
	}
}
