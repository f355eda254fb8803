package loadtest

import (
	"sync/atomic"

	"github.com/HdrHistogram/hdrhistogram-go"

	"codeq/wire"
)

// Latencies are kept in microseconds, from one to a minute.
const (
	minLatencyMicros = 1
	maxLatencyMicros = 60_000_000
	latencyDigits    = 3
)

// latencies are the four spans that a run measures, all from the moment a task
// is posted.
type latencies struct {
	acked, refused, given, completed *hdrhistogram.Histogram
}

func newLatencies() *latencies {
	one := func() *hdrhistogram.Histogram {
		return hdrhistogram.New(minLatencyMicros, maxLatencyMicros, latencyDigits)
	}
	return &latencies{acked: one(), refused: one(), given: one(), completed: one()}
}

func (l *latencies) merge(other *latencies) {
	l.acked.Merge(other.acked)
	l.refused.Merge(other.refused)
	l.given.Merge(other.given)
	l.completed.Merge(other.completed)
}

func record(h *hdrhistogram.Histogram, ns int64) {
	micros := min(max((ns+500)/1000, minLatencyMicros), maxLatencyMicros)
	// It fails only outside the range that the line above keeps to.
	_ = h.RecordValue(micros)
}

// Tally takes what one connection hears. It belongs to the goroutine that
// hears it; a run makes one for each.
type Tally struct {
	run     *run
	latency *latencies
	scratch []byte
	// nowNs and measured hold for one message, see Begin.
	nowNs    int64
	measured bool
	// credit is what producers get back at the end of the message.
	credit    []int32
	refusals  []int32
	creditors []uint32

	ackedNow, refusedNow, completedNow int64
}

// Begin is called in front of what came together. It reads the clock once for
// all of it.
func (t *Tally) Begin() {
	t.nowNs = t.run.nowNs()
	t.measured = t.run.measuring.Load()
}

// Acked notes the answer to a posted task.
func (t *Tally) Acked(n uint64, id wire.TaskID) {
	e := t.run.ledger.find(n)
	if e == nil {
		t.run.ledger.strangers.Add(1)
		return
	}
	e.acked(id)
	t.ackedNow++
	t.giveBack(e, 0)
	if t.measured {
		record(t.latency.acked, t.nowNs-e.sentNs)
	}
}

// Refused notes that a posted task was not taken on. A refusal that does not
// say "later" ends the run.
func (t *Tally) Refused(n uint64, refusal *wire.Error) {
	e := t.run.ledger.find(n)
	if e == nil || !refusal.Code.Retryable() {
		t.run.fail(refusal)
	}
	if e == nil {
		return
	}
	e.refused()
	t.refusedNow++
	t.giveBack(e, 1)
	if t.measured {
		record(t.latency.refused, t.nowNs-e.sentNs)
	}
}

func (t *Tally) giveBack(e *entry, refusals int32) {
	if t.credit[e.owner] == 0 {
		t.creditors = append(t.creditors, e.owner)
	}
	t.credit[e.owner]++
	t.refusals[e.owner] += refusals
}

// Given notes a delivery and returns the number of the task. ok is false when
// the payload holds none that was posted.
func (t *Tally) Given(id wire.TaskID, payload []byte) (n uint64, ok bool) {
	n, known, intact, scratch := numberOf(payload, t.scratch)
	t.scratch = scratch
	e := t.run.ledger.find(n)
	if !known || e == nil {
		t.run.ledger.strangers.Add(1)
		return 0, false
	}
	e.given(id, intact && len(payload) == t.run.PayloadBytes)
	if t.measured {
		record(t.latency.given, t.nowNs-e.sentNs)
	}
	return n, true
}

// Completed notes that the result of a task was acknowledged.
func (t *Tally) Completed(n uint64) {
	e := t.run.ledger.find(n)
	if e == nil {
		t.run.ledger.strangers.Add(1)
		return
	}
	e.completed()
	t.completedNow++
	if t.measured {
		record(t.latency.completed, t.nowNs-e.sentNs)
	}
}

// End is called behind what came together. It wakes the producers whose
// answers were in it, each once.
func (t *Tally) End() {
	move(&t.run.acked, &t.ackedNow)
	move(&t.run.refused, &t.refusedNow)
	move(&t.run.completed, &t.completedNow)
	for _, owner := range t.creditors {
		t.run.producers[owner].give(t.credit[owner], t.refusals[owner])
		t.credit[owner], t.refusals[owner] = 0, 0
	}
	t.creditors = t.creditors[:0]
}

func move(total *atomic.Int64, now *int64) {
	if *now != 0 {
		total.Add(*now)
		*now = 0
	}
}
