package store

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
	"codeq/wire"
)

// walk goes through one order of a queue in all shards at once, from the places of a
// query to its bounds, and visits the entries that its filter takes. Lists, bulk work and
// the reasons of dead letters are such walks.
//
// It looks at entries in chunks, and reads the records of a chunk in the order of their
// ids, in which they lie: most of them are then beside the one before. One goroutine.
type walk struct {
	query *ListQuery
	part  *ListPart
	// back walks from the last entry to the first.
	back bool
	// untilMs is the UntilMs of a search, and after every time in a list.
	untilMs int64
	// records says that visit needs the record of an entry.
	records bool
	// visit gets the entries in order, and returns how many bytes of the answer they take.
	visit func(e *entry) (bytes int, err error)

	orders []*order
	// chunk are the entries that are looked at now, before the places before them, ends
	// the bytes of the places behind each.
	chunk  []entry
	before []ListPlace
	ends   []byte
	// record is the last one that was read, unless visit gets it.
	record record.Task
	// visited are the entries that were visited, bytes what visit made of them, looked the
	// bytes of the payloads that the filter was held against.
	visited, bytes, looked int
}

// entry is an entry of an order that is looked at.
type entry struct {
	order    *order
	key      record.TimedKey
	priority int
	cause    wire.DeadCause
	wanted   bool
	end      ListPlace
	record   *record.Task
}

// A chunk has at most firstChunk entries, and later ones mostChunk: ids of one millisecond
// are in no order, so it is more than what is posted in a few. The payloads of the entries
// so far bound it as well.
const firstChunk, mostChunk = 512, 4096

// idTimeBits are those of an id behind the milliseconds of when it was drawn, in its
// first eight bytes.
const idTimeBits = 16

// walk walks over one snapshot. The error is ErrListPlace for a query with a wrong place.
func (s *Store) walk(w *walk) error {
	q := w.query
	if q.After != nil && len(q.After) != s.shards {
		return ErrListPlace
	}
	return s.atOneMoment(func(snapshot *pebble.Snapshot) (err error) {
		defer func() {
			for _, o := range w.orders {
				err = cmp.Or(err, o.close())
			}
		}()
		for shard := range s.shards {
			o := &order{view: s.viewOf(snapshot, shard), back: w.back}
			w.orders = append(w.orders, o)
			if q.After != nil {
				o.place = slices.Clone(q.After[shard])
			}
			if err := o.begin(q); err != nil {
				return err
			}
		}
		return w.run()
	})
}

func (w *walk) run() error {
	for w.part.Places == nil {
		room := w.room()
		if room <= 0 {
			if w.first() != nil {
				w.part.Places = w.places()
			}
			return nil
		}
		if err := w.gather(room); err != nil || len(w.chunk) == 0 {
			return err
		}
		if err := w.judge(); err != nil {
			return err
		}
		if err := w.visitChunk(); err != nil {
			return err
		}
	}
	return nil
}

// room is the length of the next chunk, 0 when the walk has come to a bound.
func (w *walk) room() int {
	q, read := w.query, w.part.Read
	left := q.Limit - w.visited
	if left <= 0 || w.full(w.looked) || w.full(w.bytes) {
		return 0
	}
	room := min(firstChunk, q.MostRead-read)
	switch {
	case !w.filtersRecords():
		return min(room, left)
	case read == 0:
		return room
	}
	room = min(mostChunk, q.MostRead-read)
	if each := w.looked / read; q.MostBytes > 0 && each > 0 {
		room = min(room, (q.MostBytes-w.looked)/each+1)
	}
	return room
}

func (w *walk) full(bytes int) bool { return w.query.MostBytes > 0 && bytes >= w.query.MostBytes }

// first is the shard whose next entry comes first, nil behind the last one that may be
// wanted.
func (w *walk) first() (first *order) {
	for _, o := range w.orders {
		if o.ok && (first == nil || w.compare(&o.key, &first.key) < 0) {
			first = o
		}
	}
	if first != nil && w.query.State.ended() && !w.back && first.key.AtMs > w.untilMs {
		return nil
	}
	return first
}

// compare orders entries of different shards. Sequences of different shards
// cannot be compared, so ids decide there.
func (w *walk) compare(a, b *record.Key) int {
	c := cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.AtMs, b.AtMs), bytes.Compare(a.ID[:], b.ID[:]))
	if w.back {
		return -c
	}
	return c
}

// places are behind what the walk has looked at.
func (w *walk) places() []ListPlace {
	places := make([]ListPlace, len(w.orders))
	for i, o := range w.orders {
		places[i] = slices.Clone(o.place)
	}
	return places
}

// gather takes the next entries, and notes of each whether it may be wanted.
func (w *walk) gather(room int) error {
	w.chunk, w.ends, w.before = w.chunk[:0], w.ends[:0], w.places()
	for range room {
		o := w.first()
		if o == nil {
			return nil
		}
		w.ends = append(w.ends, o.end...)
		e := entry{
			order: o, key: record.TimedKey{AtMs: o.key.AtMs, ID: o.key.ID}, priority: o.key.Priority, cause: o.cause,
			end: w.ends[len(w.ends)-len(o.end):],
		}
		e.wanted = w.mayBe(&e)
		w.chunk = append(w.chunk, e)
		w.part.Read++
		if err := o.next(); err != nil {
			return err
		}
	}
	return nil
}

// mayBe judges an entry without its record.
func (w *walk) mayBe(e *entry) bool {
	q, atMs := w.query, e.key.AtMs
	if !q.State.ended() {
		atMs = int64(record.RankOf(e.key.ID) >> idTimeBits)
	}
	switch {
	case atMs > w.untilMs, q.Filter.Causes != 0 && q.State != ListDead, !q.Filter.Causes.Has(e.cause):
		return false
	case !q.State.ready():
		return true
	}
	return (q.NotPriority == nil || *q.NotPriority != e.priority) && (!q.Filter.OnlyPriority || q.Filter.Priority == e.priority)
}

// filtersRecords reports whether the query asks for more than what the entries say.
func (w *walk) filtersRecords() bool {
	rest := w.query.Filter
	rest.Causes = 0
	if w.query.State.ready() {
		rest.OnlyPriority, rest.Priority = false, 0
	}
	return rest != ListFilter{} || w.query.NotPriority != nil && !w.query.State.ready()
}

// judge reads the records of the chunk, if they are needed, and leaves those wanted that
// the query takes. One that cannot be read is not.
func (w *walk) judge() error {
	if !w.records && !w.filtersRecords() {
		return nil
	}
	byID := make([]*entry, 0, len(w.chunk))
	for i := range w.chunk {
		if e := &w.chunk[i]; e.wanted {
			byID = append(byID, e)
		}
	}
	slices.SortFunc(byID, func(a, b *entry) int { return bytes.Compare(a.key.ID[:], b.key.ID[:]) })
	for _, e := range byID {
		var err error
		if e.wanted, err = w.isWanted(e); err != nil && !isDamaged(err) {
			return err
		}
	}
	return nil
}

func (w *walk) isWanted(e *entry) (bool, error) {
	q, view := w.query, &e.order.view
	e.record = &w.record
	if w.records {
		e.record = new(record.Task)
	}
	found, err := e.order.readRecord(e.key.ID, e.record, w.cannotHold)
	if err != nil || !found || q.NotPriority != nil && *q.NotPriority == e.record.Priority {
		return false, err
	}
	takes, err := q.Filter.takes(view, e.record, q.State)
	if err != nil || !takes || !q.Filter.AsksPayload() {
		return takes, err
	}
	w.looked += e.record.PayloadBytes
	payload, err := view.payloadOf(e.record)
	return err == nil && q.Filter.TakesPayload(payload), err
}

// cannotHold reports a record whose payload lacks a text that the filter asks for. It
// looks at the bytes alone: to take a record apart costs more, and most are not wanted.
// Where something is escaped it does not know.
func (w *walk) cannotHold(value []byte) bool {
	f := &w.query.Filter
	if !f.AsksPayload() {
		return false
	}
	payload, within := record.PayloadWithin(value)
	switch {
	case !within:
		return false
	case !bytes.Contains(payload, []byte(f.PayloadPart)):
		return true
	case bytes.IndexByte(payload, '\\') >= 0:
		return false
	}
	for i := range f.Members {
		if m := &f.Members[i]; m.Name != "" && !bytes.Contains(payload, []byte(m.Value)) {
			return true
		}
	}
	return false
}

// visitChunk visits the entries of the chunk that are wanted. The walk ends before the
// first one that the answer has no room for.
func (w *walk) visitChunk() error {
	for i := range w.chunk {
		e := &w.chunk[i]
		if !e.wanted {
			continue
		}
		if w.visited == w.query.Limit || w.full(w.bytes) {
			w.stopBefore(i)
			return nil
		}
		switch bytes, err := w.visit(e); {
		case err == nil:
			w.visited, w.bytes = w.visited+1, w.bytes+bytes
		case !isDamaged(err):
			return err
		}
	}
	return nil
}

// stopBefore ends the walk before one of the entries of the chunk.
func (w *walk) stopBefore(i int) {
	for _, e := range w.chunk[:i] {
		w.before[slices.Index(w.orders, e.order)] = e.end
	}
	w.part.Places, w.part.Read = w.before, w.part.Read-len(w.chunk[i:])
}
