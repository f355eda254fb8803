package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// ending is what those who end one task were told.
type ending struct {
	// cancelled and completed count the yes, late what the cancel was told
	// instead, refused what a completion was told, revoked that the worker was
	// told of the cancel.
	cancelled, completed, late, refused, delivered, revoked int
}

// race is tasks that are cancelled and worked on at the same time.
type race struct {
	x *site

	mu    sync.Mutex
	ends  map[wire.TaskID]*ending
	going sync.WaitGroup
}

// note changes what is known of a task.
func (r *race) note(id wire.TaskID, change func(e *ending)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ends[id] == nil {
		r.ends[id] = &ending{}
	}
	change(r.ends[id])
}

func (r *race) cancel(id wire.TaskID) {
	_, err := r.x.api.Do(r.x.ctx, http.MethodPost, "/tasks/"+id.String()+"/cancel", "")
	var refusal *wire.Error
	switch {
	case err == nil:
		r.note(id, func(e *ending) { e.cancelled++ })
	case errors.As(err, &refusal) && refusal.Code == wire.CodeAlreadyTerminal:
		r.note(id, func(e *ending) { e.late++ })
	default:
		r.x.t.Errorf("cancel %v: %v", id, err)
	}
}

// completed notes what a completion was answered.
func (r *race) completed(id wire.TaskID, err error) {
	var refusal *wire.Error
	switch {
	case err == nil:
		r.note(id, func(e *ending) { e.completed++ })
	case errors.As(err, &refusal) && refusal.Code == wire.CodeNotInProgress:
		r.note(id, func(e *ending) { e.refused++ })
	default:
		r.x.t.Errorf("complete %v: %v", id, err)
	}
}

// work does to each delivery what its payload says: complete it while another
// cancels, let it be cancelled first, or complete it first. Every second one of
// each kind is completed over HTTP.
func (r *race) work(ctx context.Context, p *blackbox.Peer) {
	for n := 0; ; n++ {
		var f *wire.TaskFrame
		select {
		case f = <-p.Tasks:
		case told := <-p.Revoked:
			if told.Reason == wire.RevokedCancelled {
				r.note(told.TaskID, func(e *ending) { e.revoked++ })
			}
			continue
		case <-ctx.Done():
			return
		}
		id := f.Task.ID
		r.note(id, func(e *ending) { e.delivered++ })
		complete := func() { r.completed(id, p.Complete(r.x.ctx, blackbox.RefOf(f), `{}`)) }
		if n%2 == 1 {
			body := wire.AppendResultCall(nil, wire.Holder{Token: f.Token}, &wire.ResultRequest{Result: []byte(`{}`)})
			complete = func() {
				_, err := r.x.api.Do(r.x.ctx, http.MethodPost, "/tasks/"+id.String()+"/result", string(body))
				r.completed(id, err)
			}
		}
		switch string(f.Task.Payload) {
		case `"race"`:
			r.going.Go(func() { r.cancel(id) })
			r.going.Go(complete)
		case `"cancel first"`:
			r.going.Go(func() { r.cancel(id); complete() })
		case `"complete first"`:
			r.going.Go(func() { complete(); r.cancel(id) })
		default:
			r.going.Go(complete)
		}
	}
}

// The client that cancels a task and its worker see one story, whether it waits,
// falls due, is being handed out or is being completed: one of the two wins and
// stands, over a kill of the server too.
func TestA27CancelAndWorkHaveOneWinner(t *testing.T) {
	tasks := scale(120, 3000)
	x := newSite(t)
	r := &race{x: x, ends: make(map[wire.TaskID]*ending)}
	// What was cancelled and is answered for over HTTP keeps its place in the window.
	p := x.worker(x.server.Addr, "worker", 10_000, 3600)
	stop := x.inBackground(func(ctx context.Context) { r.work(ctx, p) })
	var ids []wire.TaskID
	chance := rand.New(rand.NewPCG(2, 7))
	for n := range tasks {
		kind, delay := []string{"race", "cancel first", "complete first", "waits", "falls due", "is far away"}[n%6], 0
		switch kind {
		case "falls due":
			delay = 1
		case "is far away":
			delay = 3600
		}
		task, err := x.api.Post(x.ctx, fmt.Sprintf(`{"command":"c","payload":%q,"delaySeconds":%d}`, kind, delay))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, task.ID)
		switch kind {
		case "waits", "is far away":
			r.going.Go(func() { r.cancel(task.ID) })
		case "falls due":
			early := time.Duration(chance.IntN(20)) * time.Millisecond
			r.going.Go(func() { pause(x.ctx, time.Second-early); r.cancel(task.ID) })
		}
	}
	for _, id := range ids {
		x.outcome(id)
	}
	x.eventually(patience, "every delivery is answered for", r.settled)
	stop()
	r.going.Wait()
	before := r.judge(ids)
	x.server.Kill()
	x.server.Start()
	for _, id := range ids {
		if record := x.outcome(id); record.Status != before[id] {
			t.Errorf("task %v was %s and is %s", id, before[id], record.Status)
		}
	}
}

// settled says whether each delivery has had its answer, and each worker whose
// answer came too late was told why.
func (r *race) settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.ends {
		if e.completed+e.refused < e.delivered || e.revoked < e.refused {
			return false
		}
	}
	return true
}

// judge holds what everybody was told against how each task ended, and returns
// that.
func (r *race) judge(ids []wire.TaskID) map[wire.TaskID]wire.Status {
	r.x.t.Helper()
	ended := make(map[wire.TaskID]wire.Status)
	count := make(map[wire.Status]int)
	for _, id := range ids {
		record, task := r.x.outcome(id), r.x.read(id)
		ended[id] = record.Status
		count[record.Status]++
		got := *r.ends[id]
		want := ending{delivered: got.delivered, cancelled: 1, refused: got.delivered, revoked: got.delivered}
		if record.Status == wire.StatusCompleted {
			want = ending{delivered: 1, completed: 1, late: 1}
		}
		if got != want || got.delivered > 1 || task.Status != record.Status || task.Attempts != 0 {
			r.x.t.Errorf("task %v is %s, its result %s, with %d attempts; those who ended it were told %+v, want %+v",
				id, task.Status, record.Status, task.Attempts, got, want)
		}
	}
	r.x.t.Logf("%v", count)
	return ended
}

// A paused queue hands out nothing: not to a session that waits, not to a claim
// that waits, and not what becomes ready later in any way there is; a kill of the
// server changes nothing about that.
func TestA28PausedQueueDeliversNothing(t *testing.T) {
	const held, delayed = 8, 5
	fresh := scale(20, 5000)
	x := newSite(t)
	holder := x.worker(x.server.Addr, "holder", held, 3600)
	x.post(command, held, 0)
	frames := x.takeAll(holder, held, patience)
	if err := holder.Say(&wire.Window{Size: 0}); err != nil {
		t.Fatal(err)
	}
	waiting := x.worker(x.server.Addr, "waiting", 10_000, 60)
	var claimed atomic.Int64
	stop := x.inBackground(func(ctx context.Context) { x.claimOn(ctx, &claimed) })
	x.admin("pause")
	x.post(command, fresh, 0)
	for range delayed {
		if _, err := x.api.Post(x.ctx, `{"command":"c","payload":1,"delaySeconds":1}`); err != nil {
			t.Fatal(err)
		}
	}
	for n, f := range frames[:6] {
		_, err := holder.Ask(x.ctx, func(ref wire.Ref) wire.ClientFrame {
			switch n % 3 {
			case 0:
				return &wire.Nack{Ref: ref, TaskRef: blackbox.RefOf(f)}
			case 1:
				return &wire.Abandon{Ref: ref, TaskRef: blackbox.RefOf(f)}
			}
			return &wire.Release{Ref: ref, TaskRef: blackbox.RefOf(f)}
		})
		if err != nil {
			t.Error(err)
		}
	}
	holder.Close() // the other two are lost when its grace is over
	all := fresh + held + delayed
	x.eventually(patience, "everything is ready", func() bool { return x.figures(command).Ready == int64(all) })
	x.nothing(waiting, aWhile)
	for range scale(1, 5) {
		waiting.Close()
		x.server.Kill()
		x.server.Start()
		waiting = x.worker(x.server.Addr, "waiting", 10_000, 60)
		x.nothing(waiting, aWhile)
	}
	stop()
	if q := x.figures(command); claimed.Load() != 0 || q.Ready != int64(all) || !q.Paused {
		t.Errorf("a paused queue gave %d tasks to claims and is %+v", claimed.Load(), q)
	}
	x.admin("resume")
	x.takeAll(waiting, all, scale(patience, 10*time.Minute))
}

// admin pauses or resumes the queue.
func (x *site) admin(verb string) {
	x.t.Helper()
	if _, err := x.api.Do(x.ctx, http.MethodPost, "/admin/queues/"+command+"/"+verb, ""); err != nil {
		x.t.Fatalf("%s the queue: %v", verb, err)
	}
}

// claimOn claims over HTTP, and waits for tasks, until ctx ends.
func (x *site) claimOn(ctx context.Context, got *atomic.Int64) {
	for ctx.Err() == nil {
		answer, err := x.api.Do(ctx, http.MethodPost, "/tasks/claim", `{"commands":["c"],"waitSeconds":30}`)
		if err != nil {
			pause(ctx, lookAgain) // the server is down
			continue
		}
		if answer.Status == http.StatusOK {
			got.Add(1)
		}
	}
}
