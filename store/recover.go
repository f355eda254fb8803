package store

import (
	"fmt"

	"codeq/wire"
)

// QueueState is one queue of a shard as recovery finds it.
type QueueState struct {
	Key      QueueKey
	Counters Counters
}

// Recovered is what a shard needs to start: marks, queues and the tasks in
// progress. Everything that only waits stays in the database.
type Recovered struct {
	Marks Marks
	// Queues and Leased are in the order of their keys.
	Queues []QueueState
	Leased []LeasedTask
	// Settings are those of the queues that have any, in the order of their keys.
	Settings []SettingsState
	// SetAside is the number of values that could not be decoded and were
	// moved under bad/.
	SetAside int64
}

// Load reads what a shard starts from, in time proportional to its queues and
// the tasks in progress. It panics unless the open batch is empty. Values that
// cannot be decoded never stop it: they are set aside, and what follows from
// them is repaired and applied before it returns.
func (sp *Span) Load() (*Recovered, error) {
	sp.mustBeClosed()
	before := sp.store.SetAsideTotal()
	r := &Recovered{}
	if err := sp.loadMarks(r); err != nil {
		return nil, fmt.Errorf("load marks of shard %d: %w", sp.shard, err)
	}
	if err := sp.loadQueues(r); err != nil {
		return nil, fmt.Errorf("load queues of shard %d: %w", sp.shard, err)
	}
	if err := sp.loadSettings(r); err != nil {
		return nil, fmt.Errorf("load settings of shard %d: %w", sp.shard, err)
	}
	for i := range r.Queues {
		if err := sp.loadLeases(r, &r.Queues[i]); err != nil {
			return nil, fmt.Errorf("load leases of shard %d: %w", sp.shard, err)
		}
	}
	r.SetAside = sp.store.SetAsideTotal() - before
	_, err := sp.Apply()
	sp.published.replace(r.Queues)
	return r, err
}

func (sp *Span) loadMarks(r *Recovered) error {
	key := append(sp.view.start(), wordMarks...)
	_, err := sp.view.get(key, func(value []byte) error { return parseMarks(value, &r.Marks) })
	if !isDamaged(err) {
		return err
	}
	if err := sp.setAside(key); err != nil {
		return err
	}
	if r.Marks, err = sp.recountMarks(); err != nil {
		return err
	}
	sp.batch.PutMarks(r.Marks)
	return nil
}

// recountMarks finds marks that are high enough by reading every record and
// every pending key. Only a damaged value of the marks costs that. The number
// of the last event is in no other key; events begin at 1 again.
func (sp *Span) recountMarks() (Marks, error) {
	var m Marks
	err := sp.view.scanPrefix(sp.prefix, func(key, value []byte) (bool, error) {
		p, err := parseKey(key)
		if err != nil {
			return true, nil // Check names it
		}
		m.Seq = max(m.Seq, p.Seq)
		var task TaskRecord
		if p.Family != familyTask || parseTaskRecord(value, &task) != nil {
			return true, nil // a damaged record is set aside when somebody needs it
		}
		m.Seq = max(m.Seq, task.Seq)
		m.TimeMs = max(m.TimeMs, task.UpdatedAtMs)
		return true, nil
	})
	return m, err
}

func (sp *Span) loadQueues(r *Recovered) error {
	var damaged [][]byte
	prefix := append(sp.view.start(), wordCounters...)
	err := sp.view.scanPrefix(prefix, func(key, value []byte) (bool, error) {
		p, err := parseKey(key)
		if err != nil {
			damaged = append(damaged, append([]byte(nil), key...))
			return true, nil
		}
		state := QueueState{Key: p.Queue}
		if parseCounters(value, &state.Counters) != nil {
			damaged = append(damaged, append([]byte(nil), key...))
		}
		r.Queues = append(r.Queues, state)
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, key := range damaged {
		if err := sp.repairCounters(r, key); err != nil {
			return err
		}
	}
	return nil
}

// repairCounters counts one queue anew whose figures are damaged.
func (sp *Span) repairCounters(r *Recovered, key []byte) error {
	if err := sp.setAside(key); err != nil {
		return err
	}
	p, err := parseKey(key)
	if err != nil {
		return nil // no queue has such a key
	}
	for i := range r.Queues {
		state := &r.Queues[i]
		if state.Key != p.Queue {
			continue
		}
		if state.Counters, err = sp.recount(p.Queue); err != nil {
			return err
		}
		sp.batch.PutCounters(state.Key, &state.Counters)
	}
	return nil
}

// recount counts the keys of one queue.
func (sp *Span) recount(q QueueKey) (Counters, error) {
	var c Counters
	prefix := appendNames(append(sp.view.start(), wordQueue...), q)
	err := sp.view.scanPrefix(prefix, func(key, value []byte) (bool, error) {
		if p, err := parseKey(key); err == nil {
			c.count(&p, value)
		}
		return true, nil
	})
	return c, err
}

// count adds one entry of the queue's orders. Keys come in order, so the first
// of each kind is its floor.
func (c *Counters) count(p *parsedKey, value []byte) {
	switch p.Family {
	case familyPending:
		if c.Ready[p.Priority] == 0 {
			c.ReadyFloor[p.Priority] = p.Seq
			// Of a damaged one the time stays unknown.
			c.ReadySinceMs[p.Priority], _ = parseReadyAt(value)
		}
		c.Ready[p.Priority]++
	case familyInProgress:
		if c.InProgress == 0 {
			c.LeaseFloor = RankOf(p.ID)
		}
		c.InProgress++
	case familyDelayed:
		countTimed(&c.Delayed, &c.DelayedFloorMs, p.AtMs)
	case familyExpiring:
		countTimed(&c.Expiring, &c.ExpiringFloorMs, p.AtMs)
	case familyDead:
		countTimed(&c.Dead, &c.DeadFloorMs, p.AtMs)
		ended, _ := parseEnded(value) // Check names one that is damaged
		if ended.Cause == wire.DeadFailed {
			countTimed(&c.DeadBy[wire.DeadFailed], &c.FailedFloorMs, p.AtMs)
		} else {
			c.DeadBy[ended.Cause]++
		}
	case familyDone:
		countTimed(&c.Done, &c.DoneFloorMs, p.AtMs)
	}
}

func countTimed(n, floorMs *int64, atMs int64) {
	if *n == 0 {
		*floorMs = atMs
	}
	*n++
}

// rawLease is an in-progress entry before its value is decoded.
type rawLease struct {
	id    wire.TaskID
	value []byte
}

func (sp *Span) loadLeases(r *Recovered, state *QueueState) error {
	var entries []rawLease
	// As many as there are: what is behind the last one are deleted keys.
	c := &state.Counters
	err := sp.scanLeases(state.Key, c.LeaseFloor, int(c.InProgress), func(p *parsedKey, value []byte) {
		entries = append(entries, rawLease{p.ID, append([]byte(nil), value...)})
	})
	if err != nil {
		return err
	}
	for _, entry := range entries {
		task, err := sp.view.task(entry.id)
		if err != nil && !isDamaged(err) {
			return err
		}
		if task == nil {
			if err := sp.setLeaseAside(state, entry.id); err != nil {
				return err
			}
			continue
		}
		lease, err := sp.readableLease(state.Key, entry, task)
		if err != nil {
			return err
		}
		r.Leased = append(r.Leased, LeasedTask{Task: *task, Lease: *lease})
	}
	return nil
}

// readableLease decodes a lease. In place of one that is damaged it writes a
// lease that has lapsed, so that the task is tried again instead of being
// lost between pending and in progress.
func (sp *Span) readableLease(q QueueKey, entry rawLease, task *TaskRecord) (*Lease, error) {
	var l Lease
	if parseLease(entry.value, &l) == nil {
		return &l, nil
	}
	if err := sp.setAside(appendLeaseKey(sp.view.start(), q, entry.id)); err != nil {
		return nil, err
	}
	l = Lease{Delivery: task.Deliveries + 1}
	sp.batch.PutLease(q, entry.id, &l)
	return &l, nil
}

// setLeaseAside takes a task out whose record is missing or damaged: its
// lease, whatever else is kept of it, and the idempotency keys that name it.
func (sp *Span) setLeaseAside(state *QueueState, id wire.TaskID) error {
	if err := sp.setAside(appendLeaseKey(sp.view.start(), state.Key, id)); err != nil {
		return err
	}
	if err := sp.SetAside(id); err != nil {
		return err
	}
	if err := sp.setKeysAside(state.Key, id); err != nil {
		return err
	}
	state.Counters.InProgress--
	sp.batch.PutCounters(state.Key, &state.Counters)
	return nil
}

func (sp *Span) setKeysAside(q QueueKey, id wire.TaskID) error {
	var keys [][]byte
	prefix := appendKeyPrefix(sp.view.start(), q)
	err := sp.view.scanPrefix(prefix, func(key, value []byte) (bool, error) {
		if string(value) == string(id[:]) {
			keys = append(keys, append([]byte(nil), key...))
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := sp.setAside(key); err != nil {
			return err
		}
	}
	return nil
}

// SetAside moves the record, payload, result and history of a task under
// bad/, in the open batch, because its record cannot be decoded. The index
// entry that led there, and the counters, are the caller's to correct.
func (sp *Span) SetAside(id wire.TaskID) error {
	for f := range idFamilies {
		if err := sp.setAside(appendIDKey(sp.view.start(), family(f), id)); err != nil {
			return err
		}
	}
	sp.batch.DeleteTask(id)
	return nil
}

// setAside moves one applied value under bad/, whatever it is, counts it and
// logs it. A key that is not there is none of its business.
func (sp *Span) setAside(key []byte) error {
	key = append([]byte(nil), key...)
	var value []byte
	found, err := sp.view.get(key, func(v []byte) error {
		value = append([]byte(nil), v...)
		return nil
	})
	if !found {
		return err
	}
	b := sp.batch
	b.set(append(append(b.start(), wordBad...), key[len(sp.prefix):]...), value)
	b.remove(append(b.start(), key[len(sp.prefix):]...))
	sp.store.asideTotal.Add(1)
	sp.store.options.Log.Error().Int("shard", sp.shard).Str("what", nameForLog(key)).
		Int("bytes", len(value)).Msg("unreadable value set aside")
	return nil
}
