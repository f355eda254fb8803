package store

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
	"codeq/wire"
)

// flushed writes everything to tables and says how many keys and deletions are in
// them.
func flushed(t *testing.T, s *Store) (keys, deletions uint64) {
	t.Helper()
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	levels, err := s.db.SSTables(pebble.WithProperties())
	if err != nil {
		t.Fatal(err)
	}
	for _, tables := range levels {
		for _, table := range tables {
			keys += table.Properties.NumEntries
			deletions += table.Properties.NumDeletions
		}
	}
	return keys, deletions
}

// TestWhatATaskLeavesInTheOrdersIsGoneWithTheNextFlush puts a task through every
// order of its queue, each step in a batch of its own.
func TestWhatATaskLeavesInTheOrdersIsGoneWithTheNextFlush(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp, q, id := s.Span(0), record.QueueKey{Command: "c", Tenant: "t"}, wire.TaskID{1}
	sp.Batch().PutCounters(q, &record.Counters{Done: 1})
	apply(t, sp)
	before, _ := flushed(t, s)
	pending, timed := record.PendingKey{Seq: 1, ID: id}, record.TimedKey{AtMs: 1, ID: id}
	for range 2 { // the same keys once more
		for _, step := range []func(*Batch){
			func(b *Batch) { b.PutTimed(q, record.FamilyDelayed, timed) },
			func(b *Batch) { b.DeleteTimed(q, record.FamilyDelayed, timed); b.PutPending(q, 0, pending, 1) },
			func(b *Batch) { b.DeletePending(q, 0, pending); b.PutLease(q, id, fullLease()) },
			func(b *Batch) { b.DeleteLease(q, id, true); b.PutEnded(q, record.FamilyDead, timed, record.Ended{}) },
			func(b *Batch) {
				b.DeleteTimed(q, record.FamilyDead, timed)
				b.PutEnded(q, record.FamilyDone, timed, record.Ended{})
			},
			func(b *Batch) { b.DeleteTimed(q, record.FamilyDone, timed) },
		} {
			step(sp.Batch())
			apply(t, sp)
		}
	}
	if keys, deletions := flushed(t, s); keys != before || deletions != 0 {
		t.Errorf("tables have %d keys, %d of them deletions, and had %d", keys, deletions, before)
	}
}

// TestALeaseThatWasPutAgainIsDeletedWhole is the way of a task with a heartbeat.
func TestALeaseThatWasPutAgainIsDeletedWhole(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp, q, id := s.Span(0), record.QueueKey{Command: "c", Tenant: "t"}, wire.TaskID{1}
	for range 2 {
		sp.Batch().PutLease(q, id, fullLease())
		apply(t, sp)
		flushed(t, s)
	}
	sp.Batch().DeleteLease(q, id, false)
	apply(t, sp)
	flushed(t, s)
	if l, err := sp.view.lease(q, id); l != nil || err != nil {
		t.Errorf("the lease is %+v, %v", l, err)
	}
}

// A key that was put twice and is deleted as if it had been put once ends the process.
func TestAKeyPutTwiceAndDeletedAsIfOnceEndsTheProcess(t *testing.T) {
	var ended string
	s := openIn(t, vfs.NewMem(), func(o *Options) {
		o.Fatal = func(err error) { ended = err.Error(); panic(ended) }
	})
	sp, q, id := s.Span(0), record.QueueKey{Command: "c", Tenant: "t"}, wire.TaskID{1}
	sp.Batch().PutLease(q, id, fullLease())
	apply(t, sp)
	sp.Batch().PutLease(q, id, fullLease())
	apply(t, sp)
	sp.Batch().DeleteLease(q, id, true)
	apply(t, sp)
	flushed(t, s)
	func() {
		defer func() { _ = recover() }()
		sp.Batch().PutMarks(record.Marks{Seq: 1})
		_, _ = sp.Apply()
	}()
	if want := `lease of task 01000000-0000-0000-0000-000000000000 in queue "c" of tenant "t" was set more than once`; !strings.Contains(ended, want) {
		t.Errorf("the process ended with %q, want %q", ended, want)
	}
}

// Labels are written at the end of a batch, in the order of their keys. Those of a task that the
// same batch removes again leave nothing.
func TestLabelsAreWrittenInTheOrderOfTheirKeys(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp, q := s.Span(0), record.QueueKey{Command: "c", Tenant: "t"}
	labelled := func(n byte, labels wire.Labels) *record.Task {
		r := &record.Task{ID: wire.TaskID{n}, Command: q.Command, Tenant: q.Tenant, Labels: labels}
		sp.Batch().PutLabels(r)
		return r
	}
	sp.Batch().PutCounters(q, &record.Counters{Done: 1})
	apply(t, sp)
	before, _ := flushed(t, s)
	labelled(2, "a=1\nb=2")
	gone := labelled(3, "a=1\nb=1")
	sp.Batch().DeleteLabels(gone)
	if sp.Batch().Empty() {
		t.Error("the batch is empty")
	}
	bytes := sp.Batch().Bytes()
	labelled(1, "a=1\nb=2")
	if grown := sp.Batch().Bytes(); grown <= bytes {
		t.Errorf("the batch has %d bytes, and had %d before the labels of the last task", grown, bytes)
	}
	apply(t, sp)
	if keys, deletions := flushed(t, s); keys != before+4 || deletions != 0 {
		t.Errorf("tables have %d keys, %d of them deletions, want %d", keys, deletions, before+4)
	}
	labelled(5, "b=2")
	labelled(4, "b=2\nc=3")
	var order []string
	sp.Batch().close()
	for _, line := range sp.Batch().Describe() {
		order = append(order, line[strings.Index(line, "label/"):])
	}
	if want := "label/b=2/04,label/b=2/05,label/c=3/04"; shortened(order) != want {
		t.Errorf("the labels are written as %s, want %s", shortened(order), want)
	}
}

// shortened keeps of each id its first byte.
func shortened(lines []string) string {
	for i, line := range lines {
		lines[i] = line[:strings.LastIndex(line, "/")+3]
	}
	return strings.Join(lines, ",")
}
