package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// ended is what a test knows of a delivery that brought no result. Its end lies
// between two times of the server, which are the same where nothing else can
// have moved the task since.
type ended struct {
	line          wire.HistoryLine
	notBefore, by int64
}

// walk takes one task through deliveries that bring no result.
type walk struct {
	*site
	id   wire.TaskID
	ends []ended
}

// held is a delivery, by whatever way it came.
type held struct {
	worker  string
	ref     wire.TaskRef
	fromMs  int64
	untilMs int64
}

// claim takes the task over HTTP.
func (w *walk) claim(leaseSeconds int64) held {
	w.t.Helper()
	worker := fmt.Sprint("caller ", len(w.ends)+1)
	answer := w.ask(http.MethodPost, "/tasks/claim",
		fmt.Sprintf(`{"commands":[%q],"leaseSeconds":%d,"waitSeconds":30,"workerId":%q}`, command, leaseSeconds, worker))
	var task struct {
		ID, LeaseToken string
		LeaseUntil     time.Time
	}
	decode(w.t, answer.Body, &task)
	if task.ID != w.id.String() {
		w.t.Fatalf("claimed %q, want %v", task.ID, w.id)
	}
	token, ok := wire.ParseToken(task.LeaseToken)
	if !ok {
		w.t.Fatalf("a claim with the token %q", task.LeaseToken)
	}
	until := task.LeaseUntil.UnixMilli()
	return held{worker, wire.TaskRef{TaskID: w.id, Token: token}, until - leaseSeconds*1000, until}
}

// say ends a delivery over HTTP.
func (w *walk) say(h held, verb, more string) {
	w.t.Helper()
	w.ask(http.MethodPost, "/tasks/"+w.id.String()+"/"+verb, fmt.Sprintf(`{"leaseToken":%q%s}`, h.ref.Token, more))
}

// session takes the task with a session that leaves without a word, once the
// server knows that the task has arrived, or before it can.
func (w *walk) session(arrives bool) held {
	w.t.Helper()
	const leaseSeconds = 600
	worker := fmt.Sprint("session ", len(w.ends)+1)
	p := w.peer(w.server.Addr, worker)
	p.Mute(!arrives)
	if err := p.Subscribe(w.ctx, command, 1, leaseSeconds); err != nil {
		w.t.Fatal(err)
	}
	f := w.take(p, patience)
	if arrives {
		w.arrived(p, f)
	}
	p.Close()
	return held{worker, blackbox.RefOf(f), f.LeaseUntilMs - leaseSeconds*1000, f.LeaseUntilMs}
}

// note waits until the delivery is over and writes down what is known of it.
func (w *walk) note(h held, cause string) {
	w.t.Helper()
	var task *wire.Task
	w.eventually(resumeGrace+patience, "the delivery ends by "+cause, func() bool {
		task = w.read(w.id)
		return task.Status != wire.StatusInProgress
	})
	e := ended{line: wire.HistoryLine{
		Delivery: len(w.ends) + 1, WorkerID: h.worker, FromMs: h.fromMs, Cause: cause,
	}, notBefore: task.UpdatedAtMs, by: task.UpdatedAtMs}
	if cause == "lease_expired" {
		e.notBefore = h.untilMs // its retry may have fallen due already
	}
	if cause == "undelivered" {
		e.line.CloseCode = 1006 // the socket ended without a closing frame
	}
	w.ends = append(w.ends, e)
}

// last are the deliveries that the task still tells of, as far as they are known.
func (w *walk) last() []ended { return w.ends[max(0, len(w.ends)-10):] }

// told compares what the three faces of the server say with what happened.
func (w *walk) told() {
	w.t.Helper()
	lines := w.overHTTP()
	want := w.last()
	if len(lines) != len(want) {
		w.t.Fatalf("the history has %d lines, want %d: %+v", len(lines), len(want), lines)
	}
	for i, e := range want {
		got := lines[i]
		if got.ToMs < e.notBefore || got.ToMs > e.by {
			w.t.Errorf("delivery %d by %s ended at %d, want %d to %d", got.Delivery, got.Cause, got.ToMs, e.notBefore, e.by)
		}
		if got.ToMs = 0; got != e.line {
			w.t.Errorf("the history has %+v, want %+v", got, e.line)
		}
	}
	task, err := w.sdk(w.server.Addr).Task(w.ctx, w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	if !slices.Equal(task.History, lines) {
		w.t.Errorf("the SDK says %+v, want %+v", task.History, lines)
	}
	w.onTheCommandLine(lines)
}

// overHTTP is the history in GET /tasks/{id}, read by other means than ours.
func (w *walk) overHTTP() []wire.HistoryLine {
	w.t.Helper()
	var task struct {
		History []struct {
			Delivery        int
			WorkerID, Cause string
			By              string
			From, To        time.Time
			CloseCode       int
			Error, Signal   string
			ExitCode        *int
		}
	}
	if err := json.Unmarshal(w.ask(http.MethodGet, "/tasks/"+w.id.String(), "").Body, &task); err != nil {
		w.t.Fatal(err)
	}
	var lines []wire.HistoryLine
	for _, l := range task.History {
		lines = append(lines, wire.HistoryLine{
			Delivery: l.Delivery, WorkerID: l.WorkerID, FromMs: l.From.UnixMilli(), ToMs: l.To.UnixMilli(), Cause: l.Cause, By: l.By,
			CloseCode: l.CloseCode, Error: l.Error, Exit: wire.Exit{Signal: l.Signal},
		})
		if last := &lines[len(lines)-1]; l.ExitCode != nil {
			last.Exit.Code, last.Exit.Coded = *l.ExitCode, true
		}
	}
	return lines
}

// onTheCommandLine compares the lines that `codeq task` prints of deliveries.
func (w *walk) onTheCommandLine(lines []wire.HistoryLine) {
	w.t.Helper()
	program, err := blackbox.Program()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := exec.CommandContext(w.ctx, program, "task", w.id.String(), "--url", w.server.URL()).Output()
	if err != nil {
		w.t.Fatalf("codeq task: %v", err)
	}
	var printed, want []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "delivery ") {
			printed = append(printed, strings.Join(strings.Fields(line), " "))
		}
	}
	moment := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
	for _, l := range lines {
		cause := l.Cause
		if l.By != "" {
			cause += " by " + l.By
		}
		if l.CloseCode != 0 {
			cause += fmt.Sprintf(" (closed with %d)", l.CloseCode)
		}
		said, lasted := "", time.Duration(l.ToMs-l.FromMs)*time.Millisecond
		if l.Error != "" {
			said = fmt.Sprintf(", exit code %d: %s", l.Exit.Code, l.Error)
		}
		want = append(want, fmt.Sprintf("delivery %d %s, %s for %s, worker %s%s", l.Delivery, cause, moment(l.FromMs), lasted, l.WorkerID, said))
	}
	if !slices.Equal(printed, want) {
		w.t.Errorf("codeq task prints\n%s\nof deliveries, want\n%s", strings.Join(printed, "\n"), strings.Join(want, "\n"))
	}
}

// One task ends in every way that brings no result. It tells of each, with who
// had it, from when to when and why, and of the last ten when there are more:
// over HTTP, on the command line and in the SDK.
func TestHistoryTellsHowDeliveriesEnded(t *testing.T) {
	const long = 600
	x := newSite(t)
	x.retryAfter(1)
	task, err := x.api.Post(x.ctx, fmt.Sprintf(`{"command":%q,"payload":1,"maxAttempts":100}`, command))
	if err != nil {
		t.Fatal(err)
	}
	w := &walk{site: x, id: task.ID}
	w.told()
	nack := func() {
		h := w.claim(long)
		w.say(h, "nack", `,"delaySeconds":0,"reason":"no luck","exitCode":3`)
		w.note(h, "nack")
		last := &w.ends[len(w.ends)-1].line
		last.Error, last.Exit = "no luck", wire.Exit{Code: 3, Coded: true}
	}
	nack()
	for _, verb := range []string{"abandon", "release"} {
		h := w.claim(long)
		w.say(h, verb, "")
		w.note(h, verb)
	}
	w.note(w.session(false), "undelivered")
	w.note(w.session(true), "session_gone")
	w.note(w.claim(1), "lease_expired")
	w.told()
	for range 5 {
		nack()
	}
	h := w.claim(long)
	w.ask(http.MethodPost, "/tasks/"+w.id.String()+"/cancel", "")
	w.note(h, "cancel")
	w.ends[len(w.ends)-1].line.By = "anonymous"
	w.told()
	if n := len(w.ends); n != 12 {
		t.Errorf("%d deliveries", n)
	}
}
