package shardactor

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// contender is a worker that completes what it gets and may be told that it
// was cancelled; whoever cancels answers to it as well. Requests carry their
// task in Ref.
type contender struct {
	engine   *testEngine
	consumer *Consumer
	ids      []wire.TaskID

	mu    sync.Mutex
	fates []fate
	// onGrant races with the result of a task; it is called without the lock.
	onGrant func(n int)
}

// fate is everything that was said about one task.
type fate struct {
	granted, revoked, completed, refusedLate int
	cancelled, refusedCancel, ended          int
}

func (w *contender) numberOf(id wire.TaskID) int {
	for n := range w.ids {
		if w.ids[n] == id {
			return n
		}
	}
	return -1
}

func (w *contender) Deliver(effects []shard.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case *shard.Granted:
			n := w.numberOf(e.Task.ID)
			w.note(n, func(f *fate) { f.granted++ })
			w.consumer.Taken(len(e.Task.Payload), shard.MaxUntakenBytes)
			go w.onGrant(n)
			go w.post(n, &shard.Result{
				Holder: shard.Holder{
					Asker: shard.Asker{Sink: w, Ref: shard.Ref(n)}, Owner: shard.Owner{Tenant: "default", Subject: "anonymous"},
					TaskRef: wire.TaskRef{TaskID: e.Task.ID, Token: e.Token},
				},
				ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)},
			})
		case *shard.Revoked:
			if e.Reason == wire.RevokedCancelled {
				w.note(w.numberOf(e.TaskID), func(f *fate) { f.revoked++ })
			}
		case *shard.Completed:
			w.note(int(e.Ref), func(f *fate) { f.completed++ })
			w.consumer.Return(1)
		case *shard.Managed:
			w.note(int(e.Ref), func(f *fate) { f.cancelled++ })
		case *shard.Ended:
			w.note(int(e.Ref), func(f *fate) { f.ended++ })
		case *shard.Refused:
			w.refused(e)
		}
	}
}

func (w *contender) refused(e *shard.Refused) {
	switch e.Err.Code {
	case wire.CodeNotInProgress:
		w.note(int(e.Ref), func(f *fate) { f.refusedLate++ })
		w.consumer.Return(1)
	case wire.CodeAlreadyTerminal:
		w.note(int(e.Ref), func(f *fate) { f.refusedCancel++ })
	default:
		panic(e.Err.Error())
	}
}

func (w *contender) note(n int, change func(*fate)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.fates[n])
}

func (w *contender) post(n int, m shard.Message) {
	w.engine.Post(w.engine.ShardOf(w.ids[n]), []shard.Message{m}, 1, mailbox.ClassKeep)
}

func (w *contender) cancel(n int) {
	w.post(n, &shard.Manage{Do: shard.Cancel, Asker: shard.Asker{Sink: w, Ref: shard.Ref(n)}, Tenant: "default", TaskID: w.ids[n]})
}

// The client that cancels a task and its worker see one story: it was
// cancelled and nothing else became of it, or it had ended before. Tasks are
// cancelled while they wait, while they are handed out, while they fall due and
// while they are completed.
func TestA27CancelAndWorkHaveOneWinner(t *testing.T) {
	const tasks = 1000
	synctest.Test(t, func(t *testing.T) {
		e := startTestEngine(t, 4, vfs.NewMem(), noFatal)
		defer e.stop()
		e.spread(t)
		w := &contender{engine: e, ids: make([]wire.TaskID, tasks), fates: make([]fate, tasks)}
		w.onGrant = func(n int) {
			if n%4 == 2 {
				w.cancel(n)
			}
		}
		w.consumer = e.NewConsumer(ConsumerOptions{ID: wire.SessionID{1}, Tenant: "default", Subject: "anonymous", Sink: w})
		w.consumer.SetWindow(40)
		shards := make([]int, tasks)
		for n := range w.ids {
			w.ids[n], shards[n] = e.Route("default", "a", "")
		}
		for shardNo := range e.Shards() {
			e.Post(shardNo, []shard.Message{&shard.Subscribe{Consumer: w.consumer.Consumer, Commands: []string{"a"}, LeaseForMs: 60_000}}, 0, mailbox.ClassKeep)
		}
		for n := range w.ids {
			enqueue := &shard.Enqueue{ID: w.ids[n], Tenant: "default", EnqueueRequest: wire.EnqueueRequest{
				Command: "a", Payload: []byte("1"), MaxAttempts: 3,
			}}
			if n%4 == 3 {
				enqueue.RunAtMs = e.NowMs() + 50
			}
			w.post(n, enqueue)
			w.post(n, &shard.Watch{Asker: shard.Asker{Sink: w, Ref: shard.Ref(n)}, Tenant: "default", TaskID: w.ids[n]})
			switch n % 4 {
			case 0:
				w.cancel(n) // while it waits, or with the batch that hands it out
			case 1:
				go w.cancel(n)
			case 3:
				time.AfterFunc(50*time.Millisecond, func() { w.cancel(n) }) // as it falls due
			}
		}
		time.Sleep(time.Second) // synctest: fake time, for the delayed tasks
		synctest.Wait()
		w.check(t)
	})
}

// check holds what was said of every task against what is stored.
func (w *contender) check(t *testing.T) {
	cancelled := 0
	for n, f := range w.fates {
		task, record, err := w.engine.store.ReadResult("default", w.ids[n])
		if err != nil || task == nil || record == nil {
			t.Fatalf("task %d: %v, %+v, %v", n, err, task, record)
		}
		want := fate{granted: f.granted, ended: 1}
		switch record.Status {
		case wire.StatusCancelled:
			cancelled++
			want.cancelled, want.revoked, want.refusedLate = 1, f.granted, f.granted
		case wire.StatusCompleted:
			want.refusedCancel, want.completed = 1, 1
		}
		if f != want || f.granted > 1 || task.Status != record.Status || task.Attempts != 0 {
			t.Errorf("task %d is %s, its result %s, %d attempts; it was told %+v, want %+v",
				n, task.Status, record.Status, task.Attempts, f, want)
		}
	}
	if cancelled == 0 || cancelled == len(w.fates) {
		t.Errorf("%d of %d tasks were cancelled: there was no race", cancelled, len(w.fates))
	}
	t.Logf("%d of %d were cancelled", cancelled, len(w.fates))
}
