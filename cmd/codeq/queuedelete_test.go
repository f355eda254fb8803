package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// slowDeletion is a server on which a queue takes longer than one request, and which
// does what a test wants with the second.
func slowDeletion(t *testing.T, second http.HandlerFunc) string {
	t.Helper()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 2 {
			second(w, r)
			return
		}
		_, _ = fmt.Fprint(w, `{"deleted":false,"remaining":1}`) // whoever asked looks at it
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A deletion goes on without the command, which says so and nothing else.
func TestU05EndOfAWaitForADeletionIsTrue(t *testing.T) {
	const left, goesOn = "codeq: 1 task of mail is left to delete\n", `codeq: the server continues to delete mail, and "codeq queue delete mail" waits for it: `
	tt := newTerminal("")
	url := slowDeletion(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is the end of the connection noticed
		tt.stops <- os.Interrupt
		<-r.Context().Done()
	})
	code := run([]string{"--url", url, "queue", "delete", "mail", "--purge"}, tt.app)
	if want := left + goesOn + "stopped by interrupt\n"; code != exitFailed || tt.err.String() != want {
		t.Errorf("stopped: exit code %d, said %q, want %q", code, tt.err.String(), want)
	}
	for name, c := range map[string]struct {
		second http.HandlerFunc
		code   int
		want   string
	}{
		"lost": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, exitAgain, goesOn + "no answer came\n"},
		"gone": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"error":"there is no queue mail","code":"queue_not_found","retryable":false}`) // as above
		}, exitFine, "codeq: queue mail is deleted\n"},
	} {
		code, _, errs := codeq("", "--url", slowDeletion(t, c.second), "queue", "delete", "mail", "--purge")
		if code != c.code || errs != left+c.want {
			t.Errorf("%s: exit code %d, said %q, want %q", name, code, errs, left+c.want)
		}
	}
}

func TestU05RefusalOfADeletionNamesTheFlag(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fine("enqueue", "mail", "--file", fileOf(t, strings.Repeat("1\n", 5)))
	h.fine("claim", "mail")
	h.fine("claim", "mail")
	code, _, errs := h.run("", "queue", "delete", "mail", "--purge")
	want := "queue mail has tasks in progress: 2; wait for their end, or have them cancelled with it (queue_not_empty); --cancel-running cancels them\n"
	if oneSentence(t, errs, want); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	code, _, errs = h.run("", "queue", "delete", "mail", "--cancel-running")
	if oneSentence(t, errs, "--cancel-running needs --purge"); code != exitWrong {
		t.Errorf("exit code %d", code)
	}
}

func TestU05QueueThatIsDeletedSaysSo(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queue := `{"command":"mail","tenantId":"default","ready":1,"delayed":0,"inProgress":0,"dlq":0,"paused":true,"deleting":true}`
		if strings.HasSuffix(r.URL.Path, "/queues") {
			queue = `{"queues":[` + queue + `]}`
		}
		_, _ = io.WriteString(w, queue) // whoever asked looks at it
	}))
	defer s.Close()
	for _, args := range [][]string{{"queues"}, {"queue", "show", "mail"}} {
		_, out, _ := codeq("", append([]string{"--url", s.URL}, args...)...)
		if has(t, out, "deleting"); strings.Contains(out, "yes") {
			t.Errorf("%q says %s", args, out)
		}
	}
}
