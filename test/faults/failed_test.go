package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"testing"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

// failedBy are the ways in which a worker ends the one task there is FAILED.
var failedBy = []struct {
	way string
	end func(x *site, id wire.TaskID)
}{
	{"a result over HTTP", func(x *site, id wire.TaskID) {
		_, token := x.claimOne(600)
		x.ask(http.MethodPost, "/tasks/"+id.String()+"/result", fmt.Sprintf(`{"status":"FAILED","error":"no use","leaseToken":%q}`, token))
	}},
	{"a batch of results", func(x *site, id wire.TaskID) {
		_, token := x.claimOne(600)
		x.ask(http.MethodPost, "/tasks/batch/results", fmt.Sprintf(`{"results":[{"taskId":%q,"error":"no use","leaseToken":%q}]}`, id, token))
	}},
	{"a result frame, twice", func(x *site, _ wire.TaskID) {
		w := x.worker(x.server.Addr, "frame", 1, 600)
		defer w.Close()
		f := x.take(w, patience)
		for range 2 {
			x.fine("the result", x.fail(w, f, "no use"))
		}
	}},
	{"a result after the lease", func(x *site, _ wire.TaskID) {
		w := x.worker(x.server.Addr, "late", 1, 10)
		defer w.Close()
		f := x.take(w, patience)
		x.arrived(w, f)
		x.fine("the window", x.said(w, func(ref wire.Ref) wire.ClientFrame { return &wire.Window{Ref: ref, Size: 0} }))
		<-w.Revoked
		x.fine("the result", x.fail(w, f, "no use"))
	}},
	{"a handler in Go", func(x *site, id wire.TaskID) {
		c := x.sdk(x.server.Addr)
		stop := x.inBackground(func(ctx context.Context) {
			// It ends with the context.
			_ = client.Work(ctx, c, command, func(context.Context, json.RawMessage) (any, error) {
				return nil, client.Permanent(errors.New("no use"))
			})
		})
		defer stop()
		x.outcome(id)
	}},
	{"a program", func(x *site, id wire.TaskID) {
		program, err := blackbox.Program()
		x.fine("the program", err)
		stop := x.inBackground(func(ctx context.Context) {
			// It is killed with the context.
			_ = exec.CommandContext(ctx, program, "work", command, "--url", x.server.URL(), "--", "/bin/sh", "-c", "echo no use >&2; exit 65").Run()
		})
		defer stop()
		x.outcome(id)
	}},
}

// replays replays dead letters of the command as the body says.
func (x *site) replays(body string) (said struct{ Replayed, Remaining, RemainingFailed int }) {
	x.t.Helper()
	decode(x.t, x.ask(http.MethodPost, "/admin/queues/"+command+"/dlq/replay", body).Body, &said)
	return said
}

// Whichever way a task is ended FAILED, it is a dead letter with a result and a
// cause, once, that a replay of its queue leaves until it is told.
func TestU01WhatFailedForGoodIsADeadLetter(t *testing.T) {
	x := newSite(t)
	for n, way := range failedBy {
		id := x.post(command, 1, 0)[0]
		way.end(x, id)
		task, outcome := x.read(id), x.outcome(id)
		if task.Status != wire.StatusFailed || task.Location != wire.LocationDead || task.DeadCause != wire.DeadFailed || task.Error != "no use" ||
			outcome.Status != wire.StatusFailed || outcome.Error != "no use" {
			t.Errorf("%s leaves %+v with %+v", way.way, task, outcome)
		}
		if q := x.figures(command); q.Dead != int64(n+1) || q.DeadBy[wire.DeadFailed] != q.Dead {
			t.Errorf("after %s the queue is %+v", way.way, q)
		}
	}
	all := len(failedBy)
	x.server.Kill()
	x.server.Start()
	if q := x.figures(command); q.DeadBy[wire.DeadFailed] != int64(all) || q.Ready+q.Delayed+q.InProgress != 0 {
		t.Errorf("after a restart the queue is %+v", q)
	}
	if said := x.replays(""); said.Replayed != 0 || said.Remaining != all || said.RemainingFailed != all {
		t.Errorf("a replay that names no cause: %+v", said)
	}
	if said := x.replays(`{"cause":"failed","limit":1}`); said.Replayed != 1 || said.RemainingFailed != all-1 {
		t.Errorf("a replay of one that failed: %+v", said)
	}
	if said := x.replays(`{"cause":"all"}`); said.Replayed != all-1 || said.Remaining != 0 {
		t.Errorf("a replay of all: %+v", said)
	}
	if q := x.figures(command); q.Ready != int64(all) || q.DeadBy != [wire.DeadKinds]int64{} {
		t.Errorf("at the end the queue is %+v", q)
	}
	x.inOrder()
}
