package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

// postPayloads makes a task of the command for each payload.
func (x *site) postPayloads(n int, payload func(i int) string) (ids []wire.TaskID) {
	x.t.Helper()
	const each = 500
	for len(ids) < n {
		var items []string
		for i := len(ids); i < min(n, len(ids)+each); i++ {
			items = append(items, fmt.Sprintf(`{"command":%q,"payload":%s}`, command, payload(i)))
		}
		ids = append(ids, idsIn(x.t, x.ask(http.MethodPost, "/tasks/batch", `{"tasks":[`+strings.Join(items, ",")+`]}`).Body)...)
	}
	return ids
}

// printed wants a command to end well and to begin what it tells so.
func (x *site) printed(want string, args ...string) {
	x.t.Helper()
	code, out, said := x.codeq(x.t, args...)
	counted := strings.HasPrefix(said, "codeq: "+want)
	if slices.Contains(args, "--dry-run") {
		// Its count is what it answers.
		counted = strings.HasPrefix(out, want)
	}
	if code != 0 || !counted {
		x.t.Errorf("codeq %s ended with %d and said %q %q, want %q", strings.Join(args, " "), code, out, said, want)
	}
}

// Tasks that failed for good are found by what they failed of. One group is replayed,
// then the others, and the queue is deleted when nothing of it is wanted.
func TestU05WhatFailedForGoodIsReplayedByGroups(t *testing.T) {
	all, failed := scale(500, 10_000), 250
	x := newSite(t)
	ids := x.postPayloads(all, func(i int) string { return fmt.Sprintf(`{"n":%d}`, i) })
	work := func(done int, fails func(n int) error) {
		t.Helper()
		ended := make(chan struct{}, all)
		stop := x.inBackground(func(ctx context.Context) {
			// It ends with the context.
			_ = client.Work(ctx, x.sdk(x.server.Addr), command, func(_ context.Context, task struct{ N int }) (any, error) {
				return nil, fails(task.N)
			}, client.Window(50), client.Ended(func(client.Ending) { ended <- struct{}{} }))
		})
		defer stop()
		for range done {
			<-ended
		}
	}
	work(all, func(n int) error {
		switch {
		case n >= failed:
			return nil
		case n%5 < 3:
			return client.Permanent(errors.New("no such customer"))
		}
		return client.Permanent(errors.New("no such address"))
	})
	reasons, err := wire.ParseDeadReasons(x.ask(http.MethodGet, "/admin/queues/"+command+"/dlq/reasons?cause=failed&limit=10000", "").Body)
	x.fine("the reasons", err)
	counted := map[string]int{}
	for _, r := range reasons.Reasons {
		counted[r.Error] += r.Count
	}
	if len(counted) != 2 || counted["no such customer"] != 150 || counted["no such address"] != 100 {
		t.Errorf("the groups are %v", counted)
	}
	x.printed("100 dead letters of c would be ready again", "dlq", "replay", command, "--cause", "failed", "--error", "address", "--dry-run")
	x.printed("100 dead letters of c are ready again, 150 are left", "dlq", "replay", command, "--cause", "failed", "--error", "address")
	work(100, func(int) error { return nil })
	x.printed("150 dead letters of c are ready again, 0 are left", "dlq", "replay", command, "--cause", "all")
	work(150, func(int) error { return nil })
	for _, id := range ids {
		if outcome := x.outcome(id); outcome.Status != wire.StatusCompleted {
			t.Errorf("%v ended as %+v", id, outcome)
		}
	}
	_, err = x.api.Do(x.ctx, http.MethodDelete, "/admin/queues/"+command, "")
	x.refused(err, wire.CodeQueueNotEmpty)
	x.printed("queue c is deleted", "queue", "delete", command, "--purge")
	x.isNew(ids)
	x.inOrder()
}

// A server is killed while it deletes a queue with thousands of tasks. The next one
// goes on alone, refuses new tasks until it is done, and then the name is new: of the
// old queue nothing is left.
func TestU05AKilledDeletionGoesOnAlone(t *testing.T) {
	x := newSite(t)
	const each = 10_000
	for tasks := each; ; tasks *= 2 {
		ids := append(x.postPayloads(tasks, func(int) string { return "1" }), x.postWith(`"idempotencyKey":"k"`))
		stop := x.inBackground(func(ctx context.Context) {
			// Its answer does not come: the server is killed.
			_, _ = x.api.Do(ctx, http.MethodDelete, "/admin/queues/"+command+"?purge=true", "")
		})
		for err := error(nil); err == nil; {
			var task *wire.Task
			if task, err = x.api.Post(x.ctx, fmt.Sprintf(`{"command":%q,"payload":1}`, command)); err == nil {
				ids = append(ids, task.ID)
			} else {
				x.refused(err, wire.CodeQueueDeleted)
			}
		}
		x.server.Kill()
		stop()
		x.server.Start()
		interrupted := x.figures(command).Deleting
		x.eventually(patience, "the queue is gone", func() bool {
			q := x.figures(command)
			return !q.Deleting && q.Ready == 0
		})
		if id := x.postWith(`"idempotencyKey":"k"`); slices.Contains(ids, id) || x.figures(command).Ready != 1 {
			t.Errorf("a key of the old queue made %v, the queue is %+v", id, x.figures(command))
		}
		x.printed("queue c is deleted", "queue", "delete", command, "--purge")
		x.isNew(ids[max(0, len(ids)-500):])
		if interrupted {
			break
		}
		if tasks > 16*each {
			t.Fatalf("%d tasks are removed before the server is killed", tasks)
		}
	}
	x.inOrder()
}

// isNew wants nothing to be left of the tasks of the command, and its name to be one
// that nobody has used.
func (x *site) isNew(ids []wire.TaskID) {
	x.t.Helper()
	_, err := x.api.Do(x.ctx, http.MethodDelete, "/admin/queues/"+command, "")
	x.refused(err, wire.CodeQueueNotFound)
	for _, id := range ids {
		_, err := x.api.Read(x.ctx, id)
		x.refused(err, wire.CodeTaskNotFound)
	}
}

// isWrong are six of a hundred.
func isWrong(i int) bool { return i*7919%100 < 6 }

// Tasks of a wrong import are cancelled by what is in their payload: a dry run counts
// them and does nothing, and then exactly those end.
func TestU05WrongTasksOfManyAreCancelled(t *testing.T) {
	all := scale(3000, 100_000)
	x := newSite(t)
	ids := x.postPayloads(all, func(i int) string { return fmt.Sprintf(`{"import":"%t","n":%d,"wrong":"x"}`, isWrong(i), i) })
	wrong := all * 6 / 100
	x.printed(fmt.Sprintf("%d tasks of c would be cancelled", wrong), "task", "cancel", command, "--match", "import=true", "--dry-run")
	if q := x.figures(command); q.Ready != int64(all) {
		t.Errorf("a dry run left %+v", q)
	}
	x.printed(fmt.Sprintf("%d tasks of c are cancelled", wrong), "task", "cancel", command, "--match", "import=true")
	x.printed("0 tasks of c would be cancelled", "task", "cancel", command, "--match", "import=true", "--dry-run")
	for i, id := range ids {
		if task := x.read(id); (task.Status == wire.StatusCancelled) != isWrong(i) {
			t.Fatalf("task %d is %s", i, task.Status)
		}
	}
	x.inOrder()
}

// A command whose answers stop coming is interrupted. It says how many it knows of,
// and another one does the rest.
func TestU05AnInterruptedCancelIsFinishedByAnother(t *testing.T) {
	const all = 4000
	x := newSite(t)
	x.postPayloads(all, func(i int) string { return fmt.Sprintf(`{"n":%d}`, i) })
	proxy := blackbox.NewProxy(t, x.server.Addr)
	program, err := blackbox.Program()
	x.fine("the program", err)
	cmd := exec.CommandContext(x.ctx, program, "task", "cancel", command, "--all", "--json", "--url", "http://"+proxy.Addr)
	out, err := cmd.StdoutPipe()
	x.fine("the output", err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	// So much that the first answer comes and not all of them.
	proxy.SilenceAfter(blackbox.Down, 1000)
	x.fine("start", cmd.Start())
	lines := json.NewDecoder(out)
	var first struct{ Cancelled int }
	if err := lines.Decode(&first); err != nil || first.Cancelled == 0 {
		t.Fatalf("the first answer is %+v, %v", first, err)
	}
	told := first.Cancelled
	x.fine("the signal", cmd.Process.Signal(syscall.SIGINT))
	for more := first; lines.Decode(&more) == nil; {
		told += more.Cancelled
	}
	err = cmd.Wait()
	var ended *exec.ExitError
	want := fmt.Sprintf("%d tasks of c are cancelled before the command ended", told)
	if !errors.As(err, &ended) || !strings.Contains(errs.String(), want) || told >= all {
		t.Errorf("it ended with %v and said %q, want %q", err, errs.String(), want)
	}
	// The request that was under way may be worked on still.
	x.eventually(patience, "all are cancelled", func() bool {
		x.printed("", "task", "cancel", command, "--all")
		return x.figures(command).Ready == 0
	})
	x.inOrder()
}
