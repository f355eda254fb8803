package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"codeq/client"
)

// Letters that fail again at once are replayed once each, over many requests.
func TestN23ReplayIntoFailureReplaysEachLetterOnce(t *testing.T) {
	t.Parallel()
	const letters = 2*bulkPart + 500
	h := newHouse(t)
	h.fine("enqueue", "q", "--file", fileOf(t, strings.Repeat("1\n", letters)), "--max-attempts", "1")
	c, err := client.New(h.url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var failed atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	w, err := c.NewWorker(client.WorkerOptions{
		Commands: []string{"q"}, Window: 256,
		Handler: func(context.Context, client.Delivery) client.Outcome {
			failed.Add(1)
			return client.Nack("never")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- w.Run(ctx) }()
	dead := func() bool { return strings.Contains(h.fine("queues", "--json"), fmt.Sprintf(`"dlq":%d`, letters)) }
	for !dead() {
	}
	code, _, errs := h.run("", "dlq", "replay", "q", "--limit", "100000")
	if code != exitFine {
		t.Errorf("exit code %d", code)
	}
	oneSentence(t, errs, fmt.Sprintf("%d dead letters of q are ready again", letters))
	for !dead() {
	}
	cancel()
	<-ended // by our own hand
	if n := failed.Load(); n != 2*letters {
		t.Errorf("%d deliveries, want %d", n, 2*letters)
	}
}

// deadServer answers requests about dead letters with as many as were asked for,
// and does what a test wants with the second.
func deadServer(t *testing.T, second http.HandlerFunc) string {
	t.Helper()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 2 {
			second(w, r)
			return
		}
		answerDead(w)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func answerDead(w http.ResponseWriter) {
	_, _ = fmt.Fprintf(w, `{"replayed":%d,"remaining":7,"cursor":"next"}`, bulkPart) // whoever asked looks at it
}

// However a replay ends, it says how many letters it has done.
func TestN23CountIsToldHoweverAReplayEnds(t *testing.T) {
	tt := newTerminal("")
	url := deadServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is the end of the connection noticed
		tt.stops <- os.Interrupt
		select {
		case <-r.Context().Done(): // the stop broke the request off
		case <-time.After(100 * time.Millisecond):
		}
		answerDead(w)
	})
	if code := run([]string{"--url", url, "dlq", "replay", "q", "--limit", "100000"}, tt.app); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	said := tt.err.String()
	oneSentence(t, said, "stopped by interrupt; the same command with --cursor next continues\n")
	// The stop comes while the second request is under way, or just after.
	if !strings.Contains(said, "2000 dead letters of q are ready again before the command ended: ") &&
		!strings.Contains(said, "3000 dead letters of q are ready again before the command ended: ") {
		t.Errorf("it says %q", said)
	}

	for name, c := range map[string]struct {
		second http.HandlerFunc
		code   int
		want   string
	}{
		"the server goes away": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, exitAgain,
			"1000 dead letters of q are ready again before the command ended, and perhaps those of the request without an answer: "},
		"the server refuses": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"error":"no more","code":"forbidden","retryable":false}`) // as above
		}, exitFailed, "1000 dead letters of q are ready again before the command ended: no more (forbidden); the same command with --cursor next continues\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errs := codeq("", "--url", deadServer(t, c.second), "dlq", "replay", "q", "--limit", "100000")
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			oneSentence(t, errs, c.want)
		})
	}
}
