package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeq/client"
	"codeq/wire"
)

// fleet is workers of both kinds at one queue, and what each has done.
type fleet struct {
	t        *testing.T
	p        *posters
	done     [5]atomic.Int64 // the first three are over HTTP
	finished sync.Map
}

const overHTTP = 3

// overHTTPLoop is what a script with curl does: claim, answer without a token,
// again.
func (f *fleet) overHTTPLoop(ctx context.Context, n int) {
	for ctx.Err() == nil {
		status, answer, err := f.p.ask(ctx, "/tasks/claim", fmt.Sprintf(`{"commands":["haul"],"waitSeconds":5,"workerId":"curl%d"}`, n))
		switch {
		case err != nil || status == http.StatusNoContent:
			continue // over, or nothing to do
		case status != http.StatusOK:
			f.t.Errorf("claim: %d %s", status, answer)
			return
		}
		task, _, err := wire.ParseClaimed(answer)
		if err != nil {
			f.t.Error(err)
			return
		}
		status, answer, err = f.p.ask(ctx, "/tasks/"+task.ID.String()+"/result", fmt.Sprintf(`{"result":{},"workerId":"curl%d"}`, n))
		if err != nil || status != http.StatusOK {
			f.t.Errorf("result: %d %s (%v)", status, answer, err)
			return
		}
		f.did(n, task.ID)
	}
}

func (f *fleet) inSession(ctx context.Context, n int) {
	w, err := f.p.client.NewWorker(client.WorkerOptions{
		Commands: []string{"haul"}, Window: 4, WorkerID: fmt.Sprintf("session%d", n),
		Handler: func(_ context.Context, d client.Delivery) client.Outcome {
			f.did(n, d.Task.ID)
			return client.Complete([]byte(`{}`))
		},
	})
	if err == nil {
		err = w.Run(ctx)
	}
	if err != nil && ctx.Err() == nil {
		f.t.Error(err)
	}
}

func (f *fleet) did(n int, id wire.TaskID) {
	f.done[n].Add(1)
	if _, twice := f.finished.LoadOrStore(id, n); twice {
		f.t.Errorf("task %v was done twice", id)
	}
}

func (f *fleet) counts() (counts []int64) {
	for i := range f.done {
		counts = append(counts, f.done[i].Swap(0))
	}
	return counts
}

// mustShare says that nobody went away empty.
func (f *fleet) mustShare(what string, total int) {
	f.t.Helper()
	counts := f.counts()
	if least := slices.Min(counts); least < int64(total)/50 {
		f.t.Errorf("%s: of %d tasks the workers over HTTP did %v, those in sessions %v", what, total, counts[:overHTTP], counts[overHTTP:])
	}
}

// Workers over HTTP and in sessions empty one queue together: when all of them
// wait for the next task, and when there is more than they can do.
func TestWorkersOfBothKindsShareAQueue(t *testing.T) {
	s := newSurvival(t, 0)
	s.startServer()
	s.awaitReady()
	f := &fleet{t: t, p: newPosters(t, s.address)}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for n := range f.done {
		if n < overHTTP {
			all.Go(func() { f.overHTTPLoop(ctx, n) })
		} else {
			all.Go(func() { f.inSession(ctx, n) })
		}
	}
	defer all.Wait()
	defer stop()
	late, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	const trickle, flood = 100, 500
	// The first tasks only see every subscription.
	f.drain(late, 20)
	f.counts()
	for range trickle {
		f.drain(late, 1)
	}
	f.mustShare("one at a time", trickle)
	f.drain(late, flood)
	f.mustShare("all at once", flood)
}

// drain posts tasks and waits until each of them has its result.
func (f *fleet) drain(ctx context.Context, tasks int) {
	f.t.Helper()
	ids := make([]wire.TaskID, 0, tasks)
	for n := range tasks {
		answer, err := f.p.stream.Enqueue(ctx, "haul", n)
		if err != nil {
			f.t.Fatal(err)
		}
		ids = append(ids, answer.TaskID)
	}
	for _, id := range ids {
		if _, err := f.p.client.Result(ctx, id); err != nil {
			f.t.Fatal(err)
		}
	}
}
