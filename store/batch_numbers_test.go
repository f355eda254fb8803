package store

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
	"codeq/wire"
)

// numberOf is the number of a queue, 0 if it has none.
func numberOf(sp *Span, q record.QueueKey) uint32 { return sp.published.number(q) }

func putOne(t *testing.T, sp *Span, q record.QueueKey) {
	t.Helper()
	sp.Batch().PutCounters(q, &record.Counters{Done: 1})
	apply(t, sp)
}

func forget(t *testing.T, sp *Span, q record.QueueKey) {
	t.Helper()
	sp.Batch().DeleteCounters(q)
	apply(t, sp)
}

func TestANumberIsGivenOnceAlsoOverRestarts(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open(optionsIn(fs))
	if err != nil {
		t.Fatal(err)
	}
	sp, a, b := s.Span(0), record.QueueKey{Command: "a", Tenant: "t"}, record.QueueKey{Command: "b", Tenant: "t"}
	putOne(t, sp, a)
	putOne(t, sp, b)
	forget(t, sp, b)
	if n := numberOf(sp, b); numberOf(sp, a) != 1 || n != 0 {
		t.Errorf("a has the number %d, b, which is gone, %d", numberOf(sp, a), n)
	}
	if names, err := sp.view.names(2); err != nil || names != (record.QueueKey{}) {
		t.Errorf("the name of a queue that is gone is %v, %v", names, err)
	}
	closeStore(t, s)
	again := openIn(t, fs)
	sp = again.Span(0)
	load(t, sp)
	putOne(t, sp, b)
	if numberOf(sp, a) != 1 || numberOf(sp, b) != 3 {
		t.Errorf("after a restart a has the number %d, b %d", numberOf(sp, a), numberOf(sp, b))
	}
}

func TestANumberIsGivenInTheBatchOfTheFirstKey(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := openIn(t, fs)
	sp, q := s.Span(0), record.QueueKey{Command: "a", Tenant: "t"}
	barrier(t, s)
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	putOne(t, sp, q)
	barrier(t, s)
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	for want, clone := range map[uint32]*vfs.MemFS{0: crashed, 1: after} {
		other := openIn(t, clone)
		load(t, other.Span(0))
		if n := numberOf(other.Span(0), q); n != want {
			t.Errorf("the queue has the number %d, want %d", n, want)
		}
		putOne(t, other.Span(0), q)
		if n := numberOf(other.Span(0), q); n != 1 {
			t.Errorf("the queue got the number %d, want 1", n)
		}
	}
}

func TestAQueueKeepsItsNameWhileItHasSettings(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp, q := s.Span(0), record.QueueKey{Command: "a", Tenant: "t"}
	putOne(t, sp, q)
	putSettings(t, s, 0, q, record.Settings{Version: 1})
	forget(t, sp, q)
	if n := numberOf(sp, q); n != 1 {
		t.Errorf("the queue has the number %d", n)
	}
	// It is there again before the batch ends.
	sp.Batch().DeleteSettings(q)
	sp.Batch().PutCounters(q, &record.Counters{Done: 1})
	apply(t, sp)
	if n := numberOf(sp, q); n != 1 {
		t.Errorf("the queue has the number %d", n)
	}
	forget(t, sp, q)
	if n := numberOf(sp, q); n != 0 {
		t.Errorf("the queue that is gone has the number %d", n)
	}
}

// TestASnapshotKnowsTheNumbersOfItsTime reads at one moment and lets the queue go and
// come again meanwhile.
func TestASnapshotKnowsTheNumbersOfItsTime(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp, q, id := s.Span(0), record.QueueKey{Command: "a", Tenant: "t"}, wire.TaskID{1}
	sp.Batch().PutLease(q, id, &record.Lease{Delivery: 7})
	putOne(t, sp, q)
	if err := s.atOneMoment(func(snapshot *pebble.Snapshot) error {
		sp.Batch().DeleteLease(q, id, true)
		forget(t, sp, q)
		putOne(t, sp, q)
		v := s.viewOf(snapshot, 0)
		l, err := v.lease(q, id)
		if err != nil || l == nil || l.Delivery != 7 || numberOf(sp, q) != 2 {
			t.Errorf("the lease of the snapshot is %v, %v, the number now %d", l, err, numberOf(sp, q))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	v := s.viewOf(s.db, 0)
	if l, err := v.lease(q, id); err != nil || l != nil {
		t.Errorf("the lease of the queue before is %v, %v", l, err)
	}
}

// TestADamagedNameIsFoundInATask takes the name of a queue away, and of one that has
// no task.
func TestADamagedNameIsFoundInATask(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open(optionsIn(fs))
	if err != nil {
		t.Fatal(err)
	}
	g := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	putOne(t, s.Span(0), record.QueueKey{Command: "lost", Tenant: "t"})
	tamper(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 1}), "x")
	tamper(t, s, spanKey(record.Key{Family: record.FamilyNames, Queue: 2}), "x")
	closeStore(t, s)
	again := openIn(t, fs)
	r := load(t, again.Span(0))
	if len(r.Queues) != 1 || r.Queues[0].Key != g.queue || len(r.Leased) != 1 || r.Quarantined != 3 {
		t.Errorf("got %d queues, %d leased, %d set aside", len(r.Queues), len(r.Leased), r.Quarantined)
	}
	if numberOf(again.Span(0), g.queue) != 1 {
		t.Errorf("the queue has the number %d", numberOf(again.Span(0), g.queue))
	}
	mustFindNothing(t, again)
}
