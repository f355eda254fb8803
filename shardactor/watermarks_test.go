package shardactor

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/internal/meter"
	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// mostSteps is what one look at an order may go over: what lives, and twice, as
// they were written and deleted, the keys since its low watermark was looked for, which are
// some rounds more than it takes to look.
const mostSteps = 6000

// lateWorker answers a delivery only when the next ones have come, so that there
// always are some in progress. It nacks where it is told to.
type lateWorker struct {
	t        *testing.T
	engine   *testEngine
	consumer *Consumer
	held     []*shard.Granted
	nacks    bool
	ended    int
}

func (w *lateWorker) Deliver(effects []shard.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case *shard.Granted:
			w.held = append(w.held, e)
			w.consumer.Taken(len(e.Task.Payload), shard.MaxUntakenBytes)
		case *shard.Completed:
			w.ends(e.CreditReused)
		case *shard.Requeued:
			w.ends(false)
		case *shard.Refused:
			w.t.Errorf("refused: %v", e.Err)
		}
	}
}

func (w *lateWorker) ends(left bool) {
	w.ended++
	if !left {
		w.consumer.Return(1)
	}
}

// answer ends all deliveries but the newest ones.
func (w *lateWorker) answer(keep int) {
	for len(w.held) > keep {
		g := w.held[0]
		w.held = w.held[1:]
		asker, owner := shard.Asker{Sink: w}, shard.Owner{Tenant: "default", Subject: "anonymous"}
		ref := wire.TaskRef{TaskID: g.Task.ID, Token: g.Token}
		var m shard.Message = &shard.Result{
			Holder: shard.Holder{Asker: asker, Owner: owner, TaskRef: ref}, HasCredit: true,
			ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)},
		}
		if w.nacks {
			m = &shard.End{How: shard.Nack, Holder: shard.Holder{Asker: asker, Owner: owner, TaskRef: ref}}
		}
		w.engine.Post(0, []shard.Message{m}, 2, mailbox.ClassKeep)
	}
}

// work puts tasks through a worker until that many have ended. Some stay in
// progress.
func work(t *testing.T, e *testEngine, command string, tasks int, nacks bool) *lateWorker {
	t.Helper()
	w := &lateWorker{t: t, engine: e, nacks: nacks}
	w.consumer = e.NewConsumer(ConsumerOptions{ID: wire.SessionID{1, command[0]}, Tenant: "default", Subject: "anonymous", Sink: w})
	w.consumer.SetWindow(200)
	e.Post(0, []shard.Message{&shard.Subscribe{Consumer: w.consumer.Consumer, Commands: []string{command}, LeaseForMs: 3_600_000}}, 0, mailbox.ClassKeep)
	for w.ended < tasks {
		before := w.ended
		e.enqueue(t, nil, 190, wire.EnqueueRequest{Command: command, Payload: []byte("1"), MaxAttempts: 1})
		e.runDurably(t)
		w.answer(10)
		e.runDurably(t)
		if w.ended == before {
			t.Fatalf("%d tasks have ended, and no more do", w.ended)
		}
	}
	return w
}

// runDurably runs the one shard and lets out what it did.
func (e *testEngine) runDurably(t *testing.T) {
	t.Helper()
	e.Run(0)
	if err := e.store.Barrier(); err != nil {
		t.Fatal(err)
	}
}

// steps is how many keys scans have gone over.
func (e *testEngine) steps(t *testing.T) int {
	t.Helper()
	var page meter.Page
	e.store.WriteMetrics(&page)
	for lines := bufio.NewScanner(bytes.NewReader(page.Text())); lines.Scan(); {
		if text, is := strings.CutPrefix(lines.Text(), "codeq_scan_steps_total "); is {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
	}
	t.Fatal("the figures have no steps of scans")
	return 0
}

// Many tasks that were worked off do not make a page of those in progress dearer,
// nor the next start, which would read them all.
func TestLeasesThatEndedAreNotGoneOverAgain(t *testing.T) {
	fs := vfs.NewMem()
	e := newTestEngine(t, 1, fs, noFatal)
	const tasks = 10_000
	w := work(t, e, "a", tasks, false)
	before := e.steps(t)
	page, err := e.store.ListTasks(&store.ListQuery{
		Queue: record.QueueKey{Command: "a", Tenant: "default"}, State: store.ListInProgress, Limit: 100, MostRead: 100, MostBytes: 1 << 20,
	})
	if err != nil || len(page.Tasks) != len(w.held) {
		t.Fatalf("%d tasks are listed, %v; %d are in progress", len(page.Tasks), err, len(w.held))
	}
	if steps := e.steps(t) - before; steps > mostSteps {
		t.Errorf("a page goes over %d keys after %d tasks", steps, tasks)
	}
	if err := e.store.Close(); err != nil {
		t.Fatal(err)
	}
	again := newTestEngine(t, 1, fs, noFatal)
	if steps := again.steps(t); steps > mostSteps {
		t.Errorf("a start goes over %d keys after %d tasks", steps, tasks)
	}
	if err := again.store.Close(); err != nil {
		t.Fatal(err)
	}
}

// Replaying dead letters from the oldest on costs each time what is replayed, not
// what was replayed before.
func TestDeadLettersThatWereReplayedAreNotGoneOverAgain(t *testing.T) {
	e := newTestEngine(t, 1, vfs.NewMem(), noFatal)
	defer func() {
		if err := e.store.Close(); err != nil {
			t.Error(err)
		}
	}()
	const letters, slice = 6_000, 500
	work(t, e, "a", letters, true)
	query := &store.ListQuery{
		Queue: record.QueueKey{Command: "a", Tenant: "default"}, State: store.ListDead, UntilMs: e.NowMs() + 1, Limit: slice, MostRead: slice,
	}
	for replayed := 0; replayed+slice < letters; replayed += slice {
		before := e.steps(t)
		page, err := e.store.Find(query)
		if err != nil || len(page.Found) != slice {
			t.Fatalf("%d letters, %v", len(page.Found), err)
		}
		if steps := e.steps(t) - before; steps > mostSteps {
			t.Fatalf("%d letters cost %d steps after %d were replayed", slice, steps, replayed)
		}
		for _, k := range page.Found {
			e.Post(0, []shard.Message{&shard.Manage{Do: shard.Replay, Tenant: "default", TaskID: k.ID}}, 0, mailbox.ClassKeep)
		}
		e.runDurably(t)
	}
}
