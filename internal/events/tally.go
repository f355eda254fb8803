package events

import (
	"math/bits"
	"unsafe"

	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// Buckets is the number of buckets of a Histogram.
const Buckets = 26

// Histogram counts times. Bucket 0 has those of 0 ms, bucket i those from 2^(i-1) ms up to
// below 2^i ms, and the last one all longer ones.
type Histogram struct {
	Buckets [Buckets]uint64
	SumMs   uint64
}

func (h *Histogram) add(ms int64) {
	ms = max(ms, 0)
	h.Buckets[min(bits.Len64(uint64(ms)), Buckets-1)]++
	h.SumMs += uint64(ms)
}

func (h *Histogram) join(o *Histogram) {
	for i, n := range o.Buckets {
		h.Buckets[i] += n
	}
	h.SumMs += o.SumMs
}

// Percentiles are the 50th and the 99th of the times in the buckets, as the longest time of
// their bucket; 0 for none.
func Percentiles(came *[Buckets]uint64) (p50, p99 int64) {
	var all, below uint64
	for _, n := range came {
		all += n
	}
	for i, n := range came {
		longest := int64(1)<<i - 1
		if below*2 < all {
			p50 = longest
		}
		if below*100 < all*99 {
			p99 = longest
		}
		below += n
	}
	return p50, p99
}

// Figures are the figures of one queue over all shards.
type Figures struct {
	// Row has the numbers of tasks. Its other figures are 0: Counts tell them, and a point of
	// the history has those of its step.
	Row wire.Figures
	Counts
}

// Counts count events since the start, or since the last hour without one.
type Counts struct {
	// Moves are the events by cause.
	Moves [record.Causes]uint64
	// Completed are results that completed their task, Buried tasks that became dead
	// letters, Retried deliveries that ended so that their task is tried again.
	Completed, Buried, Retried uint64
	// Wait is the time from ready to the grant, Run that of a delivery, Total that from
	// the enqueue to the end.
	Wait, Run, Total Histogram
}

func (c *Counts) join(o *Counts) {
	for i, n := range o.Moves {
		c.Moves[i] += n
	}
	c.Completed += o.Completed
	c.Buried += o.Buried
	c.Retried += o.Retried
	c.Wait.join(&o.Wait)
	c.Run.join(&o.Run)
	c.Total.join(&o.Total)
}

// add counts an event.
func (c *Counts) add(e *shard.Event, from, to place) {
	c.Moves[e.Cause]++
	if to == inProgress {
		c.Wait.add(e.SpentMs)
	}
	if from == inProgress {
		c.Run.add(e.SpentMs)
		if (to == pending || to == delayed || to == limited) && e.Cause != record.CauseRelease && e.Cause != record.CauseUndelivered {
			c.Retried++
		}
	}
	if to == dead {
		c.Buried++
	}
	if (to == dead || to == done) && e.Status.Terminal() {
		c.Total.add(e.TotalMs)
		if e.Status == wire.StatusCompleted {
			c.Completed++
		}
	}
}

// part is what one shard has of a queue.
type part struct {
	slot uint32
	// atS is the time of the last event in seconds.
	atS   uint32
	tasks [places]int64
	// counts is nil before the first event and after an hour without one.
	counts *Counts
}

const (
	partBytes   = int64(unsafe.Sizeof(part{}))
	countsBytes = int64(unsafe.Sizeof(Counts{}))
)

// tally counts the events of one shard by queue.
type tally struct {
	slots *slots
	// parts are by slot; nil where the shard has nothing of the queue. changed has the
	// versions of their last changes.
	parts   []*part
	changed []uint64
	// recent has the parts of queues by their numbers in events.
	recent []recent
}

type recent struct {
	queue uint32
	part  *part
}

// recentQueues is a power of two: a queue is in the place of the last bits of its number.
const recentQueues = 1024

func newTally(s *slots) tally {
	return tally{slots: s, recent: make([]recent, recentQueues)}
}

// count counts an event and returns the slot of its queue.
func (t *tally) count(e *shard.Event, from, to place, version uint64) uint32 {
	r := &t.recent[e.Queue&(recentQueues-1)]
	if r.queue != e.Queue || r.part == nil {
		slot := t.slots.of(record.QueueKey{Command: e.Command, Tenant: e.Tenant}, e.AtMs)
		*r = recent{e.Queue, t.partOf(slot, version)}
	}
	p := r.part
	t.changed[p.slot] = version
	p.atS = uint32(e.AtMs / 1000)
	if from != nowhere {
		p.tasks[from]--
	}
	if to != nowhere {
		p.tasks[to]++
	}
	if p.counts == nil {
		p.counts = t.slots.takeCounts()
	}
	if p.counts != nil {
		p.counts.add(e, from, to)
	}
	return p.slot
}

// partOf finds or makes the part of a slot.
func (t *tally) partOf(slot uint32, version uint64) *part {
	for int(slot) >= len(t.parts) {
		t.parts, t.changed = append(t.parts, nil), append(t.changed, 0)
	}
	if t.parts[slot] == nil {
		t.parts[slot] = &part{slot: slot}
	}
	t.changed[slot] = version
	return t.parts[slot]
}

// at is the part of a slot, nil if the shard has nothing of it.
func (t *tally) at(slot uint32) *part {
	if int(slot) >= len(t.parts) {
		return nil
	}
	return t.parts[slot]
}

// forget drops the counts of a slot, and the whole part if it ends.
func (t *tally) forget(slot uint32, ends bool, version uint64) {
	p := t.at(slot)
	if p == nil {
		return
	}
	if p.counts != nil {
		p.counts, t.changed[slot] = nil, version
		t.slots.giveCounts()
	}
	if ends {
		t.parts[slot], t.changed[slot] = nil, version
		clear(t.recent)
	}
}

// addTo adds the figures of a slot.
func (t *tally) addTo(slot uint32, f *Figures) {
	p := t.at(slot)
	if p == nil {
		return
	}
	f.Row[wire.FigureReady] += p.tasks[pending]
	f.Row[wire.FigureDelayed] += p.tasks[delayed]
	f.Row[wire.FigureInProgress] += p.tasks[inProgress]
	f.Row[wire.FigureDead] += p.tasks[dead]
	f.Row[wire.FigureDone] += p.tasks[done]
	f.Row[wire.FigureLimited] += p.tasks[limited]
	if p.counts != nil {
		f.Counts.join(p.counts)
	}
}
