package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
)

// merge walks through one family of a queue in all shards at once. One
// goroutine.
type merge struct {
	state  ListState
	back   bool
	orders []*order
}

// first is the shard whose place comes first, nil at the end of all.
func (m *merge) first() (first *order) {
	for _, o := range m.orders {
		if o.ok && (first == nil || m.compare(&o.key, &first.key) < 0) {
			first = o
		}
	}
	return first
}

// compare orders places of different shards. Sequences of different shards
// cannot be compared, so ids decide there.
func (m *merge) compare(a, b *record.Key) int {
	c := cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.AtMs, b.AtMs), bytes.Compare(a.ID[:], b.ID[:]))
	if m.back {
		return -c
	}
	return c
}

// places are what a listing has looked at.
func (m *merge) places() []ListPlace {
	places := make([]ListPlace, len(m.orders))
	for i, o := range m.orders {
		places[i] = o.place
	}
	return places
}

// order is one family of a queue in one shard: a place in it and what comes
// behind. It has at most one iterator open.
type order struct {
	view   view
	back   bool
	ranges []keyRange
	it     *pebble.Iterator
	// key is the next entry, ended what one of an ended task says, ok that there is
	// one. place is the end of the last
	// entry that was left behind, prefix the length of what is before it.
	key    record.Key
	ended  record.Ended
	end    []byte
	ok     bool
	place  ListPlace
	prefix int
}

// keyRange are keys from lower (inclusive) to upper (exclusive). left is how
// many there still are, -1 if that is not known: behind the last one there may
// be any number of deleted keys, which are better not walked over.
type keyRange struct {
	lower, upper []byte
	left         int64
}

// begin finds what has to be read of a queue, from its figures, and goes to the
// first entry. Bounds keep every read away from keys that were deleted long ago.
func (o *order) begin(q record.QueueKey, f record.Family) error {
	n, err := o.view.number(q)
	if err != nil {
		return err
	}
	var c record.Counters
	if _, err := o.view.get(record.AppendQueue(o.view.start(), n, record.FamilyCounters), func(value []byte) error {
		return record.ParseCounters(value, &c)
	}); err != nil {
		return err
	}
	var after record.Key
	if len(o.place) > 0 {
		after.Family = f
		if after.ParsePlace(o.place) != nil {
			return ErrListPlace
		}
	}
	o.prefix, o.key.Family = len(record.AppendQueue(o.view.start(), n, f)), f
	if f == record.FamilyPending {
		o.beginReady(n, &c, &after)
		return o.next()
	}
	count, watermarkMs := c.Timed(f)
	if count == 0 {
		return nil
	}
	prefix := record.AppendQueue(o.view.start(), n, f)
	r := keyRange{lower: slices.Clone(prefix), upper: record.UpperBound(prefix), left: count}
	if f == record.FamilyInProgress {
		r.lower = slices.Clone(record.AppendLeaseWatermark(o.view.start(), n, c.LeaseWatermark))
	} else {
		r.lower = slices.Clone(record.AppendTimedKey(o.view.start(), n, f, record.TimedKey{AtMs: watermarkMs}))
	}
	o.cut(&r)
	o.ranges = []keyRange{r}
	return o.next()
}

// beginReady is begin for the priorities, each of which has its own watermark.
func (o *order) beginReady(n uint32, c *record.Counters, after *record.Key) {
	for priority := record.Priorities - 1; priority >= 0; priority-- {
		behind := len(o.place) > 0 && priority > after.Priority
		if c.Ready[priority] == 0 || behind {
			continue
		}
		r := keyRange{
			lower: slices.Clone(record.AppendPendingKey(o.view.start(), n, priority, record.PendingKey{Seq: c.ReadyWatermark[priority]})),
			upper: record.UpperBound(record.AppendPriority(o.view.start(), n, priority)),
			left:  c.Ready[priority],
		}
		if priority == after.Priority {
			o.cut(&r)
		}
		o.ranges = append(o.ranges, r)
	}
}

// cut leaves out what is not behind the place.
func (o *order) cut(r *keyRange) {
	if len(o.place) == 0 {
		return
	}
	r.left = -1
	key := append(slices.Clone(r.lower[:o.prefix]), o.place...)
	if o.back {
		r.upper = key
	} else if key = append(key, 0); bytes.Compare(key, r.lower) > 0 {
		r.lower = key
	}
	if bytes.Compare(r.lower, r.upper) >= 0 {
		// The watermark has advanced past the place meanwhile.
		r.left = 0
	}
}

// next leaves the entry behind and goes to the one after it.
func (o *order) next() error {
	if o.ok {
		o.place = append(o.place[:0], o.end...)
	}
	o.ok = false
	for len(o.ranges) > 0 {
		r := &o.ranges[0]
		if r.left != 0 {
			found, err := o.step(r)
			if err != nil || found {
				return err
			}
		}
		if err := o.leave(); err != nil {
			return err
		}
		o.ranges = o.ranges[1:]
	}
	return nil
}

// step moves the iterator of a range on by one.
func (o *order) step(r *keyRange) (found bool, err error) {
	switch {
	case o.it == nil:
		if o.it, err = o.view.reader.NewIter(&pebble.IterOptions{LowerBound: r.lower, UpperBound: r.upper}); err != nil {
			return false, fmt.Errorf("list: %w", err)
		}
		if o.back {
			found = o.it.Last()
		} else {
			found = o.it.First()
		}
	case o.back:
		found = o.it.Prev()
	default:
		found = o.it.Next()
	}
	if !found {
		return false, nil // leave tells an error of the iterator
	}
	// The bounds say what is before the place.
	if err := o.key.ParsePlace(o.it.Key()[o.prefix:]); err != nil {
		return false, &DamagedError{Key: slices.Clone(o.it.Key()), Err: err}
	}
	if o.key.Family == record.FamilyDead {
		value, err := o.it.ValueAndErr()
		if err != nil {
			return false, fmt.Errorf("list: %w", err)
		}
		o.ended, _ = record.ParseEnded(value) // Check names one that is damaged
	}
	if r.left > 0 {
		r.left--
	}
	o.end, o.ok = append(o.end[:0], o.it.Key()[o.prefix:]...), true
	return true, nil
}

// leave closes the iterator of a range that is done.
func (o *order) leave() error {
	if o.it == nil {
		return nil
	}
	err := errors.Join(o.it.Error(), o.view.done(o.it))
	o.it = nil
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	return nil
}
