package store

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"codeq/internal/meter"
	"codeq/record"
	"codeq/wire"
)

// view reads the committed part of one span, from the database itself or
// from a snapshot of it. It is a value for one goroutine.
type view struct {
	reader pebble.Reader
	prefix []byte
	// span has the numbers of the queues, nil where no key of a queue is read; newest
	// says that the view reads all that has been applied.
	span   *Span
	newest bool
	// overlay has what the open batch of the span says of tasks; nil for other readers.
	overlay *overlay
	key     []byte
	// steps counts what scans go over; nil where nobody asks.
	steps *meter.Counter
}

// viewOf reads the span of a shard.
func (s *Store) viewOf(reader pebble.Reader, shard int) view {
	return view{reader: reader, prefix: record.AppendSpan(nil, shard), span: s.spans[shard], steps: s.figures.scanSteps}
}

// done closes an iterator and counts the keys that it went over.
func (v *view) done(it *pebble.Iterator) error {
	if v.steps != nil {
		stats := it.Stats()
		v.steps.Add(stats.ForwardStepCount[pebble.InternalIterCall] + stats.ReverseStepCount[pebble.InternalIterCall])
	}
	if err := it.Close(); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	return nil
}

// DamagedError is a value that cannot be decoded. It names the key, never
// what was in it.
type DamagedError struct {
	Key []byte
	Err error
}

// Error names the key in a printable form.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("read %s: %v", record.NameForLog(e.Key, record.QueueKey{}), e.Err)
}

// Unwrap is what the decoder said.
func (e *DamagedError) Unwrap() error { return e.Err }

// errMissing is a value that should be there.
var errMissing = errors.New("missing value")

func isDamaged(err error) bool {
	var damaged *DamagedError
	return errors.As(err, &damaged)
}

func (v *view) start() []byte { return append(v.key[:0], v.prefix...) }

// get hands the value of a key to decode, which must not keep it, and reports whether a
// readable value is there. Afterwards v.key is that key.
func (v *view) get(key []byte, decode func(value []byte) error) (found bool, err error) {
	v.key = key
	value, closer, err := v.reader.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get %s: %w", record.NameForLog(key, record.QueueKey{}), err)
	}
	decodeErr := decode(value)
	if err := closer.Close(); err != nil {
		return false, fmt.Errorf("release %s: %w", record.NameForLog(key, record.QueueKey{}), err)
	}
	if decodeErr != nil {
		return false, &DamagedError{Key: append([]byte(nil), key...), Err: decodeErr}
	}
	return true, nil
}

// at says where an error of the database was met, nil for none.
func (v *view) at(key []byte, err error) error {
	if err != nil {
		err = fmt.Errorf("scan at %s: %w", record.NameForLog(key, record.QueueKey{}), err)
	}
	return err
}

// value is get for what is kept of a task. What the open batch says comes first.
func (v *view) value(f record.Family, id wire.TaskID, decode func(value []byte) error) (found bool, err error) {
	if v.overlay != nil {
		if value, state := v.overlay.value(f, id); state != untouched {
			if state == deleted {
				return false, nil
			}
			return true, decode(value)
		}
	}
	return v.get(record.AppendIDKey(v.start(), f, id), decode)
}

func (v *view) task(id wire.TaskID) (*record.Task, error) {
	if v.overlay != nil {
		if r, state := v.overlay.record(id); state != untouched {
			return r, nil
		}
	}
	var r record.Task
	found, err := v.get(record.AppendIDKey(v.start(), record.FamilyTask, id), func(value []byte) error {
		return record.ParseTask(id, value, &r)
	})
	if !found {
		return nil, err
	}
	return &r, nil
}

func (v *view) payload(id wire.TaskID) (payload []byte, err error) {
	_, err = v.value(record.FamilyPayload, id, func(value []byte) error {
		payload = append([]byte{}, value...)
		return nil
	})
	return payload, err
}

func (v *view) result(id wire.TaskID) (r *wire.ResultRecord, err error) {
	_, err = v.value(record.FamilyResult, id, func(value []byte) error {
		r, err = parseResultOf(id, value)
		return err
	})
	return r, err
}

// payloadOf is the payload of a task, nil if there is none.
func (v *view) payloadOf(r *record.Task) ([]byte, error) {
	if r.Payload != "" {
		return []byte(r.Payload), nil
	}
	return v.payload(r.ID)
}

// resultOf is the outcome of a task, nil if there is none.
func (v *view) resultOf(r *record.Task) (*wire.ResultRecord, error) {
	if r.OutcomeHere {
		return resultWithin(r), nil
	}
	return v.result(r.ID)
}

// resultWithin is the outcome that a record holds.
func resultWithin(r *record.Task) *wire.ResultRecord {
	outcome := &wire.ResultRecord{TaskID: r.ID, Status: r.Status, CompletedAtMs: r.EndedAtMs, CancelCause: r.CancelCause()}
	if r.Result != "" {
		outcome.Result = []byte(r.Result)
	}
	return outcome
}

// parseResultOf copies value first: the record keeps parts of it.
func parseResultOf(id wire.TaskID, value []byte) (*wire.ResultRecord, error) {
	r, err := wire.ParseResultRecord(append([]byte(nil), value...))
	if err != nil {
		return nil, err
	}
	if r.TaskID != id {
		return nil, record.ErrDamaged
	}
	return r, nil
}

func (v *view) history(id wire.TaskID) (lines []wire.HistoryLine, err error) {
	_, err = v.value(record.FamilyHistory, id, func(value []byte) (err error) {
		lines, err = record.ParseHistory(value)
		return err
	})
	return lines, err
}

func (v *view) lease(q record.QueueKey, id wire.TaskID) (*record.Lease, error) {
	n, err := v.number(q)
	if err != nil {
		return nil, err
	}
	var l record.Lease
	found, err := v.get(record.AppendLeaseKey(v.start(), n, id), func(value []byte) error {
		return record.ParseLease(value, &l)
	})
	if !found {
		return nil, err
	}
	return &l, nil
}

func (v *view) idempotencyKey(q record.QueueKey, key string) (id wire.TaskID, found bool, err error) {
	n, err := v.number(q)
	if err != nil {
		return id, false, err
	}
	found, err = v.get(record.AppendIdempotencyKey(v.start(), n, key), func(value []byte) error {
		return record.ParseID(value, &id)
	})
	return id, found, err
}

// scan calls each for the keys from lower (inclusive) to upper (exclusive)
// until it returns false. Keys and values are valid during the call only.
func (v *view) scan(lower, upper []byte, each func(key, value []byte) (bool, error)) (err error) {
	it, err := v.reader.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	defer func() { err = cmp.Or(err, v.done(it)) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return v.at(it.Key(), err)
		}
		goOn, err := each(it.Key(), value)
		if err != nil || !goOn {
			return err
		}
	}
	return nil
}

// seek calls each for the first key with a prefix, and then for the first of them that is not
// before the key that each returned.
func (v *view) seek(prefix []byte, each func(key []byte) (next []byte, err error)) (err error) {
	it, err := v.reader.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: record.UpperBound(prefix)})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	defer func() { err = cmp.Or(err, v.done(it)) }()
	for ok := it.First(); ok; {
		next, err := each(it.Key())
		if err != nil {
			return err
		}
		ok = it.SeekGE(next)
	}
	return nil
}

// scanPrefix scans every key that begins with prefix.
func (v *view) scanPrefix(prefix []byte, each func(key, value []byte) (bool, error)) error {
	return v.scan(prefix, record.UpperBound(prefix), each)
}
