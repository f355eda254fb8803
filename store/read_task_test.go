package store

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
	"codeq/wire"
)

func readTaskOf(t *testing.T, s *Store, id wire.TaskID) *wire.Task {
	t.Helper()
	task, err := s.ReadTask("t", id)
	if err != nil || task == nil {
		t.Fatalf("got %v, %v", task, err)
	}
	return task
}

func TestATaskIsReadWithAllThatIsKeptOfIt(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	p := plantIn(s, 1)
	g := p.garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	line := wire.HistoryLine{Delivery: 1, Cause: "LEASE_EXPIRED"}
	s.Span(1).Batch().AddHistory(g.pending.ID, line)
	apply(t, s.Span(1))
	got := readTaskOf(t, s, g.pending.ID)
	want := &wire.Task{
		ID: g.pending.ID, Command: "c", TenantID: "t", Payload: []byte(`{"n":100}`), Priority: 4,
		Status: wire.StatusPending, Location: wire.LocationPending, MaxAttempts: 5,
		History: []wire.HistoryLine{line}, CreatedAtMs: p.marks.TimeMs, UpdatedAtMs: p.marks.TimeMs,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestALeaseIsJoinedWithItsRecord(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	g := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	got := readTaskOf(t, s, g.leased.ID)
	if got.Status != wire.StatusInProgress || got.Location != wire.LocationInProgress || got.WorkerID != "w1" ||
		got.LeaseUntilMs != 0 || got.Deliveries != 1 || got.UpdatedAtMs != g.lease.GrantedAtMs {
		t.Errorf("got %+v", got)
	}
}

func TestOnlyADelayedTaskHasATimeToBeVisible(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	g := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	for _, c := range []struct {
		record *record.Task
		want   int64
	}{{g.pending, 0}, {g.leased, 0}, {g.delayed, g.delayed.DueAtMs}, {g.dead, 0}, {g.done, 0}} {
		if got := readTaskOf(t, s, c.record.ID); got.VisibleAtMs != c.want {
			t.Errorf("%s: got %d, want %d", c.record.Location, got.VisibleAtMs, c.want)
		}
	}
}

func TestAResultIsReadWithItsTaskAndExactBytes(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	g := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	task, r, err := s.ReadResult("t", g.done.ID)
	if err != nil || task.Status != wire.StatusCompleted || string(r.Result) != `{"v": 1e400}` {
		t.Errorf("got %+v, %+v, %v", task, r, err)
	}
	task, r, err = s.ReadResult("t", g.pending.ID)
	if err != nil || task == nil || r != nil {
		t.Errorf("got %+v, %+v, %v", task, r, err)
	}
}

func TestAnotherTenantsTaskIsUnknown(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	g := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	for tenant, id := range map[string]wire.TaskID{"other": g.done.ID, "": g.done.ID, "t": {9}} {
		task, err := s.ReadTask(tenant, id)
		if task != nil || err != nil {
			t.Errorf("%q: got %+v, %v", tenant, task, err)
		}
		task, r, err := s.ReadResult(tenant, id)
		if task != nil || r != nil || err != nil {
			t.Errorf("%q: got %+v, %+v, %v", tenant, task, r, err)
		}
	}
}

func TestADamagedValueIsAnErrorForItsReader(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	q := record.QueueKey{Command: "c", Tenant: "t"}
	g := plantIn(s, 0).garden(t, q)
	read := func(id wire.TaskID) error {
		_, _, err := s.ReadResult("t", id)
		return err
	}
	for name, c := range map[string]struct {
		key record.Key
		id  wire.TaskID
	}{
		"record":  {record.Key{Family: record.FamilyTask, ID: g.k.ID}, g.k.ID},
		"result":  {record.Key{Family: record.FamilyResult, ID: g.done.ID}, g.done.ID},
		"history": {record.Key{Family: record.FamilyHistory, ID: g.dead.ID}, g.dead.ID},
		"lease":   {record.Key{Family: record.FamilyInProgress, Queue: 1, ID: g.leased.ID}, g.leased.ID},
	} {
		tamper(t, s, spanKey(c.key), `{"`)
		if err := read(c.id); !isDamaged(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	tamperDelete(t, s, spanKey(record.Key{Family: record.FamilyPayload, ID: g.pending.ID}))
	if err := read(g.pending.ID); !isDamaged(err) {
		t.Errorf("payload: got %v", err)
	}
}

func TestFiguresAreSummedOverShards(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	var oldest int64
	for shard := range 2 {
		p := plantIn(s, shard)
		first := p.garden(t, record.QueueKey{Command: "c", Tenant: "t"})
		p.garden(t, record.QueueKey{Command: "b", Tenant: "t"})
		p.garden(t, record.QueueKey{Command: "b", Tenant: "other"})
		oldest = first.pending.CreatedAtMs + int64(first.pending.Seq)
	}
	got, err := s.ReadQueues("t")
	if err != nil || len(got) != 2 || got[0].Command != "b" {
		t.Fatalf("got %+v, %v", got, err)
	}
	want := wire.QueueFigures{
		Command: "c", TenantID: "t", Ready: 4, Delayed: 2, InProgress: 2, Dead: 2, Ended: 2, DeadBy: [wire.DeadKinds]int64{wire.DeadExhausted: 2}, OldestReadyAtMs: oldest,
		Settings: wire.QueueSettings{Spread: true},
	}
	if got[1] != want {
		t.Errorf("got %+v\nwant %+v", got[1], want)
	}
	if got, err := s.ReadQueues("nobody"); err != nil || len(got) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTheOldestReadyTaskIsThatOfAnyPriority(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp, q := s.Span(0), record.QueueKey{Command: "c", Tenant: "t"}
	c := record.Counters{}
	for priority, readyAtMs := range []int64{500, 300, 400} {
		sp.Batch().PutPending(q, priority, record.PendingKey{Seq: 7, ID: wire.TaskID{1}}, readyAtMs)
		c.Ready[priority], c.ReadyWatermark[priority] = 1, 5
	}
	sp.Batch().PutCounters(q, &c)
	apply(t, sp)
	got, err := s.ReadQueues("t")
	if err != nil || got[0].OldestReadyAtMs != 300 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A reader sees a task before it is durable, and answers after.
func TestAReaderAnswersOnlyWhenWhatItReadIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(optionsIn(vfs.NewMem()))
		if err != nil {
			t.Fatal(err)
		}
		g := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
		var answered atomic.Bool
		go func() {
			task, err := s.ReadTask("t", g.pending.ID)
			if err != nil || task == nil {
				t.Errorf("got %v, %v", task, err)
			}
			if err := s.WaitDurable(context.Background(), 0); err != nil {
				t.Error(err)
			}
			answered.Store(true)
		}()
		synctest.Wait()
		if answered.Load() {
			t.Error("answered before the barrier")
		}
		barrier(t, s)
		synctest.Wait()
		if !answered.Load() {
			t.Error("not answered after the barrier")
		}
		closeStore(t, s)
	})
}
