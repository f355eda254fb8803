package faults

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// postWith makes one task of the command with further members.
func (x *site) postWith(members string) wire.TaskID {
	x.t.Helper()
	answer := x.ask(http.MethodPost, "/tasks", fmt.Sprintf(`{"command":%q,"payload":1,%s}`, command, members))
	task, err := wire.ParseTask(answer.Body)
	x.fine("post", err)
	return task.ID
}

// mustHaveOverrun wants a dead letter whose one run was over.
func (x *site) mustHaveOverrun(id wire.TaskID, how string) {
	x.t.Helper()
	outcome, task := x.outcome(id), x.read(id)
	if outcome.Status != wire.StatusFailed || task.DeadCause != wire.DeadExhausted || task.Attempts != 1 {
		x.t.Errorf("%s: ended as %+v, task %+v", how, outcome, task)
	}
	if len(task.History) != 1 || task.Error != wire.ErrorTimeout || task.History[0].Cause != "timeout" {
		x.t.Errorf("%s: error %q and history %+v", how, task.Error, task.History)
	}
}

// A worker that says again and again that it works keeps its task no longer than
// the task lets it: over a session and over HTTP, whatever it asks for.
func TestU04ARunEndsThoughItsWorkerIsAlive(t *testing.T) {
	x := newSite(t)
	id := x.postWith(`"timeoutSeconds":2,"maxAttempts":1`)
	w := x.worker(x.server.Addr, "alive", 1, 600)
	f := x.take(w, patience)
	if f.RunForMs != 2000 || f.RunUntilMs == 0 || f.LeaseUntilMs > f.RunUntilMs {
		t.Errorf("the delivery says %+v", f)
	}
	x.arrived(w, f)
	tooLate := time.After(patience)
	for ended := false; !ended; {
		select {
		case <-tooLate:
			t.Fatal("the run goes on as long as its worker says that it works")
		case r := <-w.Revoked:
			ended = true
			if r.Reason != wire.RevokedTimeout || r.TaskRef != blackbox.RefOf(f) {
				t.Errorf("revoked %+v", r)
			}
		case <-time.After(100 * time.Millisecond): // the next heartbeat
			x.fine("a heartbeat", x.said(w, func(ref wire.Ref) wire.ClientFrame {
				return &wire.Heartbeat{Ref: ref, ExtendSeconds: 600}
			}))
		}
	}
	x.mustHaveOverrun(id, "a session")

	id = x.postWith(`"timeoutSeconds":2,"maxAttempts":1`)
	task, token := x.claimOnce()
	if task.ID != id || task.RunUntilMs == 0 || task.LeaseUntilMs > task.RunUntilMs {
		t.Errorf("claimed %+v", task)
	}
	x.eventually(patience, "a heartbeat is refused", func() bool {
		answer, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/"+id.String()+"/heartbeat", fmt.Sprintf(`{"leaseToken":%q,"extendSeconds":600}`, token))
		if err != nil {
			return true
		}
		if !strings.Contains(string(answer.Body), "runUntil") {
			t.Errorf("a heartbeat says %s", answer.Body)
		}
		return false
	})
	x.mustHaveOverrun(id, "HTTP")
}

// claimOnce is claimOne of the command.
func (x *site) claimOnce() (*wire.Task, wire.Token) {
	x.t.Helper()
	answer := x.ask(http.MethodPost, "/tasks/claim", fmt.Sprintf(`{"commands":[%q],"waitSeconds":30,"leaseSeconds":600}`, command))
	task, token, err := wire.ParseClaimed(answer.Body)
	x.fine("claim", err)
	return task, token
}

// The limit of a queue holds for its tasks, a kill of the server in the middle of a
// run takes nothing away and gives no new run, and what expires meanwhile expires.
func TestU04LimitsOutliveAKill(t *testing.T) {
	x := newSite(t)
	x.ask(http.MethodPut, "/admin/queues/"+command, `{"timeoutSeconds":5,"ttlSeconds":600,"maxAttempts":1}`)
	run := x.postWith(`"priority":9`)
	task, _ := x.claimOnce()
	if task.ID != run || task.ExpiresAtMs == 0 {
		t.Errorf("claimed %+v", task)
	}
	waits := x.postWith(`"ttlSeconds":3`)
	x.ask(http.MethodPost, "/admin/queues/"+command+"/pause", "")
	endsMs := x.read(run).RunUntilMs
	x.server.Kill()
	x.server.Start()
	if outcome := x.outcome(waits); outcome.Status != wire.StatusCancelled || outcome.CancelCause != wire.CancelExpired {
		t.Errorf("a task that waited ended as %+v", outcome)
	}
	x.mustHaveOverrun(run, "over a kill")
	ended := x.read(run).UpdatedAtMs
	// It has the grace after the start, which may be later than its own end.
	if most := endsMs + (resumeGrace + patience).Milliseconds(); ended < endsMs || ended > most {
		t.Errorf("a run until %d ended at %d", endsMs, ended)
	}
	x.inOrder()
}

// Nobody begins a task whose time is over; one that has begun ends as its worker
// says.
func TestU04WhatHasExpiredIsNotBegun(t *testing.T) {
	x := newSite(t)
	begun := x.postWith(`"ttlSeconds":2`)
	w := x.worker(x.server.Addr, "slow", 1, 600)
	f := x.take(w, patience)
	x.arrived(w, f)
	waits := x.postWith(fmt.Sprintf(`"expiresAt":%q`, time.UnixMilli(x.now()+1500).UTC().Format(time.RFC3339Nano)))
	if outcome := x.outcome(waits); outcome.CancelCause != wire.CancelExpired {
		t.Errorf("a task that waited ended as %+v", outcome)
	}
	x.eventually(patience, "the time of the task that has begun is over", func() bool { return x.now() > x.read(begun).ExpiresAtMs })
	x.complete(w, f, `{"late":true}`)
	if outcome := x.outcome(begun); outcome.Status != wire.StatusCompleted {
		t.Errorf("a task that had begun ended as %+v", outcome)
	}
	if task := x.read(waits); task.Deliveries != 0 || task.Status != wire.StatusCancelled {
		t.Errorf("what had expired is %+v", task)
	}
	_, err := x.api.Do(x.ctx, http.MethodPost, "/tasks", fmt.Sprintf(`{"command":%q,"payload":1,"ttlSeconds":5,"delaySeconds":5}`, command))
	x.refused(err, wire.CodeInvalidTime)
}

// A program whose time is over is ended by codeq work, which needs no flag for that.
func TestU04AProgramIsEndedWithItsRun(t *testing.T) {
	x := newSite(t)
	program, err := blackbox.Program()
	x.fine("the program", err)
	file := filepath.Join(t.TempDir(), "pid")
	stop := x.inBackground(func(ctx context.Context) {
		// It is killed with the context.
		_ = exec.CommandContext(ctx, program, "work", command, "--url", x.server.URL(), "--",
			"/bin/sh", "-c", "echo $$ >"+file+"; exec sleep 600").Run()
	})
	defer stop()
	id := x.postWith(`"timeoutSeconds":2,"maxAttempts":1`)
	var pid int
	x.eventually(patience, "the program runs", func() bool {
		text, err := os.ReadFile(file)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	})
	// The worker ends the program by its own clock: no server tells it to.
	x.server.Kill()
	x.eventually(patience, "the program is gone", func() bool { return syscall.Kill(pid, 0) != nil })
	x.server.Start()
	if outcome := x.outcome(id); outcome.Status != wire.StatusFailed ||
		outcome.Error != wire.ErrorTimeout && !strings.HasPrefix(outcome.Error, "timeout: ended after 2s") {
		t.Errorf("ended as %+v", outcome)
	}
}
