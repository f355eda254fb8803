package store

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
	"codeq/wire"
)

// FindQuery asks for tasks of a queue in one state, for whoever does something with
// each of them.
type FindQuery struct {
	Queue record.QueueKey
	State ListState
	// UntilMs, in Unix milliseconds, is the latest end of a task that has ended, and
	// the latest time at which the id of any other was drawn.
	UntilMs int64
	// After is one place for each shard, nil for the beginning.
	After  []ListPlace
	Filter ListFilter
	// NotPriority leaves out the tasks of a priority, nil none.
	NotPriority *int
	// Limit is the most tasks, MostRead the most that are looked at for them. The
	// search also stops when the payloads that it read reach MostBytes, if that is not 0.
	Limit, MostRead, MostBytes int
}

// FindPage is a part of what was asked for, the tasks with the time in their entry:
// when they ended, or are due. Places lead on to the next ones; they are nil when
// there are none.
type FindPage struct {
	Found  []record.TimedKey
	Places []ListPlace
	// Read is how many were looked at.
	Read int
}

// findTogether is how many entries are looked at together: their records are read
// in the order of their ids, in which they lie, so that most are beside the one
// before. Ids of one millisecond are in no order, so mostTogether is more than what
// is posted in a few; what the payloads of the first are like bounds it.
const findTogether, mostTogether = 512, 4096

// Find finds tasks of a queue: ended ones oldest first, others as they are listed.
// Their records are read only for a filter that needs them; a task that cannot be
// read is passed over then. The error is ErrListPlace for a query with a wrong
// place.
func (s *Store) Find(q *FindQuery) (*FindPage, error) {
	f := finder{query: q, page: &FindPage{}}
	err := s.merged(&ListQuery{Queue: q.Queue, State: q.State, After: q.After}, func(m *merge) error {
		f.merge = m
		f.records = make([]*pebble.Iterator, len(m.orders))
		err := f.run()
		for i, it := range f.records {
			if it == nil {
				continue
			}
			if closeErr := m.orders[i].view.done(it); err == nil {
				err = closeErr
			}
		}
		return err
	}, oldestFirst)
	return f.page, err
}

// finder is one search. One goroutine.
type finder struct {
	query *FindQuery
	merge *merge
	page  *FindPage
	// records is an iterator over the records of each shard, nil until it is needed.
	records []*pebble.Iterator
	// together are the entries that are looked at now.
	together []candidate
	// before are the places before them, ends has those behind each.
	before []ListPlace
	ends   []byte
	record record.Task
	bytes  int
}

// candidate is an entry of an order that may be wanted.
type candidate struct {
	shard    int
	key      record.TimedKey
	priority int
	cause    wire.DeadCause
	wanted   bool
	end      ListPlace
}

func (f *finder) run() error {
	page := f.page
	for {
		room := f.room()
		if room <= 0 {
			if f.first() != nil {
				page.Places = f.merge.places()
			}
			return nil
		}
		if err := f.gather(room); err != nil || len(f.together) == 0 {
			return err
		}
		if err := f.choose(); err != nil || page.Places != nil {
			return err
		}
	}
}

// room is how many are looked at together next, 0 when the search has had enough.
func (f *finder) room() int {
	q, read := f.query, f.page.Read
	left := q.Limit - len(f.page.Found)
	if left <= 0 || q.MostBytes > 0 && f.bytes >= q.MostBytes {
		return 0
	}
	room := min(findTogether, q.MostRead-read)
	switch {
	case !f.asksRecords():
		return min(room, left)
	case read == 0:
		return room
	}
	room = min(mostTogether, q.MostRead-read)
	if each := f.bytes / read; q.MostBytes > 0 && each > 0 {
		room = min(room, (q.MostBytes-f.bytes)/each+1)
	}
	return room
}

// first is the next entry, nil behind the last one that may be wanted.
func (f *finder) first() *order {
	o := f.merge.first()
	if o != nil && f.query.State == ListDead && o.key.AtMs > f.query.UntilMs {
		return nil
	}
	return o
}

// gather takes the next entries, and says of each whether it may be wanted.
func (f *finder) gather(room int) error {
	f.together, f.ends, f.before = f.together[:0], f.ends[:0], f.before[:0]
	for _, place := range f.merge.places() {
		f.before = append(f.before, slices.Clone(place))
	}
	for range room {
		o := f.first()
		if o == nil {
			return nil
		}
		c := candidate{
			shard: slices.Index(f.merge.orders, o), key: record.TimedKey{AtMs: o.key.AtMs, ID: o.key.ID},
			priority: o.key.Priority, cause: o.ended.Cause,
		}
		c.wanted = f.mayBe(&c)
		f.ends = append(f.ends, o.end...)
		c.end = f.ends[len(f.ends)-len(o.end):]
		f.together = append(f.together, c)
		f.page.Read++
		if err := o.next(); err != nil {
			return err
		}
	}
	return nil
}

// idTimeBits are those of an id behind the milliseconds of when it was drawn, in its
// first eight bytes.
const idTimeBits = 16

// mayBe judges an entry by itself.
func (f *finder) mayBe(c *candidate) bool {
	q := f.query
	switch q.State {
	case ListDead:
		return q.Filter.Causes.Has(c.cause)
	case ListReady:
		if q.NotPriority != nil && *q.NotPriority == c.priority || q.Filter.OnlyPriority && q.Filter.Priority != c.priority {
			return false
		}
	}
	return int64(record.RankOf(c.key.ID)>>idTimeBits) <= q.UntilMs
}

// choose judges those entries by their records that may be wanted, if it must, and
// takes those that are.
func (f *finder) choose() error {
	if f.asksRecords() {
		order := make([]*candidate, 0, len(f.together))
		for i := range f.together {
			if c := &f.together[i]; c.wanted {
				order = append(order, c)
			}
		}
		slices.SortFunc(order, func(a, b *candidate) int { return bytes.Compare(a.key.ID[:], b.key.ID[:]) })
		for _, c := range order {
			var err error
			if c.wanted, err = f.isWanted(c); err != nil && !isDamaged(err) {
				return err
			}
		}
	}
	for i := range f.together {
		c := &f.together[i]
		if !c.wanted {
			continue
		}
		if len(f.page.Found) == f.query.Limit {
			f.stopBefore(i)
			return nil
		}
		f.page.Found = append(f.page.Found, c.key)
	}
	return nil
}

// stopBefore ends the search before one of the entries that are looked at.
func (f *finder) stopBefore(i int) {
	for _, c := range f.together[:i] {
		f.before[c.shard] = c.end
	}
	f.page.Places, f.page.Read = f.before, f.page.Read-len(f.together[i:])
}

// asksRecords reports whether more is asked than what the entries say.
func (f *finder) asksRecords() bool {
	rest := f.query.Filter
	if f.query.State == ListDead {
		rest.Causes = 0
	}
	if f.query.State == ListReady {
		rest.OnlyPriority, rest.Priority = false, 0
	}
	return rest != ListFilter{} || f.query.NotPriority != nil && f.query.State != ListReady
}

func (f *finder) isWanted(c *candidate) (bool, error) {
	q, r, view := f.query, &f.record, &f.merge.orders[c.shard].view
	found, err := f.read(c, view)
	if err != nil || !found || q.NotPriority != nil && *q.NotPriority == r.Priority {
		return false, err
	}
	takes, err := q.Filter.takes(view, r, q.State)
	if err != nil || !takes || !q.Filter.AsksPayload() {
		return takes, err
	}
	f.bytes += r.PayloadBytes
	payload := []byte(r.Payload)
	if r.Payload == "" {
		payload, err = view.payload(r.ID)
	}
	return err == nil && q.Filter.TakesPayload(payload), err
}

// cannotHold reports a record whose payload lacks a text that the filter asks for, by
// a look over its bytes: to take it apart costs more, and most are not wanted. Where
// something is escaped it does not know.
func (f *finder) cannotHold(value []byte) bool {
	if !f.query.Filter.AsksPayload() {
		return false
	}
	payload, within := record.PayloadWithin(value)
	if !within || bytes.IndexByte(payload, '\\') >= 0 {
		return false
	}
	for i := range f.query.Filter.Members {
		if m := &f.query.Filter.Members[i]; m.Name != "" && !bytes.Contains(payload, []byte(m.Value)) {
			return true
		}
	}
	return false
}

// read reads a record into f.record, and reports false for one that is not wanted.
func (f *finder) read(c *candidate, view *view) (found bool, err error) {
	it := f.records[c.shard]
	if it == nil {
		prefix := append(view.start(), byte(record.FamilyTask))
		if it, err = view.reader.NewIter(&pebble.IterOptions{LowerBound: slices.Clone(prefix), UpperBound: record.UpperBound(prefix)}); err != nil {
			return false, fmt.Errorf("find: %w", err)
		}
		f.records[c.shard] = it
	}
	key := record.AppendIDKey(view.start(), record.FamilyTask, c.key.ID)
	view.key = key
	if !it.Valid() || !it.Next() || !bytes.Equal(it.Key(), key) {
		// It is not the one behind the last.
		it.SeekGE(key)
	}
	if !it.Valid() || !bytes.Equal(it.Key(), key) {
		if err := it.Error(); err != nil {
			return false, fmt.Errorf("find: %w", err)
		}
		return false, nil
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return false, fmt.Errorf("find: %w", err)
	}
	if f.cannotHold(value) {
		return false, nil
	}
	if err := record.ParseTask(c.key.ID, value, &f.record); err != nil {
		return false, &DamagedError{Key: slices.Clone(key), Err: err}
	}
	return true, nil
}
