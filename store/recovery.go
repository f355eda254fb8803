package store

import (
	"cmp"
	"fmt"
	"slices"

	"codeq/record"
	"codeq/wire"
)

// QueueState is one queue of a shard as recovery finds it.
type QueueState struct {
	Key      record.QueueKey
	Counters record.Counters
}

// LeasedTask is an in-progress task as recovery finds it.
type LeasedTask struct {
	Task  record.Task
	Lease record.Lease
}

// LimitedKey is a concurrency key for which tasks of a queue wait.
type LimitedKey struct {
	Queue record.QueueKey
	Key   string
}

// SettingsState are the settings of one queue as recovery finds them.
type SettingsState struct {
	Key      record.QueueKey
	Settings record.Settings
	// Unsaved: they were found in another shard and this one has older ones on
	// disk, or none.
	Unsaved bool
}

// NamedState is a named record as recovery finds it.
type NamedState struct {
	record.Named
	// Unsaved: the home has it so, and this shard does not on disk.
	Unsaved bool
}

// Recovered is what a shard needs to start: marks, queues and the tasks in
// progress. Everything that only waits stays in the database.
type Recovered struct {
	Marks record.Marks
	// Queues and Leased are in the order of the names of the queues.
	Queues []QueueState
	Leased []LeasedTask
	// LimitedKeys are the concurrency keys for which tasks wait, in that order and by key.
	LimitedKeys []LimitedKey
	// Settings are those of the queues that have any, in that order too.
	Settings []SettingsState
	// Named are the named records in the order of their keys, NamedDamaged those that could
	// not be read.
	Named        []NamedState
	NamedDamaged []record.NamedKey
	// Quarantined is the number of values that could not be decoded and were
	// moved under bad/.
	Quarantined int64
}

// Load reads what a shard starts from, in time proportional to its queues and
// the tasks in progress. It panics unless the open batch is empty. Values that
// cannot be decoded never stop it: they are set aside, and what follows from
// them is repaired and applied before it returns.
func (sp *Span) Load() (*Recovered, error) {
	sp.mustBeClosed()
	before := sp.store.QuarantinedTotal()
	r := &Recovered{}
	if err := sp.loadMarks(r); err != nil {
		return nil, fmt.Errorf("load marks of shard %d: %w", sp.shard, err)
	}
	queues, err := sp.loadNames()
	if err != nil {
		return nil, fmt.Errorf("load names of shard %d: %w", sp.shard, err)
	}
	if err := sp.loadQueues(r, queues); err != nil {
		return nil, fmt.Errorf("load queues of shard %d: %w", sp.shard, err)
	}
	if err := sp.loadSettings(r, queues); err != nil {
		return nil, fmt.Errorf("load settings of shard %d: %w", sp.shard, err)
	}
	if err := sp.loadNamed(r); err != nil {
		return nil, fmt.Errorf("load named records of shard %d: %w", sp.shard, err)
	}
	for i := range r.Queues {
		if err := sp.loadLeases(r, &r.Queues[i]); err != nil {
			return nil, fmt.Errorf("load leases of shard %d: %w", sp.shard, err)
		}
		if err := sp.loadLimitedKeys(r, &r.Queues[i]); err != nil {
			return nil, fmt.Errorf("load concurrency keys of shard %d: %w", sp.shard, err)
		}
	}
	r.Quarantined = sp.store.QuarantinedTotal() - before
	_, err = sp.Apply()
	sp.published.replace(r.Queues)
	return r, err
}

func (sp *Span) loadMarks(r *Recovered) error {
	key := append(sp.view.start(), byte(record.FamilyMarks))
	_, err := sp.view.get(key, func(value []byte) error { return record.ParseMarks(value, &r.Marks) })
	if !isDamaged(err) {
		return err
	}
	if err := sp.quarantineValue(key); err != nil {
		return err
	}
	if r.Marks, err = sp.recountMarks(); err != nil {
		return err
	}
	sp.marks.Queues = max(sp.marks.Queues, r.Marks.Queues)
	sp.batch.PutMarks(r.Marks)
	r.Marks = sp.marks
	return nil
}

// recountMarks finds marks that are high enough by reading every record and
// every key. Only a damaged value of the marks costs that. The number of the last
// event is in no other key; events begin at 1 again.
func (sp *Span) recountMarks() (record.Marks, error) {
	var m record.Marks
	err := sp.view.scanPrefix(sp.prefix, func(key, value []byte) (bool, error) {
		p, err := record.ParseKey(key)
		if err != nil {
			return true, nil // Check names it
		}
		m.Seq, m.Queues = max(m.Seq, p.Seq), max(m.Queues, p.Queue)
		var task record.Task
		if p.Family != record.FamilyTask || record.ParseTask(p.ID, value, &task) != nil {
			return true, nil // a damaged record is set aside when somebody needs it
		}
		m.Seq = max(m.Seq, task.Seq)
		m.TimeMs = max(m.TimeMs, task.UpdatedAtMs)
		return true, nil
	})
	return m, err
}

// loadNames reads the names of the queues, and finds those anew that cannot be read.
func (sp *Span) loadNames() (map[uint32]record.QueueKey, error) {
	queues, damaged := map[uint32]record.QueueKey{}, []uint32{}
	err := sp.view.scanFamily(record.FamilyNames, func(p *record.Key, value []byte) error {
		q, err := record.ParseNames(value)
		if err != nil {
			damaged = append(damaged, p.Queue)
			return nil
		}
		queues[p.Queue] = q
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, n := range damaged {
		if err := sp.quarantineValue(record.AppendQueue(sp.view.start(), n, record.FamilyNames)); err != nil {
			return nil, err
		}
		q, err := sp.findName(n)
		if err != nil {
			return nil, err
		}
		if _, known := sp.published.numbers[q]; q != (record.QueueKey{}) && !known {
			queues[n] = q
			sp.batch.nameQueue(q, n)
		}
	}
	return queues, nil
}

// findName is the queue of the first readable task in the orders of a number, zero if
// there is none.
func (sp *Span) findName(n uint32) (q record.QueueKey, err error) {
	for _, f := range record.Orders {
		err = sp.view.scanPrefix(record.AppendQueue(append([]byte(nil), sp.prefix...), n, f), func(key, _ []byte) (bool, error) {
			p, err := record.ParseKey(key)
			if err != nil {
				return true, nil
			}
			task, err := sp.view.task(p.ID)
			if err != nil && !isDamaged(err) {
				return false, err
			}
			if err == nil && task != nil {
				q = task.Queue()
			}
			return q == record.QueueKey{}, nil
		})
		if err != nil || q != (record.QueueKey{}) {
			return q, err
		}
	}
	return q, nil
}

// loadFamily hands the counters or the settings of the queues that have a name to take,
// and sets aside what has none or cannot be read.
func (sp *Span) loadFamily(f record.Family, queues map[uint32]record.QueueKey, take func(q record.QueueKey, value []byte) error) (damaged []record.QueueKey, err error) {
	var aside []uint32
	err = sp.view.scanFamily(f, func(p *record.Key, value []byte) error {
		q, named := queues[p.Queue]
		if named {
			sp.keeps(q, f, true)
		}
		if !named || take(q, value) != nil {
			aside = append(aside, p.Queue)
		}
		return nil
	})
	for _, n := range aside {
		if err == nil {
			err = sp.quarantineValue(record.AppendQueue(sp.view.start(), n, f))
		}
		if q, named := queues[n]; named {
			damaged = append(damaged, q)
		}
	}
	return damaged, err
}

// loadQueues loads counters, and counts those anew that cannot be read or have no bytes
// although tasks wait: an older program wrote them.
func (sp *Span) loadQueues(r *Recovered, queues map[uint32]record.QueueKey) error {
	damaged, err := sp.loadFamily(record.FamilyCounters, queues, func(q record.QueueKey, value []byte) error {
		r.Queues = append(r.Queues, QueueState{Key: q})
		return record.ParseCounters(value, &r.Queues[len(r.Queues)-1].Counters)
	})
	slices.SortFunc(r.Queues, func(a, b QueueState) int { return a.Key.Compare(b.Key) })
	for i := range r.Queues {
		state := &r.Queues[i]
		older := state.Counters.WaitingBytes == 0 && state.Counters.Waiting() > 0
		if err != nil || !older && !slices.Contains(damaged, state.Key) {
			continue
		}
		if state.Counters, err = sp.recount(state.Key); err == nil {
			sp.putCounters(state)
		}
	}
	return err
}

// loadSettings loads settings. A copy of another shard takes the place of those that
// cannot be read.
func (sp *Span) loadSettings(r *Recovered, queues map[uint32]record.QueueKey) error {
	damaged, err := sp.loadFamily(record.FamilySettings, queues, func(q record.QueueKey, value []byte) error {
		state := SettingsState{Key: q}
		if err := record.ParseSettings(value, &state.Settings); err != nil {
			return err
		}
		r.Settings = append(r.Settings, state)
		return nil
	})
	slices.SortFunc(r.Settings, func(a, b SettingsState) int { return a.Key.Compare(b.Key) })
	for _, q := range damaged {
		sp.batch.noteDropped(q, record.FamilySettings)
	}
	return err
}

// loadNamed loads named records. A copy takes the place of one that cannot be read.
func (sp *Span) loadNamed(r *Recovered) error {
	err := sp.view.scanFamily(record.FamilyNamed, func(p *record.Key, value []byte) error {
		n, err := record.ParseNamed(p.Named(), value)
		if err != nil {
			r.NamedDamaged = append(r.NamedDamaged, p.Named())
			return nil
		}
		r.Named = append(r.Named, NamedState{Named: n})
		return nil
	})
	for _, key := range r.NamedDamaged {
		err = cmp.Or(err, sp.quarantineValue(record.AppendNamedKey(sp.view.start(), key)))
	}
	return err
}

// putCounters writes counters anew; those of a queue without a task are not kept.
func (sp *Span) putCounters(state *QueueState) {
	if state.Counters.IsZero() {
		sp.batch.DeleteCounters(state.Key)
		return
	}
	sp.batch.PutCounters(state.Key, &state.Counters)
}

// loadLimitedKeys finds the concurrency keys for which tasks of a queue wait, with one seek
// for each.
func (sp *Span) loadLimitedKeys(r *Recovered, state *QueueState) error {
	if state.Counters.Limited == 0 {
		return nil
	}
	n := sp.published.numbers[state.Key].n
	family := record.AppendQueue(append([]byte(nil), sp.prefix...), n, record.FamilyLimited)
	return sp.view.seek(family, func(key []byte) ([]byte, error) {
		p, err := record.ParseKey(key)
		if err != nil {
			return append(append([]byte(nil), key...), 0), nil // Check names it
		}
		r.LimitedKeys = append(r.LimitedKeys, LimitedKey{Queue: state.Key, Key: p.Name})
		return record.UpperBound(record.AppendLimited(append([]byte(nil), sp.prefix...), n, p.Name)), nil
	})
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
	err := sp.scanLeases(state.Key, c.LeaseWatermark, int(c.InProgress), func(p *record.Key, value []byte) {
		entries = append(entries, rawLease{p.ID, append([]byte(nil), value...)})
	})
	if err != nil {
		return err
	}
	var lost lostFiles
	for _, entry := range entries {
		task, err := sp.view.task(entry.id)
		if err != nil && !isDamaged(err) {
			return err
		}
		lost.add(entry.value, task == nil)
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
	return sp.countWithout(state, lost)
}

// readableLease decodes a lease. In place of one that is damaged it writes a
// lease that has lapsed, so that the task is tried again instead of being
// lost between pending and in progress.
func (sp *Span) readableLease(q record.QueueKey, entry rawLease, task *record.Task) (*record.Lease, error) {
	var l record.Lease
	if record.ParseLease(entry.value, &l) == nil {
		return &l, nil
	}
	if err := sp.quarantineValue(record.AppendLeaseKey(sp.view.start(), sp.published.numbers[q].n, entry.id)); err != nil {
		return nil, err
	}
	l = record.Lease{Delivery: task.Deliveries + 1}
	sp.batch.PutLease(q, entry.id, &l)
	return &l, nil
}

// setLeaseAside takes a task out whose record is missing or damaged: its
// lease, whatever else is kept of it, and the idempotency keys that name it.
func (sp *Span) setLeaseAside(state *QueueState, id wire.TaskID) error {
	if err := sp.quarantineValue(record.AppendLeaseKey(sp.view.start(), sp.published.numbers[state.Key].n, id)); err != nil {
		return err
	}
	if err := sp.Quarantine(id); err != nil {
		return err
	}
	if err := sp.setKeysAside(state.Key, id); err != nil {
		return err
	}
	state.Counters.InProgress--
	sp.putCounters(state)
	return nil
}

func (sp *Span) setKeysAside(q record.QueueKey, id wire.TaskID) error {
	var keys [][]byte
	prefix := record.AppendQueue(append([]byte(nil), sp.prefix...), sp.published.numbers[q].n, record.FamilyIdempotency)
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
		if err := sp.quarantineValue(key); err != nil {
			return err
		}
	}
	return nil
}

// Quarantine moves the record, payload, result and history of a task under
// bad/, in the open batch, because its record cannot be decoded. The index
// entry that led there, and the counters, are the caller's to correct.
func (sp *Span) Quarantine(id wire.TaskID) error {
	for _, f := range record.TaskFamilies {
		if err := sp.quarantineValue(record.AppendIDKey(sp.view.start(), f, id)); err != nil {
			return err
		}
	}
	sp.batch.DeleteTask(id, record.Absent{})
	return nil
}

// quarantineValue moves one applied value under bad/, whatever it is, counts it and
// logs it. A key that is not there is none of its business.
func (sp *Span) quarantineValue(key []byte) error {
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
	b.set(append(append(b.start(), byte(record.FamilyBad)), key[len(sp.prefix):]...), value)
	b.remove(append(b.start(), key[len(sp.prefix):]...))
	sp.store.quarantinedTotal.Add(1)
	sp.store.options.Log.Error().Int("shard", sp.shard).Str("what", sp.store.nameForLog(key)).
		Int("bytes", len(value)).Msg("unreadable value set aside")
	return nil
}
