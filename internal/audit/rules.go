package audit

import (
	"fmt"
	"slices"

	"codeq/record"
	"codeq/wire"
)

// judge compares what was collected of one span.
func (a *span) judge() []Finding {
	for _, t := range a.tasks {
		if t.record == nil {
			a.judgeOrphan(t)
			continue
		}
		a.judgeTask(t)
	}
	for _, q := range a.queues {
		a.judgeName(q)
		a.judgeQueue(q)
	}
	return a.findings
}

func (a *span) idKey(f record.Family, id wire.TaskID) []byte {
	return record.AppendIDKey(append([]byte(nil), a.prefix...), f, id)
}

// judgeOrphan names every key of a task that has no readable record.
func (a *span) judgeOrphan(t *facts) {
	const sentence = "there is no record of the task"
	for i := range t.entries {
		a.find(findOrphan, t.entries[i].AppendTo(nil), sentence)
	}
	for _, p := range slices.Concat(t.names, t.labels) {
		a.find(findOrphan, p.AppendTo(nil), sentence)
	}
	if t.payload != absentPayload {
		a.find(findOrphan, a.idKey(record.FamilyPayload, t.id), sentence)
	}
	if t.result != nil {
		a.find(findOrphan, a.idKey(record.FamilyResult, t.id), sentence)
	}
	if t.history {
		a.find(findOrphan, a.idKey(record.FamilyHistory, t.id), sentence)
	}
}

func (a *span) judgeTask(t *facts) {
	r := t.record
	key := a.idKey(record.FamilyTask, t.id)
	if home := wire.ShardOfTask(t.id, a.shards); home != a.shard {
		a.find(findWrongShard, key, "the id belongs to shard %d", home)
	}
	if r.Seq > a.marks.Seq {
		a.find(findMarks, key, "the sequence %d is above the shard's mark %d", r.Seq, a.marks.Seq)
	}
	a.judgePlace(t, key)
	a.judgeLease(t)
	a.judgeEnded(t, key)
	a.judgeNames(t, key)
	a.judgeLabels(t, key)
	a.judgePayload(t, key)
	a.judgeResult(t, key)
}

// judgePayload wants one payload, within the record or under a key of its own.
func (a *span) judgePayload(t *facts, key []byte) {
	switch within := t.record.Payload != ""; {
	case within && t.payload != absentPayload:
		a.find(findPayload, key, "the payload is within the record and has a key of its own")
	case within:
	case t.payload == absentPayload:
		a.find(findPayload, key, "the payload is missing")
	case t.payload != t.record.PayloadBytes:
		a.find(findPayload, key, "the payload has %d bytes, the record says %d", t.payload, t.record.PayloadBytes)
	}
}

// judgeResult wants one result of an ended task and none of another, within the
// record or under a key of its own.
func (a *span) judgeResult(t *facts, key []byte) {
	r := t.record
	switch within := r.OutcomeHere; {
	case within && t.result != nil:
		a.find(findResult, key, "the result is within the record and has a key of its own")
	case within && !r.Status.Terminal():
		a.find(findResult, key, "the task is %s and has a result", r.Status)
	case within:
	case t.result == nil && r.Status.Terminal():
		a.find(findResult, key, "the task is %s and has no result", r.Status)
	case t.result != nil && t.result.Status != r.Status:
		a.find(findResult, key, "the task is %s, its result says %s", r.Status, t.result.Status)
	}
}

// judgePlace wants exactly the one entry that the record (or a lease) says.
func (a *span) judgePlace(t *facts, key []byte) {
	r := t.record
	queue := a.numberOf[r.Queue()]
	want := record.Key{Shard: a.shard, Queue: queue, ID: t.id}
	terminal := false
	switch r.Location {
	case wire.LocationPending, wire.LocationInProgress:
		want.Family, want.Priority, want.Seq = record.FamilyPending, r.Priority, r.Seq
		if r.Location == wire.LocationInProgress || t.hasLease() {
			want.Family, want.Priority, want.Seq = record.FamilyInProgress, 0, 0
		}
	case wire.LocationLimited:
		want.Family, want.Name, want.Priority, want.Seq = record.FamilyLimited, r.ConcurrencyKey, r.Priority, r.Seq
	case wire.LocationDelayed:
		want.Family, want.AtMs = record.FamilyDelayed, r.DueAtMs
	case wire.LocationDead:
		want.Family, want.AtMs, terminal = record.FamilyDead, r.EndedAtMs, true
	case wire.LocationNone:
		want.Family, want.AtMs, terminal = record.FamilyDone, r.EndedAtMs, true
	default:
		a.find(findPlace, key, "the location %q is unknown", r.Location)
		return
	}
	if r.Status.Terminal() != terminal {
		a.find(findStatus, key, "the status %q does not go with the location %q", r.Status, r.Location)
	}
	found := false
	expiring := want
	if expires := !terminal && want.Family != record.FamilyInProgress && r.ExpiresAtMs != 0; expires {
		expiring = record.Key{Shard: a.shard, Queue: queue, ID: t.id, Family: record.FamilyExpiring, AtMs: r.ExpiresAtMs}
		if !slices.Contains(t.entries, expiring) {
			a.find(findPlace, key, "the task waits and expires, but its entry for that is missing")
		}
	}
	for i := range t.entries {
		if t.entries[i] == want {
			found = true
			continue
		}
		if t.entries[i] == expiring {
			continue
		}
		a.find(findPlace, t.entries[i].AppendTo(nil), "the record says %q in another place", r.Location)
	}
	if !found {
		a.find(findPlace, key, "the location is %q, but the %s is missing", r.Location, want.Family)
	}
}

func (t *facts) hasLease() bool {
	for i := range t.entries {
		if t.entries[i].Family == record.FamilyInProgress {
			return true
		}
	}
	return false
}

func (a *span) judgeLease(t *facts) {
	l, r := t.lease, t.record
	if l == nil {
		return
	}
	key := record.AppendLeaseKey(append([]byte(nil), a.prefix...), a.numberOf[r.Queue()], t.id)
	if l.Delivery < 1 || l.Delivery < r.Deliveries {
		a.find(findLease, key, "the lease is of delivery %d, the record has seen %d", l.Delivery, r.Deliveries)
	}
	if l.DeadlineMs < l.GrantedAtMs {
		a.find(findLease, key, "the lease ends at %d, before it was granted at %d", l.DeadlineMs, l.GrantedAtMs)
	}
}

// judgeEnded wants an entry that says of a task what is true: it is removed by
// that.
func (a *span) judgeEnded(t *facts, key []byte) {
	e, r := t.ended, t.record
	if e == (record.Ended{}) {
		return
	}
	if e.Status != r.Status || e.Deliveries != r.Deliveries || e.HasKey != (r.IdempotencyKey != "") || e.Labelled != (r.Labels != "") ||
		e.HasFiles != (r.Files.Begun > 0) {
		a.find(findEnded, key, "the task is %s after %d deliveries, its ended entry says %s after %d, or is wrong about the idempotency key or labels",
			r.Status, r.Deliveries, e.Status, e.Deliveries)
	}
	if e.Cause != r.DeadCause {
		a.find(findEnded, key, "the task is dead because of %q, its ended entry says %q", r.DeadCause, e.Cause)
	}
	if e.Absent.History && t.history {
		a.find(findEnded, key, "the task has a history, its ended entry says that it has none")
	}
	if e.Absent.Payload != r.Whole() {
		a.find(findEnded, key, "its ended entry is wrong about where payload and result are")
	}
}

// judgeNames wants the idempotency key of the record, and no other.
func (a *span) judgeNames(t *facts, key []byte) {
	r := t.record
	found := false
	for i := range t.names {
		n := &t.names[i]
		if n.Name == r.IdempotencyKey && n.Queue == a.numberOf[r.Queue()] {
			found = true
			continue
		}
		a.find(findIdempotency, n.AppendTo(nil), "it points to task %v, which does not carry that key", t.id)
	}
	if r.IdempotencyKey != "" && !found {
		a.find(findIdempotency, key, "the key of the task does not point to it")
	}
}

// judgeLabels wants a key for each label of the record, and no other.
func (a *span) judgeLabels(t *facts, key []byte) {
	r, found := t.record, 0
	for i := range t.labels {
		p := &t.labels[i]
		if p.Tenant != r.Tenant || p.Queue != a.numberOf[r.Queue()] || !r.Labels.Have(wire.Labels(p.Name)) {
			a.find(findLabels, p.AppendTo(nil), "it points to task %v, which does not carry that label", t.id)
			continue
		}
		found++
	}
	if want := len(r.Labels.List()); found != want {
		a.find(findLabels, key, "the task has %d labels, and %d of them point to it", want, found)
	}
}

// judgeName wants one name for each number of which there are keys, and keys of each
// number that has a name.
func (a *span) judgeName(q *queueFacts) {
	key := a.queueKey(q, record.FamilyNames)
	switch {
	case !q.named:
		a.find(findNames, key, "there are keys of the queue with this number, and nothing says what its name is")
	case q.stored == nil && q.settings == nil && !a.unreadable[string(a.queueKey(q, record.FamilyCounters))]:
		a.find(findNames, key, "the queue has neither counters nor settings, and its name is still there")
	}
	if q.number > a.marks.Queues {
		a.find(findMarks, key, "the number %d is above the shard's mark %d", q.number, a.marks.Queues)
	}
}

func (a *span) queueKey(q *queueFacts, f record.Family) []byte {
	return record.AppendQueue(append([]byte(nil), a.prefix...), q.number, f)
}

func (a *span) judgeQueue(q *queueFacts) {
	key := a.queueKey(q, record.FamilyCounters)
	stored := q.stored
	if stored == nil {
		if !q.counted.IsZero() {
			a.find(findCounters, key, "the queue has tasks and no counters")
		}
		return
	}
	counted := &q.counted
	for p := range record.Priorities {
		a.judgeCount(key, "ready", stored.Ready[p], counted.Ready[p])
		if counted.Ready[p] > 0 && stored.ReadyWatermark[p] > counted.ReadyWatermark[p] {
			a.find(findWatermark, key, "the watermark of priority %d is %d, the first key %d",
				p, stored.ReadyWatermark[p], counted.ReadyWatermark[p])
		}
		if stored.ReadySinceMs[p] != 0 && stored.ReadySinceMs[p] != counted.ReadySinceMs[p] {
			a.find(findSince, key, "the head of priority %d is ready since %d, the counters say %d",
				p, counted.ReadySinceMs[p], stored.ReadySinceMs[p])
		}
	}
	if !q.unweighed && stored.WaitingBytes != counted.WaitingBytes {
		a.find(findCounters, key, "the payloads of the tasks that wait have %d bytes, the counters say %d", counted.WaitingBytes, stored.WaitingBytes)
	}
	if !q.unweighed && stored.FileBytes != counted.FileBytes {
		a.find(findCounters, key, "the files of its tasks have %d bytes, the counters say %d", counted.FileBytes, stored.FileBytes)
	}
	a.judgeCount(key, "limited", stored.Limited, counted.Limited)
	a.judgeCount(key, "in progress", stored.InProgress, counted.InProgress)
	if counted.InProgress > 0 && stored.LeaseWatermark > counted.LeaseWatermark {
		a.find(findWatermark, key, "the watermark of those in progress is %d, the first is %d", stored.LeaseWatermark, counted.LeaseWatermark)
	}
	a.judgeTimed(key, "delayed", [2]int64{stored.Delayed, stored.DelayedWatermarkMs},
		[2]int64{counted.Delayed, counted.DelayedWatermarkMs})
	a.judgeTimed(key, "expiring", [2]int64{stored.Expiring, stored.ExpiringWatermarkMs},
		[2]int64{counted.Expiring, counted.ExpiringWatermarkMs})
	a.judgeTimed(key, "dead", [2]int64{stored.Dead, stored.DeadWatermarkMs},
		[2]int64{counted.Dead, counted.DeadWatermarkMs})
	for cause := range wire.DeadKinds {
		what := fmt.Sprintf("dead because of %q", wire.DeadCause(cause))
		a.judgeCount(key, what, stored.DeadBy[cause], counted.DeadBy[cause])
	}
	a.judgeTimed(key, "failed", [2]int64{stored.DeadBy[wire.DeadFailed], stored.FailedWatermarkMs},
		[2]int64{counted.DeadBy[wire.DeadFailed], counted.FailedWatermarkMs})
	a.judgeTimed(key, "done", [2]int64{stored.Done, stored.DoneWatermarkMs},
		[2]int64{counted.Done, counted.DoneWatermarkMs})
}

func (a *span) judgeCount(key []byte, what string, stored, counted int64) {
	if stored != counted {
		a.find(findCounters, key, "%d tasks are %s, the counters say %d", counted, what, stored)
	}
}

// judgeTimed compares count and watermark of an order by time.
func (a *span) judgeTimed(key []byte, what string, stored, counted [2]int64) {
	a.judgeCount(key, what, stored[0], counted[0])
	if counted[0] > 0 && stored[1] > counted[1] {
		a.find(findWatermark, key, "the watermark of %s is %d, the first key %d", what, stored[1], counted[1])
	}
}
