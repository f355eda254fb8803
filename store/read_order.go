package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
	"codeq/wire"
)

// order is one family of a queue in one shard: a place in it and what comes
// behind.
type order struct {
	view   view
	back   bool
	ranges []keyRange
	it     *pebble.Iterator
	// records goes over the records of the shard, nil before the first is read.
	records *pebble.Iterator
	// key is the next entry, of the family or of those that wait for a concurrency key, cause that of a dead letter, end its bytes behind the prefix,
	// ok that there is one. place is the end of the last entry that was left behind, prefix
	// the length of what is before it.
	key    record.Key
	cause  wire.DeadCause
	end    []byte
	ok     bool
	place  ListPlace
	prefix int
	// together are the other entries of the moment of key, in order; ahead says that the iterator
	// stands on a key that was not read.
	together []wire.TaskID
	ahead    bool
}

// keyRange are keys from lower (inclusive) to upper (exclusive). left is how
// many there still are, -1 if that is not known: behind the last one there may
// be any number of deleted keys, which are better not walked over.
type keyRange struct {
	lower, upper []byte
	left         int64
}

// begin finds what has to be read of a queue, from its counters, and goes to the first
// entry. Watermarks keep every read away from keys that were deleted long ago.
func (o *order) begin(query *ListQuery) error {
	q, f := query.Queue, listFamilies[query.State]
	o.key.Family = f
	if f == record.FamilyPending && len(o.place) > 0 && o.place[0] > wire.MaxPriority {
		o.key.Family = record.FamilyLimited
	}
	if len(o.place) > 0 && o.key.ParsePlace(o.place) != nil {
		return ErrListPlace
	}
	start := func() []byte { return slices.Clone(o.view.prefix) }
	if f == record.FamilyLabels {
		label, _ := query.Filter.Labels.Next()
		all := record.AppendLabel(start(), q.Tenant, label)
		o.prefix = len(all)
		o.add(all, all, -1)
		return o.next()
	}
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
	all := record.AppendQueue(start(), n, f)
	o.prefix = len(all)
	switch f {
	case record.FamilyPending:
		for priority := record.Priorities - 1; priority >= 0; priority-- {
			first := record.PendingKey{Seq: c.ReadyWatermark[priority]}
			o.add(record.AppendPendingKey(start(), n, priority, first), record.AppendPriority(start(), n, priority), c.Ready[priority])
		}
		// Places of these are behind all places of the others: their first byte is that of
		// a name, which is above every priority.
		limited := record.AppendQueue(start(), n, record.FamilyLimited)
		o.add(limited, limited, c.Limited)
	case record.FamilyLimited:
		o.add(all, all, c.Limited)
	case record.FamilyInProgress:
		o.add(record.AppendLeaseWatermark(start(), n, c.LeaseWatermark), all, c.InProgress)
	default:
		count, watermarkMs := c.Timed(f)
		o.add(record.AppendTimedKey(start(), n, f, record.TimedKey{AtMs: watermarkMs}), all, count)
	}
	return o.next()
}

// add appends the range of the count keys with a prefix, -1 if nobody has counted them. Those that the place is behind
// are left out.
func (o *order) add(lower, prefix []byte, count int64) {
	r := keyRange{lower: lower, upper: record.UpperBound(prefix), left: count}
	if len(o.place) > 0 && count != 0 {
		at := append(slices.Clone(prefix[:o.prefix]), o.place...)
		if o.back {
			r.upper, r.left = at, -1
		} else if bytes.Compare(at, lower) >= 0 {
			r.lower, r.left = append(at, 0), -1
			if o.key.Family == record.FamilyDone {
				r.lower = at[:o.prefix+momentBytes] // any key of its moment may have what is behind it
			}
		}
	}
	if r.left != 0 && bytes.Compare(r.lower, r.upper) < 0 {
		o.ranges = append(o.ranges, r)
	}
}

// next leaves the entry behind and goes to the one after it.
func (o *order) next() error {
	if o.ok {
		o.place = append(o.place[:0], o.end...)
	}
	for o.ok = false; len(o.ranges) > 0; o.ranges = o.ranges[1:] {
		if r := &o.ranges[0]; r.left != 0 {
			if found, err := o.step(r); err != nil || found {
				return err
			}
		}
		if err := o.leave(); err != nil {
			return err
		}
	}
	return nil
}

// step goes to the next entry of a range.
func (o *order) step(r *keyRange) (found bool, err error) {
	if o.key.Family == record.FamilyDone {
		found, err = o.stepTogether(r)
	} else {
		found, err = o.move(r)
		if found {
			o.end = append(o.end[:0], o.it.Key()[o.prefix:]...)
		}
	}
	if !found || err != nil {
		return false, err
	}
	if r.left > 0 {
		r.left--
	}
	o.ok = true
	return true, nil
}

// momentBytes are those of the time in the place of an ended task.
const momentBytes = 8

// stepTogether is step for ended tasks: those of one moment may share keys, and come in the order
// of their ids.
func (o *order) stepTogether(r *keyRange) (found bool, err error) {
	for len(o.together) == 0 {
		if found, err := o.move(r); err != nil || !found {
			return false, err
		}
		if err := o.readMoment(r); err != nil {
			return false, err
		}
	}
	o.key.ID, o.together = o.together[0], o.together[1:]
	o.end = append(binary.BigEndian.AppendUint64(o.end[:0], uint64(o.key.AtMs)), o.key.ID[:]...)
	return true, nil
}

// readMoment reads the ids of the moment of the key, but for those that the place is behind.
func (o *order) readMoment(r *keyRange) error {
	moment := o.key.AtMs
	ids := o.key.AppendTasks(nil)
	for r.left < 0 || int64(len(ids)) < r.left {
		found, err := o.move(r)
		if err != nil {
			return err
		}
		if !found {
			break
		}
		if o.key.AtMs != moment {
			o.ahead = true
			break
		}
		ids = o.key.AppendTasks(ids)
	}
	o.key.AtMs = moment
	slices.SortFunc(ids, compareIDs)
	if o.back {
		slices.Reverse(ids)
	}
	o.together = slices.DeleteFunc(ids, o.passed)
	return nil
}

// passed says that an ended task of the moment of the key is at the place, or came before it.
func (o *order) passed(id wire.TaskID) bool {
	if len(o.place) == 0 {
		return false
	}
	key := append(binary.BigEndian.AppendUint64(nil, uint64(o.key.AtMs)), id[:]...)
	if o.back {
		return bytes.Compare(key, o.place) >= 0
	}
	return bytes.Compare(key, o.place) <= 0
}

// move moves the iterator of a range on by one, and takes its key apart.
func (o *order) move(r *keyRange) (found bool, err error) {
	switch {
	case o.ahead:
		o.ahead, found = false, true
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
	o.key.Family = record.Family(o.it.Key()[len(o.view.prefix)])
	if err := o.key.ParsePlace(o.it.Key()[o.prefix:]); err != nil {
		return false, &DamagedError{Key: slices.Clone(o.it.Key()), Err: err}
	}
	if o.key.Family != record.FamilyDead {
		return true, nil
	}
	value, err := o.it.ValueAndErr()
	if err != nil {
		return false, fmt.Errorf("list: %w", err)
	}
	ended, _ := record.ParseEnded(value) // Check names one that is damaged
	o.cause = ended.Cause
	return true, nil
}

// leave closes the iterator of a range that is done.
func (o *order) leave() error {
	if o.it == nil {
		return nil
	}
	err := errors.Join(o.it.Error(), o.view.done(o.it))
	o.it, o.ahead = nil, false
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	return nil
}

func (o *order) close() error {
	err := o.leave()
	if o.records != nil {
		err = cmp.Or(err, o.view.done(o.records))
	}
	return err
}

// readRecord reads the record of a task, unless skip knows from its bytes that it is not
// wanted. Ids that rise cost the least.
func (o *order) readRecord(id wire.TaskID, r *record.Task, skip func(value []byte) bool) (found bool, err error) {
	it := o.records
	if it == nil {
		prefix := append(slices.Clone(o.view.prefix), byte(record.FamilyTask))
		if it, err = o.view.reader.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: record.UpperBound(prefix)}); err != nil {
			return false, fmt.Errorf("list: %w", err)
		}
		o.records = it
	}
	key := record.AppendIDKey(o.view.start(), record.FamilyTask, id)
	o.view.key = key
	if !it.Valid() || !it.Next() || !bytes.Equal(it.Key(), key) {
		// It is not the one behind the last.
		it.SeekGE(key)
	}
	if !it.Valid() || !bytes.Equal(it.Key(), key) {
		if err := it.Error(); err != nil {
			return false, fmt.Errorf("list: %w", err)
		}
		return false, nil
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return false, fmt.Errorf("list: %w", err)
	}
	if skip(value) {
		return false, nil
	}
	if err := record.ParseTask(id, value, r); err != nil {
		return false, &DamagedError{Key: slices.Clone(key), Err: err}
	}
	return true, nil
}
