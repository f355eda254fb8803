package store

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
	"codeq/wire"
)

func TestTheOpenBatchIsReadFirst(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp := s.Span(0)
	id, q := wire.TaskID{1}, record.QueueKey{Command: "c", Tenant: "t"}
	sp.Batch().PutTask(&record.Task{ID: id, Command: "c", Attempts: 1})
	apply(t, sp)
	sp.Batch().PutTask(&record.Task{ID: id, Command: "c", Attempts: 2})
	sp.Batch().PutIdempotencyKey(q, "k", id)
	if r, err := sp.Task(id); err != nil || r.Attempts != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
	if got, ok, err := sp.IdempotencyKey(q, "k"); err != nil || !ok || got != id {
		t.Errorf("got %v, %v, %v", got, ok, err)
	}
	sp.Batch().DeleteTask(id, record.Absent{})
	sp.Batch().DeleteIdempotencyKey(q, "k")
	if r, err := sp.Task(id); r != nil || err != nil {
		t.Errorf("a deleted task is still %+v, %v", r, err)
	}
	if _, ok, err := sp.IdempotencyKey(q, "k"); ok || err != nil {
		t.Errorf("a deleted key is still there, %v", err)
	}
	apply(t, sp)
	if r, err := sp.Task(id); r != nil || err != nil {
		t.Errorf("a deleted task is back as %+v, %v", r, err)
	}
}

func TestWhatAReadReturnsIsAPrivateCopy(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp := s.Span(0)
	id := wire.TaskID{1}
	record := &record.Task{ID: id, Command: "c", Attempts: 1}
	payload := []byte(`"payload"`)
	sp.Batch().PutTask(record)
	sp.Batch().PutPayload(id, payload)
	sp.Batch().PutResult(&wire.ResultRecord{TaskID: id, Status: wire.StatusCompleted, Result: []byte(`{"a":1}`)})
	record.Attempts = 99
	clear(payload)
	for range 2 { // open, then applied
		for range 2 {
			r, err := sp.Task(id)
			if err != nil || r.Attempts != 1 {
				t.Fatalf("record %+v, %v", r, err)
			}
			p, err := sp.view.payload(id)
			if err != nil || string(p) != `"payload"` {
				t.Fatalf("payload %s, %v", p, err)
			}
			res, err := sp.view.result(id)
			if err != nil || string(res.Result) != `{"a":1}` {
				t.Fatalf("result %+v, %v", res, err)
			}
			r.Attempts = 7
			clear(p)
			clear(res.Result)
		}
		apply(t, sp)
	}
}

func TestAnEmptyPayloadIsNotAMissingOne(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp := s.Span(0)
	sp.Batch().PutPayload(wire.TaskID{1}, nil)
	for range 2 {
		if p, err := sp.view.payload(wire.TaskID{1}); p == nil || err != nil {
			t.Errorf("got %v, %v", p, err)
		}
		if p, err := sp.view.payload(wire.TaskID{2}); p != nil || err != nil {
			t.Errorf("got %v, %v", p, err)
		}
		apply(t, sp)
	}
}

func TestHistoryKeepsTheLastTen(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp := s.Span(0)
	id := wire.TaskID{1}
	for i := 1; i <= 13; i++ {
		sp.Batch().AddHistory(id, wire.HistoryLine{Delivery: i, Cause: fmt.Sprint("cause ", i)})
		if i%3 == 0 {
			apply(t, sp)
		}
	}
	value, err := historyOf(sp, id)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := record.ParseHistory(value)
	if err != nil || len(lines) != record.MaxHistory || lines[0].Delivery != 4 || lines[9].Cause != "cause 13" {
		t.Errorf("got %+v, %v", lines, err)
	}
}

// keysOf is every key of a span with its family.
func keysOf(t *testing.T, sp *Span) (keys []string) {
	t.Helper()
	err := sp.view.scanPrefix(sp.prefix, func(key, _ []byte) (bool, error) {
		keys = append(keys, record.DescribeKey(key, sp.store.queueOf(key)))
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestSmallValuesAreWithinTheRecord goes over both sides of the bound, and over
// outcomes of which the record says only a part.
func TestSmallValuesAreWithinTheRecord(t *testing.T) {
	text := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	for _, c := range []struct {
		name    string
		payload []byte
		outcome wire.ResultRecord
		keys    string
	}{
		{"both at the bound", text(smallBytes), wire.ResultRecord{Result: text(smallBytes)}, "tasks"},
		{"no result", text(2), wire.ResultRecord{}, "tasks"},
		{"cancelled", text(2), wire.ResultRecord{Status: wire.StatusCancelled}, "tasks"},
		{"large payload", text(smallBytes + 1), wire.ResultRecord{Result: text(3)}, "tasks payload"},
		{"no payload", nil, wire.ResultRecord{Result: text(3)}, "tasks payload"},
		{"large result", text(3), wire.ResultRecord{Result: text(smallBytes + 1)}, "tasks results"},
		{"error", text(3), wire.ResultRecord{Status: wire.StatusFailed, Error: "no"}, "tasks results"},
		{"artifacts", text(3), wire.ResultRecord{Artifacts: []wire.Artifact{{Name: "a", URL: "b"}}}, "tasks results"},
		{"another time", text(3), wire.ResultRecord{CompletedAtMs: 6000}, "tasks results"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openIn(t, vfs.NewMem())
			sp := s.Span(0)
			r := &record.Task{ID: wire.TaskID{1}, Command: "c", Status: cmp.Or(c.outcome.Status, wire.StatusCompleted), EndedAtMs: 5000}
			c.outcome.TaskID, c.outcome.Status = r.ID, r.Status
			c.outcome.CompletedAtMs = cmp.Or(c.outcome.CompletedAtMs, r.EndedAtMs)
			given := bytes.Clone(c.payload)
			sp.Batch().GivePayload(r, given)
			sp.Batch().GiveResult(r, &c.outcome)
			sp.Batch().PutTask(r)
			clear(given)
			for range 2 { // open, then applied
				found, err := sp.Task(r.ID)
				if err != nil || *found != *r {
					t.Fatalf("record %+v, %v, want %+v", found, err, r)
				}
				if p, err := sp.PayloadOf(found); !bytes.Equal(p, c.payload) || p == nil || err != nil {
					t.Errorf("payload %s, %v", p, err)
				}
				if o, err := sp.ResultOf(found); err != nil || !reflect.DeepEqual(o, &c.outcome) {
					t.Errorf("outcome %+v, %v, want %+v", o, err, c.outcome)
				}
				apply(t, sp)
			}
			var families []string
			for _, key := range keysOf(t, sp) {
				families = append(families, strings.Split(key, "/")[0])
			}
			if got := strings.Join(families, " "); got != c.keys {
				t.Errorf("keys %q, want %q", got, c.keys)
			}
			sp.Batch().TakeResult(r)
			if o, err := sp.ResultOf(r); o != nil || err != nil {
				t.Errorf("an outcome that was taken is %+v, %v", o, err)
			}
		})
	}
}

// model is the overlay and database of one span as two maps.
type model struct {
	applied, open map[string]any
}

func (w *model) put(key string, value any) { w.open[key] = value }

func (w *model) get(key string) any {
	if v, ok := w.open[key]; ok {
		return v
	}
	return w.applied[key]
}

func (w *model) apply() {
	for k, v := range w.open {
		w.applied[k] = v
	}
	clear(w.open)
}

// step does one random thing to span and model.
func (w *model) step(t *testing.T, sp *Span, random *rand.Rand) {
	id := wire.TaskID{byte(1 + random.IntN(6))}
	q := record.QueueKey{Command: fmt.Sprint("c", random.IntN(2)), Tenant: "t"}
	key := fmt.Sprint("k", random.IntN(3))
	number := random.IntN(1000)
	b := sp.Batch()
	switch random.IntN(8) {
	case 0:
		r := record.Task{ID: id, Command: "c", Attempts: number}
		b.PutTask(&r)
		w.put(fmt.Sprint("task", id), r)
	case 1:
		p := bytes.Repeat([]byte{'x'}, number)
		b.PutPayload(id, p)
		w.put(fmt.Sprint("payload", id), string(p))
	case 2:
		b.PutResult(&wire.ResultRecord{TaskID: id, Status: wire.StatusFailed, Error: fmt.Sprint("e", number)})
		w.put(fmt.Sprint("result", id), fmt.Sprint("e", number))
	case 3:
		b.TakeResult(&record.Task{ID: id})
		w.put(fmt.Sprint("result", id), nil)
	case 4:
		b.DeleteTask(id, record.Absent{})
		for _, family := range []string{"task", "payload", "result", "history"} {
			w.put(fmt.Sprint(family, id), nil)
		}
	case 5:
		b.PutIdempotencyKey(q, key, id)
		w.put(fmt.Sprint(q, key), id)
	case 6:
		b.DeleteIdempotencyKey(q, key)
		w.put(fmt.Sprint(q, key), nil)
	case 7:
		line := wire.HistoryLine{Delivery: number}
		b.AddHistory(id, line)
		lines, _ := w.get(fmt.Sprint("history", id)).([]wire.HistoryLine)
		lines = append(slices.Clone(lines), line)
		w.put(fmt.Sprint("history", id), lines[max(0, len(lines)-record.MaxHistory):])
	}
	if random.IntN(10) == 0 {
		apply(t, sp)
		w.apply()
	}
}

// compare reads everything from both.
func (w *model) compare(t *testing.T, sp *Span) {
	t.Helper()
	for i := range byte(6) {
		id := wire.TaskID{i + 1}
		r, err := sp.Task(id)
		w.same(t, fmt.Sprint("task", id), r == nil, err, func() any { return *r })
		p, err := sp.view.payload(id)
		w.same(t, fmt.Sprint("payload", id), p == nil, err, func() any { return string(p) })
		res, err := sp.view.result(id)
		w.same(t, fmt.Sprint("result", id), res == nil, err, func() any { return res.Error })
		value, err := historyOf(sp, id)
		if err != nil {
			t.Fatal(err)
		}
		h, err := record.ParseHistory(value)
		w.same(t, fmt.Sprint("history", id), h == nil, err, func() any { return h })
	}
	for _, q := range []record.QueueKey{{Command: "c0", Tenant: "t"}, {Command: "c1", Tenant: "t"}} {
		for _, key := range []string{"k0", "k1", "k2"} {
			id, ok, err := sp.IdempotencyKey(q, key)
			w.same(t, fmt.Sprint(q, key), !ok, err, func() any { return id })
		}
	}
}

func (w *model) same(t *testing.T, key string, absent bool, err error, got func() any) {
	t.Helper()
	want := w.get(key)
	if err != nil || absent != (want == nil) {
		t.Fatalf("%s: absent %v, error %v, want %v", key, absent, err, want)
	}
	if !absent && !reflect.DeepEqual(got(), want) {
		t.Fatalf("%s: got %v, want %v", key, got(), want)
	}
}

func TestReadsAgreeWithTwoMaps(t *testing.T) {
	for seed := range uint64(2) {
		s := openIn(t, vfs.NewMem())
		random := rand.New(rand.NewPCG(seed, 1))
		w := &model{applied: map[string]any{}, open: map[string]any{}}
		for range 300 {
			w.step(t, s.Span(1), random)
			w.compare(t, s.Span(1))
		}
		closeStore(t, s)
	}
}

func TestALargeRoundLeavesNoLargeMemory(t *testing.T) {
	o := newOverlay()
	for i := range byte(6) {
		o.putValue(record.FamilyPayload, wire.TaskID{i}, make([]byte, wire.MaxPayloadBytes))
	}
	if value, state := o.value(record.FamilyPayload, wire.TaskID{5}); len(value) != wire.MaxPayloadBytes || state != written {
		t.Errorf("got %d bytes, %d", len(value), state)
	}
	o.reset()
	if kept := cap(o.bytes); kept > maxKeptOverlayBytes {
		t.Errorf("%d bytes are kept", kept)
	}
	if _, state := o.value(record.FamilyPayload, wire.TaskID{5}); state != untouched {
		t.Error("a value survived its round")
	}
}

func TestScansBeginAfterTheirCursor(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp := s.Span(0)
	q := record.QueueKey{Command: "c", Tenant: "t"}
	last := wire.TaskID(bytes.Repeat([]byte{0xff}, 16))
	for seq := uint64(5); seq < 10; seq++ {
		sp.Batch().PutPending(q, 3, record.PendingKey{Seq: seq, ID: wire.TaskID{1}}, 1)
		sp.Batch().PutTimed(q, record.FamilyDelayed, record.TimedKey{AtMs: int64(seq), ID: wire.TaskID{1}})
		sp.Batch().PutEnded(q, record.FamilyDead, record.TimedKey{AtMs: int64(seq) + 10, ID: wire.TaskID{1}}, record.Ended{Status: wire.StatusFailed, Cause: wire.DeadFailed})
		sp.Batch().PutEnded(q, record.FamilyDone, record.TimedKey{AtMs: int64(seq) + 20, ID: wire.TaskID{1}}, record.Ended{Status: wire.StatusFailed, Deliveries: int(seq)})
	}
	// Neighbours that must not be seen.
	sp.Batch().PutPending(q, 2, record.PendingKey{Seq: 1, ID: wire.TaskID{1}}, 1)
	sp.Batch().PutPending(q, 4, record.PendingKey{Seq: 99, ID: wire.TaskID{1}}, 1)
	sp.Batch().PutPending(record.QueueKey{Command: "c", Tenant: "t2"}, 3, record.PendingKey{Seq: 6, ID: wire.TaskID{9}}, 1)
	sp.Batch().PutLease(q, wire.TaskID{1}, &record.Lease{Delivery: 1})
	apply(t, sp)
	s.Span(1).Batch().PutPending(q, 3, record.PendingKey{Seq: 6, ID: wire.TaskID{8}}, 1)
	apply(t, s.Span(1))

	for _, c := range []struct {
		after record.PendingKey
		limit int
		want  []uint64
	}{
		{record.PendingKey{}, 100, []uint64{5, 6, 7, 8, 9}},
		{record.PendingKey{Seq: 4, ID: last}, 2, []uint64{5, 6}},
		{record.PendingKey{Seq: 6, ID: wire.TaskID{1}}, 100, []uint64{7, 8, 9}},
		{record.PendingKey{Seq: 6, ID: wire.TaskID{0}}, 1, []uint64{6}},
		{record.PendingKey{Seq: 9, ID: wire.TaskID{1}}, 100, nil},
		{record.PendingKey{}, 0, nil},
	} {
		keys, err := sp.ScanPending(q, 3, c.after, c.limit)
		var got []uint64
		for _, k := range keys {
			got = append(got, k.Seq)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("after %v: got %v, %v, want %v", c.after, got, err, c.want)
		}
	}
	delayed, err := sp.ScanTimed(q, record.FamilyDelayed, record.TimedKey{AtMs: 5, ID: wire.TaskID{1}}, 2)
	if err != nil || len(delayed) != 2 || delayed[0].AtMs != 6 || delayed[1].AtMs != 7 {
		t.Errorf("delayed: got %v, %v", delayed, err)
	}
	dead, err := sp.ScanEnded(q, record.FamilyDead, record.TimedKey{AtMs: 15, ID: wire.TaskID{1}}, 1)
	if err != nil || !slices.Equal(dead, []record.EndedEntry{{TimedKey: record.TimedKey{AtMs: 16, ID: wire.TaskID{1}}, Ended: record.Ended{Status: wire.StatusFailed, Cause: wire.DeadFailed}}}) {
		t.Errorf("dead: got %v, %v", dead, err)
	}
	ended, err := sp.ScanEnded(q, record.FamilyDone, record.TimedKey{AtMs: 25, ID: wire.TaskID{1}}, 2)
	want := []record.EndedEntry{
		{TimedKey: record.TimedKey{AtMs: 26, ID: wire.TaskID{1}}, Ended: record.Ended{Status: wire.StatusFailed, Deliveries: 6}},
		{TimedKey: record.TimedKey{AtMs: 27, ID: wire.TaskID{1}}, Ended: record.Ended{Status: wire.StatusFailed, Deliveries: 7}},
	}
	if err != nil || !slices.Equal(ended, want) {
		t.Errorf("ended: got %v, %v, want %v", ended, err, want)
	}
}

func TestAScanInMidRoundPanics(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp := s.Span(0)
	q := record.QueueKey{Command: "c", Tenant: "t"}
	sp.Batch().PutMarks(record.Marks{Seq: 1})
	mustPanic(t, "ScanPending", func() { _, _ = sp.ScanPending(q, 0, record.PendingKey{}, 1) })
	mustPanic(t, "ScanDelayed", func() { _, _ = sp.ScanTimed(q, record.FamilyDelayed, record.TimedKey{}, 1) })
	mustPanic(t, "Load", func() { _, _ = sp.Load() })
	apply(t, sp)
	if _, err := sp.ScanPending(q, 0, record.PendingKey{}, 1); err != nil {
		t.Error(err)
	}
}

func TestAnEmptyBatchAppliesNothing(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp := s.Span(0)
	if !sp.Batch().Empty() || sp.Batch().Bytes() != 0 || apply(t, sp) != 0 {
		t.Error("a new batch is not empty")
	}
	sp.Batch().PutMarks(record.Marks{Seq: 1})
	if sp.Batch().Empty() || sp.Batch().Bytes() < 20 || apply(t, sp) != 1 {
		t.Error("a written batch is empty")
	}
	if !sp.Batch().Empty() || apply(t, sp) != 1 || s.Submitted(0) != 1 || s.Submitted(1) != 0 {
		t.Error("an applied batch is not empty")
	}
}

func TestPendingKeyTakenInItsOwnBatchIsNeverWritten(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	sp, q := s.Span(0), record.QueueKey{Command: "c", Tenant: "t"}
	kept, taken := record.PendingKey{Seq: 1, ID: wire.TaskID{1}}, record.PendingKey{Seq: 2, ID: wire.TaskID{2}}
	sp.Batch().PutPending(q, 0, kept, 5)
	before := sp.Batch().Bytes()
	sp.Batch().PutPending(q, 0, taken, 5)
	sp.Batch().DeletePending(q, 0, taken)
	if sp.Batch().Bytes() != before {
		t.Errorf("a key put and deleted counts %d bytes", sp.Batch().Bytes()-before)
	}
	apply(t, sp)
	sp.Batch().DeletePending(q, 0, kept)
	sp.Batch().PutPending(q, 0, kept, 7)
	apply(t, sp)
	if keys, err := sp.ScanPending(q, 0, record.PendingKey{}, 9); err != nil || len(keys) != 1 || keys[0] != (record.PendingEntry{PendingKey: kept, ReadyAtMs: 7}) {
		t.Errorf("a key deleted and put again in one batch: got %v, %v", keys, err)
	}
	sp.Batch().DeletePending(q, 0, kept)
	sp.Batch().PutPending(q, 0, kept, 7)
	sp.Batch().DeletePending(q, 0, kept)
	apply(t, sp)
	if keys, err := sp.ScanPending(q, 0, record.PendingKey{}, 9); err != nil || len(keys) != 0 {
		t.Errorf("a key deleted, put and deleted in one batch: got %v, %v", keys, err)
	}
}
