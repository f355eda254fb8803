package store

import (
	"codeq/record"
	"codeq/wire"
)

// presence says what the open batch knows about one value.
type presence int8

const (
	untouched presence = iota
	written
	deleted
)

// extent is a value inside the overlay's bytes, or the news that it is gone.
type extent struct {
	state presence
	from  int
	to    int
}

type overlayKey struct {
	family record.Family
	id     wire.TaskID
}

type idempotencyName struct {
	queue record.QueueKey
	key   string
}

// overlay holds what the open batch has written and the database cannot show
// yet. Records are kept as they are, because a task that is enqueued and
// granted in one round is read back at once; other values are kept as bytes.
// Memory is reused from round to round.
type overlay struct {
	records  []record.Task
	recordAt map[wire.TaskID]int // index into records, goneRecord once deleted
	values   map[overlayKey]extent
	keys     map[idempotencyName]idempotencyValue
	bytes    []byte
}

type idempotencyValue struct {
	state presence
	id    wire.TaskID
}

const (
	removedRecord = -1
	// maxKeptOverlayBytes bounds the memory that one large round leaves behind.
	maxKeptOverlayBytes = 4 << 20
	maxKeptRecords      = 4096
)

func newOverlay() *overlay {
	return &overlay{
		recordAt: make(map[wire.TaskID]int),
		values:   make(map[overlayKey]extent),
		keys:     make(map[idempotencyName]idempotencyValue),
	}
}

func (o *overlay) reset() {
	if cap(o.bytes) > maxKeptOverlayBytes || cap(o.records) > maxKeptRecords {
		*o = *newOverlay()
		return
	}
	clear(o.records)
	o.records = o.records[:0]
	o.bytes = o.bytes[:0]
	clear(o.recordAt)
	clear(o.values)
	clear(o.keys)
}

func (o *overlay) putRecord(r *record.Task) {
	at, known := o.recordAt[r.ID]
	if known && at != removedRecord {
		o.records[at] = *r
		return
	}
	o.recordAt[r.ID] = len(o.records)
	o.records = append(o.records, *r)
}

// record is a private copy of the open batch's version.
func (o *overlay) record(id wire.TaskID) (*record.Task, presence) {
	at, known := o.recordAt[id]
	switch {
	case !known:
		return nil, untouched
	case at == removedRecord:
		return nil, deleted
	}
	r := o.records[at]
	return &r, written
}

func (o *overlay) putValue(f record.Family, id wire.TaskID, value []byte) {
	from := len(o.bytes)
	o.bytes = append(o.bytes, value...)
	o.values[overlayKey{f, id}] = extent{state: written, from: from, to: len(o.bytes)}
}

func (o *overlay) dropValue(f record.Family, id wire.TaskID) {
	o.values[overlayKey{f, id}] = extent{state: deleted}
}

// value is valid until the next write to the overlay.
func (o *overlay) value(f record.Family, id wire.TaskID) ([]byte, presence) {
	e := o.values[overlayKey{f, id}]
	return o.bytes[e.from:e.to], e.state
}
