package shardactor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/internal/meter"
	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// handEngine is an engine whose rounds and syncs a test runs, with what it saw.
type handEngine struct {
	*Engine
	store  *store.Store
	nowMs  int64
	moved  map[record.Cause]int
	rounds int
}

func newHandEngine(t *testing.T, box mailbox.Limits) *handEngine {
	t.Helper()
	h := &handEngine{nowMs: 1_767_225_600_000, moved: make(map[record.Cause]int)}
	gates := new(Gates)
	var err error
	h.store, err = store.Open(store.Options{
		FS: vfs.NewMem(), Dir: "data", Shards: 2, Log: zerolog.Nop(), Synced: gates.Synced, Fatal: noFatal,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.store.Close(); err != nil {
			t.Error(err)
		}
	})
	h.Engine, err = NewEngine(EngineOptions{
		Store: h.store, Gates: gates, Random: rand.NewChaCha8([32]byte{7}), Log: zerolog.Nop(), Fatal: noFatal,
		StartClock: func(int64) func() int64 { return func() int64 { return h.nowMs } },
		Mailbox:    box,
		Retention:  shard.Retention{DoneForMs: 5_000, DeadForMs: 5_000},
		Observe: func(o *Observed) {
			for _, e := range o.Outcome.Events {
				h.moved[e.Cause]++
			}
			if o.Outcome.Taken > 0 {
				h.rounds++
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// runAll runs every shard and lets the effects out.
func (h *handEngine) runAll(t *testing.T) {
	t.Helper()
	for shard := range h.Shards() {
		h.Run(shard)
	}
	if err := h.store.Barrier(); err != nil {
		t.Fatal(err)
	}
}

// value is the value of a series on the engine's page, "" if it is not there.
func (h *handEngine) value(series string) string {
	var p meter.Page
	h.WriteMetrics(&p)
	for line := range strings.Lines(string(p.Text())) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSuffix(rest, "\n")
		}
	}
	return ""
}

// moodyWorker answers each task in another way.
type moodyWorker struct {
	h        *handEngine
	n        int
	consumer *Consumer
}

func (w *moodyWorker) Deliver(effects []shard.Effect) {
	owner := shard.Owner{Tenant: "default", Subject: "s"}
	for _, e := range effects {
		g, ok := e.(*shard.Granted)
		if !ok {
			continue
		}
		ref := wire.TaskRef{TaskID: g.Task.ID, Token: g.Token}
		w.n++
		var m shard.Message
		switch w.n % 7 {
		case 0:
			m = &shard.End{How: shard.Nack, Holder: shard.Holder{Owner: owner, TaskRef: ref}, NackRequest: wire.NackRequest{DelaySeconds: 5}}
		case 1:
			m = &shard.End{How: shard.Abandon, Holder: shard.Holder{Owner: owner, TaskRef: ref}}
		case 2:
			m = &shard.End{How: shard.Release, Holder: shard.Holder{Owner: owner, TaskRef: ref}}
		case 3:
			m = &shard.Received{Consumer: w.consumer.Consumer, Tasks: []wire.TaskRef{ref}} // and lets it lapse
		case 4:
			m = &shard.Undelivered{Consumer: w.consumer.Consumer, Tasks: []wire.TaskRef{ref}}
		case 5:
			m = &shard.Manage{Do: shard.Cancel, Tenant: "default", TaskID: g.Task.ID}
		default:
			m = &shard.Result{Holder: shard.Holder{Owner: owner, TaskRef: ref}, ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)}}
		}
		w.h.Post(w.h.ShardOf(g.Task.ID), []shard.Message{m}, 100, mailbox.ClassKeep)
		w.consumer.Return(1)
	}
}

func TestTransitionsAreCountedByCause(t *testing.T) {
	h := newHandEngine(t, mailbox.Limits{})
	w := &moodyWorker{h: h}
	w.consumer = h.NewConsumer(ConsumerOptions{ID: wire.SessionID{1}, Tenant: "default", Subject: "s", Sink: w})
	w.consumer.SetWindow(20)
	for shardNo := range h.Shards() {
		h.Post(shardNo, []shard.Message{&shard.Subscribe{Consumer: w.consumer.Consumer, Commands: []string{"c"}, LeaseForMs: 30_000}}, 1, mailbox.ClassKeep)
	}
	for n := range 60 {
		id, shardNo := h.Route("default", "c", "")
		m := &shard.Enqueue{ID: id, Tenant: "default", EnqueueRequest: wire.EnqueueRequest{
			Command: "c", Payload: []byte("1"), MaxAttempts: 5, DelaySeconds: int64(n % 3),
		}}
		switch n % 10 {
		case 1:
			m.TimeoutSeconds = 1
		case 2:
			m.TTLSeconds = 3
		}
		h.Post(shardNo, []shard.Message{m}, 100, mailbox.ClassNew)
		if m.DelaySeconds > 1 && n%10 == 0 {
			h.Post(shardNo, []shard.Message{&shard.Manage{Do: shard.Prioritize, Tenant: "default", TaskID: id, Priority: 1}, &shard.Manage{Do: shard.RunNow, Tenant: "default", TaskID: id}}, 1, mailbox.ClassNew)
		}
	}
	id, shardNo := h.Route("default", "d", "")
	h.Post(shardNo, []shard.Message{&shard.Enqueue{ID: id, Tenant: "default", EnqueueRequest: wire.EnqueueRequest{Command: "d", Payload: []byte("1")}}}, 1, mailbox.ClassNew)
	h.Configure(&Change{
		Queue: record.QueueKey{Command: "d", Tenant: "default"}, What: shard.SettingsChange{Delete: &shard.QueueDelete{Purge: true}},
		Done: func(record.Settings, *wire.Error) {},
	})
	for range 200 {
		h.runAll(t)
		h.nowMs += 500
	}
	for cause := record.Cause(1); cause < record.Causes; cause++ {
		series := fmt.Sprintf("codeq_transitions_total{cause=%q}", cause.String())
		if got := h.value(series); got != strconv.Itoa(h.moved[cause]) {
			t.Errorf("%s is %q, want %d", series, got, h.moved[cause])
		}
		untried := []record.Cause{
			record.CauseSessionGone, record.CauseSuspect, record.CauseCleanup, record.CauseReplay, record.CausePurge, record.CauseBound, record.CauseUnreadable, record.CauseTakenBack, record.CauseKeyFull, record.CauseKeyFree,
		}
		if h.moved[cause] == 0 && !slices.Contains(untried, cause) {
			t.Errorf("nothing moved by %v, so the test shows little", cause)
		}
	}
	if got := h.value("codeq_round_batch_messages_count"); got != strconv.Itoa(h.rounds) {
		t.Errorf("%s rounds with messages, want %d", got, h.rounds)
	}
}

func TestMailboxesAreShownByShard(t *testing.T) {
	h := newHandEngine(t, mailbox.Limits{Messages: 8, Bytes: 1 << 20})
	post := func(messages int) mailbox.Verdict {
		batch := make([]shard.Message, messages)
		for i := range batch {
			batch[i] = &shard.SpaceChanged{}
		}
		return h.Post(1, batch, 100*messages, mailbox.ClassNew)
	}
	first, second := post(3), post(3)
	if first != mailbox.Accepted || second != mailbox.Accepted || post(4) != mailbox.Full {
		t.Fatal("the mailbox takes another number than six")
	}
	check := func(want map[string]string) {
		t.Helper()
		for name, want := range want {
			if got := h.value("codeq_mailbox_" + name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
	check(map[string]string{
		`messages{shard="0"}`: "0", `messages{shard="1"}`: "6", `bytes{shard="1"}`: "600", `refused_total{shard="1"}`: "4",
		`accepted_total{shard="1"}`: "6", `batch_messages_count{shard="1"}`: "0", `wait_seconds_count{shard="1"}`: "0",
	})
	h.runAll(t)
	h.runAll(t) // with nothing to drain
	check(map[string]string{
		`messages{shard="1"}`: "0", `bytes{shard="1"}`: "0", `high_water_messages{shard="1"}`: "6", `merged_total{shard="1"}`: "0",
		`batch_messages_count{shard="1"}`: "1", `batch_messages_sum{shard="1"}`: "6", `wait_seconds_count{shard="1"}`: "1",
		`batch_messages_count{shard="0"}`: "0",
	})
	if h.value(`codeq_mailbox_wait_seconds_sum{shard="1"}`) == "0" {
		t.Error("no time has passed in the mailbox")
	}
}

func BenchmarkRoundFigures(b *testing.B) {
	f := newFigures().of(0)
	out := shard.Outcome{Taken: 100}
	for i := range 100 {
		out.Events = append(out.Events, shard.Event{Cause: record.Cause(1 + i%4)})
	}
	b.ReportAllocs()
	for b.Loop() {
		f.round(&out)
	}
}
