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

// latencies are the four times that a run measures, each from the moment when a task
// is posted.
type latencies struct {
	acked, refused, delivered, completed *hdrhistogram.Histogram
}

func newLatencies() *latencies {
	one := func() *hdrhistogram.Histogram {
		return hdrhistogram.New(minLatencyMicros, maxLatencyMicros, latencyDigits)
	}
	return &latencies{acked: one(), refused: one(), delivered: one(), completed: one()}
}

func (l *latencies) merge(other *latencies) {
	l.acked.Merge(other.acked)
	l.refused.Merge(other.refused)
	l.delivered.Merge(other.delivered)
	l.completed.Merge(other.completed)
}

func record(h *hdrhistogram.Histogram, ns int64) {
	micros := min(max((ns+500)/1000, minLatencyMicros), maxLatencyMicros)
	// It fails only outside the range that the line above keeps to.
	_ = h.RecordValue(micros)
}

// Tally counts the answers and deliveries of one connection. The goroutine that receives
// them owns it.
type Tally struct {
	run     *run
	latency *latencies
	scratch []byte
	// nowNs and measured are those of one message, see Begin.
	nowNs    int64
	measured bool
	// credit and refusals of each producer are added to it at the end of the message;
	// owners are the producers that have some.
	credit   []int32
	refusals []int32
	owners   []uint32

	ackedNow, refusedNow, completedNow int64
}

// Begin starts a message. It reads the clock once for all frames of the message.
func (t *Tally) Begin() {
	t.nowNs = t.run.nowNs()
	t.measured = t.run.measuring.Load()
}

// Acked counts the answer to a posted task.
func (t *Tally) Acked(n uint64, id wire.TaskID) {
	e := t.run.ledger.find(n)
	if e == nil {
		t.run.ledger.strangers.Add(1)
		return
	}
	e.acked(id)
	t.ackedNow++
	t.returnCredit(e, 0)
	if t.measured {
		record(t.latency.acked, t.nowNs-e.sentNs)
	}
}

// Refused counts a posted task that was not accepted. A refusal that is not retryable
// ends the run.
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
	t.returnCredit(e, 1)
	if t.measured {
		record(t.latency.refused, t.nowNs-e.sentNs)
	}
}

func (t *Tally) returnCredit(e *entry, refusals int32) {
	if t.credit[e.owner] == 0 {
		t.owners = append(t.owners, e.owner)
	}
	t.credit[e.owner]++
	t.refusals[e.owner] += refusals
}

// Delivered counts a delivery and returns the number of the task. ok is false when
// the payload holds no number that was posted.
func (t *Tally) Delivered(id wire.TaskID, payload []byte) (n uint64, ok bool) {
	n, known, intact, scratch := numberOf(payload, t.scratch)
	t.scratch = scratch
	e := t.run.ledger.find(n)
	if !known || e == nil {
		t.run.ledger.strangers.Add(1)
		return 0, false
	}
	e.delivered(id, intact && len(payload) == t.run.PayloadBytes)
	if t.measured {
		record(t.latency.delivered, t.nowNs-e.sentNs)
	}
	return n, true
}

// Completed counts an acknowledged result.
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

// End ends a message. It wakes each producer that had answers in it, once.
func (t *Tally) End() {
	move(&t.run.acked, &t.ackedNow)
	move(&t.run.refused, &t.refusedNow)
	move(&t.run.completed, &t.completedNow)
	for _, owner := range t.owners {
		t.run.producers[owner].addCredit(t.credit[owner], t.refusals[owner])
		t.credit[owner], t.refusals[owner] = 0, 0
	}
	t.owners = t.owners[:0]
}

func move(total *atomic.Int64, now *int64) {
	if *now != 0 {
		total.Add(*now)
		*now = 0
	}
}
