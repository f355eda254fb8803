package shardactor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/internal/audit"
	"codeq/mailbox"
	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

var queueA = record.QueueKey{Command: "a", Tenant: "default"}

// configure changes settings and waits until every shard has them.
func (e *testEngine) configure(t *testing.T, what shard.SettingsChange) record.Settings {
	t.Helper()
	var now record.Settings
	var failed *wire.Error
	answers := 0
	e.Configure(&Change{Queue: queueA, What: what, Done: func(s record.Settings, refusal *wire.Error) {
		now, failed = s, refusal
		answers++
	}})
	synctest.Wait()
	if failed != nil || answers != 1 {
		t.Fatalf("%d answers, the last %+v, %v", answers, now, failed)
	}
	return now
}

func (e *testEngine) pause(t *testing.T, paused bool) {
	t.Helper()
	if now := e.configure(t, shard.SettingsChange{Paused: &paused}); now.Paused != paused {
		t.Fatalf("paused %v gave %+v", paused, now)
	}
}

// idleWorker takes tasks and never answers.
type idleWorker struct {
	collector
	consumer *Consumer
}

func newIdleWorker(e *testEngine, id byte, window int) *idleWorker {
	w := &idleWorker{}
	w.consumer = e.NewConsumer(ConsumerOptions{ID: wire.SessionID{id}, Tenant: "default", Subject: "anonymous", Sink: w})
	w.consumer.SetWindow(window)
	for shardNo := range e.Shards() {
		e.Post(shardNo, []shard.Message{&shard.Subscribe{Consumer: w.consumer.Consumer, Commands: []string{"a"}, LeaseForMs: 30_000}}, 0, mailbox.ClassKeep)
	}
	return w
}

func (w *idleWorker) granted() (all []wire.TaskRef) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.effects {
		if g, ok := e.(*shard.Granted); ok {
			all = append(all, wire.TaskRef{TaskID: g.Task.ID, Token: g.Token})
		}
	}
	return all
}

// Workers wait, the queue is paused, and then tasks become ready in every way
// there is: new ones, delayed ones, lapsed leases, handed back, failed. None is
// delivered, also after a restart, until the queue is resumed.
func TestA28PausedQueueDeliversNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		e := startTestEngine(t, 4, disk, noFatal)
		e.spread(t)
		busy := newIdleWorker(e, 1, 30)
		e.enqueue(t, nil, 30, wire.EnqueueRequest{Command: "a", Payload: []byte("1"), MaxAttempts: 9})
		e.enqueue(t, nil, 20, wire.EnqueueRequest{Command: "a", Payload: []byte("1"), MaxAttempts: 9, DelaySeconds: 20})
		synctest.Wait()
		held := busy.granted()
		if len(held) != 30 {
			t.Fatalf("%d tasks were delivered before the pause, want 30", len(held))
		}
		waiting := newIdleWorker(e, 2, 100)
		synctest.Wait()
		e.pause(t, true)

		e.enqueue(t, nil, 20, wire.EnqueueRequest{Command: "a", Payload: []byte("1"), MaxAttempts: 9})
		owner := shard.Owner{Tenant: "default", Subject: "anonymous"}
		for n, ref := range held[:20] {
			var m shard.Message
			switch n % 4 {
			case 0:
				m = &shard.End{How: shard.Nack, Holder: shard.Holder{Owner: owner, TaskRef: ref}}
			case 1:
				m = &shard.End{How: shard.Abandon, Holder: shard.Holder{Owner: owner, TaskRef: ref}}
			case 2:
				m = &shard.End{How: shard.Release, Holder: shard.Holder{Owner: owner, TaskRef: ref}}
			case 3:
				m = &shard.Undelivered{Consumer: busy.consumer.Consumer, Tasks: []wire.TaskRef{ref}}
			}
			e.Post(e.ShardOf(ref.TaskID), []shard.Message{m}, 1, mailbox.ClassKeep)
			busy.consumer.Return(1)
		}
		time.Sleep(40 * time.Second) // synctest: the leases of the others lapse, the delayed fall due
		synctest.Wait()
		if got := len(busy.granted()) + len(waiting.granted()); got != 30 {
			t.Fatalf("%d tasks were delivered by a paused queue", got-30)
		}
		busy.consumer.Close(0)
		waiting.consumer.Close(0)
		synctest.Wait()
		e.stop()

		e = startTestEngine(t, 4, disk, noFatal)
		defer e.stop()
		waiting = newIdleWorker(e, 3, 100)
		time.Sleep(time.Minute) // synctest: whatever a restart wakes
		synctest.Wait()
		if got := len(waiting.granted()); got != 0 {
			t.Fatalf("%d tasks were delivered by a queue that was paused before the restart", got)
		}
		e.pause(t, false)
		time.Sleep(time.Minute) // synctest: the longest first backoff
		synctest.Wait()
		if got := len(waiting.granted()); got < 70 {
			t.Errorf("%d tasks were delivered once it was resumed, want all 70", got)
		}
		mustFindNothing(t, e)
	})
}

func mustFindNothing(t *testing.T, e *testEngine) {
	t.Helper()
	findings, err := audit.Check(e.store)
	if err != nil || len(findings) > 0 {
		t.Errorf("check: %v, %v", findings, err)
	}
}

// A crash comes when only the home of a queue knows that it is paused. At the
// next start no shard delivers, and every one has the settings on disk again.
func TestSettingsReachEveryShardAfterACrashHalfWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		e := startTestEngine(t, 4, disk, noFatal)
		e.spread(t)
		e.enqueue(t, nil, 40, wire.EnqueueRequest{Command: "a", Payload: []byte("1"), MaxAttempts: 9})
		home := wire.ShardOfQueue("default", "a", 4)
		paused := true
		e.Post(home, []shard.Message{&shard.Configure{Queue: queueA, Change: shard.SettingsChange{Paused: &paused}}}, 1, mailbox.ClassKeep)
		synctest.Wait()
		e.stop()

		e = startTestEngine(t, 4, disk, noFatal)
		w := newIdleWorker(e, 1, 100)
		synctest.Wait()
		if got := len(w.granted()); got != 0 {
			t.Errorf("%d tasks were delivered before the pause of the home was known", got)
		}
		w.consumer.Close(0)
		synctest.Wait()
		e.stop()
		for shardNo, found := range settingsOnDisk(t, disk) {
			if len(found) != 1 || !found[0].Settings.Paused {
				t.Errorf("shard %d has %+v on disk", shardNo, found)
			}
		}
	})
}

// settingsOnDisk is what recovery finds in each shard.
func settingsOnDisk(t *testing.T, disk vfs.FS) (all [][]store.SettingsState) {
	t.Helper()
	s, err := store.Open(store.Options{FS: disk, Dir: "data", Fatal: noFatal})
	if err != nil {
		t.Fatal(err)
	}
	for shard := range s.Shards() {
		r, err := s.Span(shard).Load()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Settings)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Two who change one queue at the same time each get what holds, and all shards
// end with the same settings.
func TestChangesAtTheSameTimeEndInOneVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		e := startTestEngine(t, 4, disk, noFatal)
		const changes = 40
		answers := make(chan record.Settings, changes)
		for n := range changes {
			go e.Configure(&Change{
				Queue: queueA, What: shard.SettingsChange{Settings: &wire.QueueSettings{MaxAttempts: n + 1}},
				Done: func(s record.Settings, refusal *wire.Error) {
					if refusal != nil {
						panic(refusal.Error())
					}
					answers <- s
				},
			})
		}
		for range changes {
			<-answers
		}
		mustFindNothing(t, e)
		e.stop()
		all := settingsOnDisk(t, disk)
		for shardNo := range all {
			if len(all[shardNo]) != 1 || all[shardNo][0] != all[0][0] || all[shardNo][0].Settings.Version != changes {
				t.Errorf("shard %d has %+v, shard 0 %+v", shardNo, all[shardNo], all[0])
			}
		}
	})
}
