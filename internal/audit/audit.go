package audit

import (
	"fmt"
	"slices"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// Finding is one broken rule that Check found.
type Finding struct {
	// Shard is -1 for a key outside every span.
	Shard int
	// Kind is a short word for the rule, Key the key it was found at.
	Kind string
	Key  []byte
	// Queue is the queue of the key, zero if it has none or nobody knows its name.
	Queue record.QueueKey
	// Sentence says what was expected and what is there. It may be logged.
	Sentence string
}

// String is the finding on one line.
func (f Finding) String() string {
	return fmt.Sprintf("shard %d: %s: %s: %s", f.Shard, f.Kind, record.NameForLog(f.Key, f.Queue), f.Sentence)
}

// The kinds of findings.
const (
	findUnknownKey  = "unknown-key"
	findDamaged     = "damaged-value"
	findWrongShard  = "wrong-shard"
	findOrphan      = "no-record"
	findPlace       = "wrong-place"
	findStatus      = "wrong-status"
	findLease       = "wrong-lease"
	findPayload     = "wrong-payload"
	findResult      = "wrong-result"
	findEnded       = "wrong-ended-entry"
	findIdempotency = "wrong-idempotency-key"
	findCounters    = "wrong-counters"
	findWatermark   = "wrong-watermark"
	findSince       = "wrong-ready-since"
	findMarks       = "wrong-marks"
	findSettings    = "wrong-settings"
	findNames       = "wrong-name"
	findLabels      = "wrong-label"
	findNamed       = "wrong-named-record"
)

// Check reads every key of the database in one snapshot and compares records,
// index entries, leases, counters, watermarks, payloads, results, idempotency
// keys, labels, names and marks with one another. A healthy database gives no finding,
// whenever it is asked. Its memory grows with the number of tasks. Any goroutine.
func Check(s *store.Store) ([]Finding, error) {
	spans, findings, err := collect(s)
	if err != nil {
		return nil, err
	}
	for _, a := range spans {
		a.judgeSettings(spans)
		a.judgeNamed(spans)
		a.judgePlacement(spans)
		findings = append(findings, a.judge()...)
	}
	return findings, nil
}

// collect reads the whole database. The findings are those of keys that belong
// to no shard.
func collect(s *store.Store) (spans []*span, findings []Finding, err error) {
	spans = make([]*span, s.Shards())
	for shard := range spans {
		spans[shard] = newSpan(shard, s.Shards())
	}
	err = s.EachKey(func(key, value []byte) {
		p, err := record.ParseKey(key)
		outside := func(kind, sentence string) {
			findings = append(findings, Finding{Shard: -1, Kind: kind, Key: slices.Clone(key), Sentence: sentence})
		}
		switch {
		case string(key) == record.CreationKey:
			if !s.IsCreation(value) {
				outside(findDamaged, fmt.Sprintf("the creation id does not belong to a database of %d shards", s.Shards()))
			}
		case string(key) == record.PositionKey:
		case err != nil || p.Shard >= s.Shards():
			outside(findUnknownKey, "the key belongs to no family of any shard")
		default:
			spans[p.Shard].take(&p, key, value)
		}
	})
	for _, a := range spans {
		slices.SortFunc(a.records, func(x, y record.Named) int { return x.Compare(y.NamedKey) })
		a.weigh()
	}
	return spans, findings, err
}

// facts is everything that the keys of one span say about one task.
type facts struct {
	id      wire.TaskID
	record  *record.Task
	payload int // its length, absentPayload without one
	result  *wire.ResultRecord
	history bool
	lease   *record.Lease
	ended   record.Ended
	// entries are its keys in the orders of the queues, leases included.
	entries []record.Key
	// names are the idempotency keys that point to it, labels the keys of its labels.
	names, labels []record.Key
}

const absentPayload = -1

// queueFacts is what the keys say about one number of a queue, and what its counters
// say.
type queueFacts struct {
	number  uint32
	named   bool
	key     record.QueueKey
	counted record.Counters
	// unweighed: a task has no readable record or lease, so the bytes are not all counted.
	unweighed bool
	stored    *record.Counters
	settings  *record.Settings
}

// span collects the keys of one shard and judges them.
type span struct {
	shard    int
	shards   int
	prefix   []byte
	tasks    []*facts
	taskAt   map[wire.TaskID]*facts
	queues   []*queueFacts
	queueAt  map[uint32]*queueFacts
	numberOf map[record.QueueKey]uint32
	marks    record.Marks
	records  record.NamedList
	findings []Finding
	// unreadable are the keys of counters that could not be decoded.
	unreadable map[string]bool
}

func newSpan(shard, shards int) *span {
	return &span{
		shard:   shard,
		shards:  shards,
		prefix:  record.AppendSpan(nil, shard),
		taskAt:  make(map[wire.TaskID]*facts),
		queueAt: make(map[uint32]*queueFacts),

		numberOf: make(map[record.QueueKey]uint32),

		unreadable: make(map[string]bool),
	}
}

func (a *span) find(kind string, key []byte, format string, args ...any) {
	f := Finding{Shard: a.shard, Kind: kind, Key: append([]byte(nil), key...), Sentence: fmt.Sprintf(format, args...)}
	if p, err := record.ParseKey(key); err == nil && a.queueAt[p.Queue] != nil {
		f.Queue = a.queueAt[p.Queue].key
	}
	a.findings = append(a.findings, f)
}

func (a *span) task(id wire.TaskID) *facts {
	t := a.taskAt[id]
	if t == nil {
		t = &facts{id: id, payload: absentPayload}
		a.taskAt[id] = t
		a.tasks = append(a.tasks, t)
	}
	return t
}

func (a *span) queue(number uint32) *queueFacts {
	f := a.queueAt[number]
	if f == nil {
		f = &queueFacts{number: number}
		a.queueAt[number] = f
		a.queues = append(a.queues, f)
	}
	return f
}

// named is what the keys say about a queue, nil if it has no number.
func (a *span) named(q record.QueueKey) *queueFacts { return a.queueAt[a.numberOf[q]] }

// take collects one key and its value.
func (a *span) take(p *record.Key, key, value []byte) {
	var err error
	switch p.Family {
	case record.FamilyTask:
		var r record.Task
		if err = record.ParseTask(p.ID, value, &r); err == nil {
			a.task(p.ID).record = &r
		}
	case record.FamilyPayload:
		a.task(p.ID).payload = len(value)
	case record.FamilyResult:
		a.task(p.ID).result, err = parseResult(p.ID, value)
	case record.FamilyHistory:
		a.task(p.ID).history = true
		_, err = record.ParseHistory(value)
	case record.FamilyIdempotency:
		var id wire.TaskID
		if err = record.ParseID(value, &id); err == nil {
			a.queue(p.Queue)
			a.task(id).names = append(a.task(id).names, *p)
		}
	case record.FamilyCounters:
		var c record.Counters
		q := a.queue(p.Queue)
		if err = record.ParseCounters(value, &c); err == nil {
			q.stored = &c
		} else {
			a.unreadable[string(key)] = true
		}
	case record.FamilySettings:
		var set record.Settings
		if err = record.ParseSettings(value, &set); err == nil {
			a.queue(p.Queue).settings = &set
		}
	case record.FamilyNames:
		err = a.takeName(p, value)
	case record.FamilyMarks:
		err = record.ParseMarks(value, &a.marks)
	case record.FamilyLabels:
		a.queue(p.Queue)
		if a.task(p.ID).labels = append(a.task(p.ID).labels, *p); len(value) != 0 {
			err = record.ErrDamaged
		}
	case record.FamilyNamed:
		var n record.Named
		if n, err = record.ParseNamed(p.Named(), value); err == nil {
			a.records = append(a.records, n)
		}
	case record.FamilyBad:
	default:
		err = a.takeEntry(p, value)
	}
	if err != nil {
		a.find(findDamaged, key, "the value of %d bytes cannot be decoded", len(value))
	}
}

// takeName collects the name of a queue, of which there is one number.
func (a *span) takeName(p *record.Key, value []byte) error {
	q, err := record.ParseNames(value)
	if err != nil {
		return err
	}
	f := a.queue(p.Queue)
	f.key, f.named = q, true
	if other, is := a.numberOf[q]; is {
		a.find(findNames, p.AppendTo(nil), "the queue has the number %d too", other)
	}
	a.numberOf[q] = p.Queue
	return nil
}

// weigh counts the payloads of the tasks that wait, and files.
func (a *span) weigh() {
	for _, t := range a.tasks {
		for i := range t.entries {
			p := &t.entries[i]
			q := a.queue(p.Queue)
			switch p.Family {
			case record.FamilyExpiring:
			case record.FamilyInProgress:
				if t.lease == nil {
					q.unweighed = true
					continue
				}
				q.counted.FileBytes += t.lease.Files.Bytes
			default:
				if t.record == nil {
					q.unweighed = true
					continue
				}
				if q.counted.FileBytes += t.record.Files.Bytes; p.Family != record.FamilyDone && p.Family != record.FamilyDead {
					q.counted.WaitingBytes += int64(t.record.PayloadBytes)
				}
			}
		}
	}
}

// takeEntry collects one key of an order of a queue.
func (a *span) takeEntry(p *record.Key, value []byte) (err error) {
	a.queue(p.Queue).counted.Count(p, value)
	if p.Family == record.FamilyDone {
		return a.takeDone(p, value)
	}
	t := a.task(p.ID)
	t.entries = append(t.entries, *p)
	switch p.Family {
	case record.FamilyPending:
		_, err = record.ParseReadyAt(value)
	case record.FamilyInProgress:
		var l record.Lease
		if err = record.ParseLease(value, &l); err == nil {
			t.lease = &l
		}
	case record.FamilyDead:
		t.ended, err = record.ParseEnded(value)
	default:
		if len(value) != 0 {
			err = record.ErrDamaged
		}
	}
	return err
}

// takeDone collects a key of ended tasks: an entry of each.
func (a *span) takeDone(p *record.Key, value []byte) error {
	ended, err := record.ParseEnded(value)
	for _, id := range p.AppendTasks(nil) {
		t := a.task(id)
		t.ended = ended
		t.entries = append(t.entries, record.Key{Shard: p.Shard, Family: p.Family, Queue: p.Queue, AtMs: p.AtMs, ID: id})
	}
	return err
}

// parseResult reads the outcome of a task.
func parseResult(id wire.TaskID, value []byte) (*wire.ResultRecord, error) {
	r, err := wire.ParseResultRecord(slices.Clone(value))
	if err == nil && r.TaskID != id {
		err = record.ErrDamaged
	}
	return r, err
}
