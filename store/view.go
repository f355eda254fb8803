package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"codeq/internal/meter"
	"codeq/wire"
)

// view reads the committed part of one span, from the database itself or
// from a snapshot of it. It is a value for one goroutine.
type view struct {
	reader pebble.Reader
	prefix []byte
	key    []byte
	// steps counts what scans go over; nil where nobody asks.
	steps *meter.Counter
}

// viewOf reads the span of a shard.
func (s *Store) viewOf(reader pebble.Reader, shard int) view {
	return view{reader: reader, prefix: appendSpan(nil, shard), steps: s.figures.scanSteps}
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
func (e *DamagedError) Error() string { return fmt.Sprintf("read %s: %v", nameForLog(e.Key), e.Err) }

// Unwrap is what the decoder said.
func (e *DamagedError) Unwrap() error { return e.Err }

func isDamaged(err error) bool {
	var damaged *DamagedError
	return errors.As(err, &damaged)
}

func (v *view) start() []byte { return append(v.key[:0], v.prefix...) }

// get hands the value of v.key to decode, which must not keep it, and reports
// whether the key is there.
func (v *view) get(key []byte, decode func(value []byte) error) (found bool, err error) {
	v.key = key
	value, closer, err := v.reader.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get %s: %w", nameForLog(key), err)
	}
	decodeErr := decode(value)
	if err := closer.Close(); err != nil {
		return false, fmt.Errorf("release %s: %w", nameForLog(key), err)
	}
	if decodeErr != nil {
		return false, &DamagedError{Key: append([]byte(nil), key...), Err: decodeErr}
	}
	return true, nil
}

func (v *view) task(id wire.TaskID) (*TaskRecord, error) {
	var r TaskRecord
	found, err := v.get(appendIDKey(v.start(), familyTask, id), func(value []byte) error {
		return parseRecordOf(id, value, &r)
	})
	if !found {
		return nil, err
	}
	return &r, nil
}

// parseRecordOf reads the record of id. Every task has a command.
func parseRecordOf(id wire.TaskID, value []byte, r *TaskRecord) error {
	if err := parseTaskRecord(value, r); err != nil {
		return err
	}
	if r.Command == "" {
		return errDamaged
	}
	r.ID = id
	return nil
}

func (v *view) payload(id wire.TaskID) (payload []byte, err error) {
	found, err := v.get(appendIDKey(v.start(), familyPayload, id), func(value []byte) error {
		payload = append([]byte{}, value...)
		return nil
	})
	if !found {
		return nil, err
	}
	return payload, nil
}

func (v *view) result(id wire.TaskID) (r *wire.ResultRecord, err error) {
	found, err := v.get(appendIDKey(v.start(), familyResult, id), func(value []byte) error {
		r, err = parseResultOf(id, value)
		return err
	})
	if !found {
		return nil, err
	}
	return r, nil
}

// payloadOf is the payload of a task, nil if there is none.
func (v *view) payloadOf(r *TaskRecord) ([]byte, error) {
	if r.Payload != "" {
		return []byte(r.Payload), nil
	}
	return v.payload(r.ID)
}

// resultOf is the outcome of a task, nil if there is none.
func (v *view) resultOf(r *TaskRecord) (*wire.ResultRecord, error) {
	if r.OutcomeHere {
		return resultWithin(r), nil
	}
	return v.result(r.ID)
}

// resultWithin is the outcome that a record holds.
func resultWithin(r *TaskRecord) *wire.ResultRecord {
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
		return nil, errDamaged
	}
	return r, nil
}

func (v *view) history(id wire.TaskID) (lines []wire.HistoryLine, err error) {
	_, err = v.get(appendIDKey(v.start(), familyHistory, id), func(value []byte) (err error) {
		lines, err = parseHistory(value)
		return err
	})
	return lines, err
}

func (v *view) lease(q QueueKey, id wire.TaskID) (*Lease, error) {
	var l Lease
	found, err := v.get(appendLeaseKey(v.start(), q, id), func(value []byte) error {
		return parseLease(value, &l)
	})
	if !found {
		return nil, err
	}
	return &l, nil
}

func (v *view) idempotencyKey(q QueueKey, key string) (id wire.TaskID, found bool, err error) {
	found, err = v.get(appendIdempotencyKey(v.start(), q, key), func(value []byte) error {
		return parseRawID(value, &id)
	})
	return id, found, err
}

func parseRawID(value []byte, id *wire.TaskID) error {
	if len(value) != len(id) {
		return errDamaged
	}
	copy(id[:], value)
	return nil
}

// scan calls each for the keys from lower (inclusive) to upper (exclusive)
// until it returns false. Keys and values are valid during the call only.
func (v *view) scan(lower, upper []byte, each func(key, value []byte) (bool, error)) (err error) {
	it, err := v.reader.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	defer func() {
		if closeErr := v.done(it); err == nil {
			err = closeErr
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("scan at %s: %w", nameForLog(it.Key()), err)
		}
		goOn, err := each(it.Key(), value)
		if err != nil || !goOn {
			return err
		}
	}
	return nil
}

// scanPrefix scans every key that begins with prefix.
func (v *view) scanPrefix(prefix []byte, each func(key, value []byte) (bool, error)) error {
	return v.scan(prefix, upperBound(prefix), each)
}
