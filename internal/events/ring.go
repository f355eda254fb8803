package events

import (
	"math"
	"slices"
	"strings"
	"unsafe"

	"codeq/record"
	"codeq/shard"
	"codeq/wire"
)

// place is a location as a small number.
type place uint8

const (
	nowhere place = iota
	pending
	delayed
	inProgress
	dead
	done
	limited
	places
)

var locations = [places]wire.Location{
	"", wire.LocationPending, wire.LocationDelayed, wire.LocationInProgress, wire.LocationDead, wire.LocationNone,
	wire.LocationLimited,
}

var statuses = [...]wire.Status{
	"", wire.StatusPending, wire.StatusInProgress, wire.StatusCompleted, wire.StatusFailed, wire.StatusCancelled,
}

func placeOf(l wire.Location) place {
	switch l {
	case wire.LocationPending:
		return pending
	case wire.LocationDelayed:
		return delayed
	case wire.LocationInProgress:
		return inProgress
	case wire.LocationDead:
		return dead
	case wire.LocationNone:
		return done
	case wire.LocationLimited:
		return limited
	}
	return nowhere
}

// cell is one event in a ring. Its number is that of its place.
type cell struct {
	task     wire.TaskID
	atMs     int64
	spentMs  uint32
	slot     uint32
	worker   uint32
	delivery uint32
	attempts uint16
	from, to place
	status   uint8
	cause    record.Cause
}

// cellBytes is 48.
const cellBytes = int(unsafe.Sizeof(cell{}))

// ring has the last events of one shard.
type ring struct {
	cells []cell
	// next is where the next event goes, full says that it replaces one.
	next    int
	full    bool
	workers workers
}

func newRing(bytes int) ring {
	return ring{cells: make([]cell, max(1, bytes/cellBytes)), workers: workers{numbers: make(map[string]uint32), all: make([]worker, 1)}}
}

func (r *ring) len() int {
	if r.full {
		return len(r.cells)
	}
	return r.next
}

// add puts an event in place of the oldest one.
func (r *ring) add(e *shard.Event, slot uint32, from, to place) {
	c := &r.cells[r.next]
	if r.full {
		r.workers.release(c.worker)
	}
	c.task, c.atMs, c.spentMs = e.TaskID, e.AtMs, uint32(min(max(e.SpentMs, 0), math.MaxUint32))
	c.slot, c.worker, c.delivery, c.attempts = slot, r.workers.hold(e.Worker), uint32(e.Delivery), uint16(min(e.Attempts, math.MaxUint16))
	c.from, c.to, c.status, c.cause = from, to, uint8(slices.Index(statuses[:], e.Status)), e.Cause
	if r.next++; r.next == len(r.cells) {
		r.next, r.full = 0, true
	}
}

// read is the event that so many came after.
func (r *ring) read(after int) Record {
	i := r.next - 1 - after
	if i < 0 {
		i += len(r.cells)
	}
	c := &r.cells[i]
	return Record{
		AtMs: c.atMs, Slot: c.slot, Task: c.task, From: locations[c.from], To: locations[c.to], Status: statuses[c.status],
		Cause: c.cause, Worker: r.workers.all[c.worker].name, Delivery: int(c.delivery), Attempts: int(c.attempts), SpentMs: int64(c.spentMs),
	}
}

// oldestMs is the time of the oldest event, the end of time if there is none.
func (r *ring) oldestMs() int64 {
	if r.len() == 0 {
		return math.MaxInt64
	}
	return r.read(r.len() - 1).AtMs
}

// maxWorkers bounds the names of workers of one ring: 1 MiB with the longest names.
const maxWorkers = 4096

// workers are the names of workers in the events of one ring. Number 0 is no name.
type workers struct {
	numbers map[string]uint32
	all     []worker
	free    []uint32
	// recent has numbers that were asked for lately, each in the place of the end of its name.
	recent [recentWorkers]uint32
}

// recentWorkers is a power of two.
const recentWorkers = 64

// worker is a name, and how many events of the ring have it.
type worker struct {
	name   string
	events int
}

// hold is the number of a name, which one more event has.
func (w *workers) hold(name string) uint32 {
	if name == "" {
		return 0
	}
	recent := &w.recent[(len(name)+int(name[len(name)-1]))%recentWorkers]
	n := *recent
	if w.all[n].name != name {
		var known bool
		if n, known = w.numbers[name]; !known {
			n = w.add(name)
		}
		*recent = n
	}
	w.all[n].events++
	return n
}

func (w *workers) add(name string) (n uint32) {
	switch {
	case len(w.free) > 0:
		n, w.free = w.free[len(w.free)-1], w.free[:len(w.free)-1]
	case len(w.all) < maxWorkers:
		n, w.all = uint32(len(w.all)), append(w.all, worker{})
	default:
		return 0
	}
	w.all[n].name = strings.Clone(name) // it is part of a whole record
	w.numbers[w.all[n].name] = n
	return n
}

// release takes back what hold counted.
func (w *workers) release(n uint32) {
	k := &w.all[n]
	if k.events--; k.events == 0 && n != 0 {
		delete(w.numbers, k.name)
		*k = worker{}
		w.free = append(w.free, n)
	}
}
