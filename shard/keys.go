package shard

import (
	"slices"

	"codeq/internal/credit"
	"codeq/internal/heap"
	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

// A queue may have limits for each concurrency key of its tasks. A task that would become
// ready while its key is full, or while others of the key wait, goes to LIMITED: into an
// order of its key, which no grant looks at. A ready task whose key is full when its turn
// comes goes there too. What frees a key is noted, and the next round moves the first task
// of the key to ready, at its old sequence.
//
// While tasks of a key wait, one of these holds: a task of the key is in progress, or one is
// ready, or the time of its next start is planned, or the key is in freed. So it is never
// forgotten. How many are in progress follows from the leases, that tasks wait from their
// entries; nothing else of a key is stored.

// limitKey is a concurrency key of a queue, known only while tasks of it are in progress,
// while some wait, and for a moment after a start under a rate.
type limitKey struct {
	queue *queue
	name  string
	// running are the tasks of the key in progress in this shard.
	running int
	// waits: tasks of the key are in LIMITED. waiting is then the place in queue.waiting, and
	// no task of the key is before first.
	waits   bool
	waiting int
	first   record.LimitedPlace
	// free is how many of them may become ready; if not 0 the key is in Shard.freed.
	free int
	// starts are those of the key under the rate of the queue, next when it must be looked at
	// because of that.
	starts credit.Rate
	next   heap.Node[limitKey]
}

// queueKeys are the concurrency keys of a queue.
type queueKeys struct {
	keys map[string]*limitKey
	// waiting are the keys for which tasks wait.
	waiting []*limitKey
	// rateSinceMs is when the shard began to count starts.
	rateSinceMs int64
}

// shardKeys is what a shard has of the keys of all queues.
type shardKeys struct {
	// freed are keys with free, in order, keyStarts those that must be looked at at a time.
	freed     []*limitKey
	keyStarts heap.Heap[limitKey]
	// found are the tasks that this round makes ready.
	found []freedTask
	// spareKeys are keys that were forgotten, to be used again.
	spareKeys []*limitKey
}

// freedTask is the entry of a task in LIMITED.
type freedTask struct {
	queue *queue
	entry record.LimitedEntry
}

// keyOf finds or makes a key of a queue.
func (s *Shard) keyOf(q *queue, name string) *limitKey {
	k := q.keys[name]
	if k == nil {
		k = s.unusedKey()
		k.queue, k.name = q, name
		if q.keys == nil {
			q.keys = make(map[string]*limitKey)
		}
		q.keys[name] = k
	}
	return k
}

// unusedKey is one that was forgotten, or a new one.
func (s *Shard) unusedKey() *limitKey {
	last := len(s.spareKeys) - 1
	if last < 0 {
		return &limitKey{}
	}
	k := s.spareKeys[last]
	s.spareKeys = s.spareKeys[:last]
	return k
}

// forgetKey drops a key of which nothing is left to know.
func (s *Shard) forgetKey(k *limitKey) {
	if k.running != 0 || k.waits || k.free != 0 || k.next.IsIn() {
		return
	}
	delete(k.queue.keys, k.name)
	if len(s.spareKeys) < maxKeyTasks {
		*k = limitKey{}
		s.spareKeys = append(s.spareKeys, k)
	}
}

// keyOpensAtMs is when the next task of the key may start under the rate of the queue, 0 without
// a rate. The first start of a key counts from when its shard began to count.
func (q *queue) keyOpensAtMs(k *limitKey) int64 {
	perSecond := q.settings.PerKey.StartsPerSecond
	if perSecond == 0 {
		return 0
	}
	var fresh credit.Rate
	starts := &fresh
	if k != nil {
		starts = &k.starts
	}
	starts.SetRate(perSecond, q.rateSinceMs)
	return starts.NextMs()
}

// startable is how many tasks of the key may start now.
func (s *Shard) startable(q *queue, k *limitKey) int {
	limits := &q.settings.PerKey
	n := maxKeyTasks
	if limits.InProgress != 0 && k != nil {
		n = max(0, limits.InProgress-k.running)
	}
	switch at := q.keyOpensAtMs(k); {
	case at > s.now:
		return 0
	case at != 0:
		return min(n, 1)
	}
	return n
}

// keyIsFull reports whether the concurrency key of a task lets none start now.
func (s *Shard) keyIsFull(q *queue, key string) bool {
	return key != "" && q.settings.PerKey != (wire.PerKey{}) && s.startable(q, q.keys[key]) == 0
}

// keyHolds reports whether a task of the key that becomes ready must wait for others of it.
func (s *Shard) keyHolds(q *queue, key string) bool {
	if key == "" || q.settings.PerKey == (wire.PerKey{}) {
		return false
	}
	k := q.keys[key]
	return k != nil && k.waits || s.startable(q, k) == 0
}

// byKey is the place for a task that would become ready.
func (s *Shard) byKey(q *queue, t *record.Task, m *move) wire.Location {
	if m.cause != record.CauseKeyFree && t.Location != wire.LocationPending && s.keyHolds(q, t.ConcurrencyKey) {
		return wire.LocationLimited
	}
	return wire.LocationPending
}

// enterLimited writes the entry of a task that waits for its key.
func (s *Shard) enterLimited(q *queue, t *record.Task) {
	e := limitedEntry(t)
	q.index.AddLimited()
	s.span.Batch().PutLimited(q.key, &e)
	k := s.keyOf(q, t.ConcurrencyKey)
	if !k.waits {
		k.waits, k.waiting, k.first = true, len(q.waiting), e.LimitedPlace
		q.waiting = append(q.waiting, k)
	}
	if e.Compare(&k.first) < 0 {
		k.first = e.LimitedPlace
	}
	s.planKey(k)
}

// leaveLimited deletes the entry of a task that waited for its key. If it does not become
// ready, it may have been the last of them, and the next round looks.
func (s *Shard) leaveLimited(q *queue, t *record.Task, m *move) {
	e := limitedEntry(t)
	q.index.RemoveLimited()
	s.span.Batch().DeleteLimited(q.key, &e)
	if m.to != wire.LocationPending && m.to != wire.LocationLimited {
		s.freeKey(q, t.ConcurrencyKey)
	}
}

func limitedEntry(t *record.Task) record.LimitedEntry {
	return record.LimitedEntry{
		Key: t.ConcurrencyKey, LimitedPlace: record.LimitedPlace{Priority: t.Priority, PendingKey: record.PendingKey{Seq: t.Seq, ID: t.ID}},
	}
}

// leaveReady notes that a ready task of a key is granted to nobody.
func (s *Shard) leaveReady(q *queue, t *record.Task, m *move) {
	switch m.to {
	case wire.LocationInProgress, wire.LocationLimited, wire.LocationPending:
	default:
		s.freeKey(q, t.ConcurrencyKey)
	}
}

// startKey counts a delivery of a key that begins, endKey one that ends.
func (s *Shard) startKey(q *queue, name string) {
	if name == "" {
		return
	}
	k := s.keyOf(q, name)
	k.running++
	if q.keyOpensAtMs(k) != 0 {
		k.starts.Start(s.now)
		s.planKey(k)
	}
}

func (s *Shard) endKey(q *queue, name string) {
	if name == "" {
		return
	}
	k := q.keys[name]
	k.running--
	if k.waits {
		s.free(k, 1)
	}
	s.forgetKey(k)
}

// freeKey lets one more task of a key become ready, if any waits.
func (s *Shard) freeKey(q *queue, name string) {
	if k := q.keys[name]; name != "" && k != nil && k.waits {
		s.free(k, 1)
	}
}

func (s *Shard) free(k *limitKey, n int) {
	if n > 0 && k.free == 0 {
		s.freed = append(s.freed, k)
	}
	k.free = min(k.free+n, maxKeyTasks)
}

// maxKeyTasks is how many tasks one round makes ready at most, of one key and of all.
const maxKeyTasks = 1024

// planKey notes when the key must be looked at because its next start may be.
func (s *Shard) planKey(k *limitKey) {
	if at := k.queue.keyOpensAtMs(k); at > s.now {
		s.keyStarts.Put(&k.next, k, heap.Key{AtMs: at})
	}
}

// setPerKey lets waiting tasks go on as the limits of the queue allow now.
func (s *Shard) setPerKey(q *queue, before wire.PerKey) {
	now := q.settings.PerKey
	if now == before {
		return
	}
	if now.StartsPerSecond != 0 && before.StartsPerSecond == 0 {
		q.rateSinceMs = s.now
	}
	s.freeAll(q)
}

// freeAll looks at all keys of a queue for which tasks wait.
func (s *Shard) freeAll(q *queue) {
	for _, k := range q.waiting {
		s.planKey(k)
		s.free(k, s.startable(q, k))
	}
}

// restoreKey counts a delivery that recovery found.
func (s *Shard) restoreKey(t *record.Task) {
	if t.ConcurrencyKey != "" {
		s.keyOf(s.queueOf(t.Queue()), t.ConcurrencyKey).running++
	}
}

// restoreKeys begins with the keys for which recovery found tasks. A delivery in progress
// has been counted.
func (s *Shard) restoreKeys(found []store.LimitedKey) {
	for i := range found {
		q := s.queueOf(found[i].Queue)
		k := s.keyOf(q, found[i].Key)
		k.waits, k.waiting, k.first.Priority = true, len(q.waiting), wire.MaxPriority
		q.waiting = append(q.waiting, k)
		s.planKey(k)
		s.free(k, s.startable(q, k))
	}
}

// openKeys looks at the keys whose next start may be now.
func (s *Shard) openKeys() {
	for {
		k, atMs := s.keyStarts.Top()
		if k == nil || atMs > s.now {
			return
		}
		s.keyStarts.Remove(&k.next)
		if k.waits {
			s.free(k, 1)
		}
		if at := k.starts.IdleMs(); at > s.now && k.queue.settings.PerKey.StartsPerSecond != 0 {
			s.keyStarts.Put(&k.next, k, heap.Key{AtMs: at})
		}
		s.forgetKey(k)
	}
}

// findFreed reads the tasks that this round makes ready. It runs at the start of a round
// only, like refill.
func (s *Shard) findFreed() {
	clear(s.found)
	s.found = s.found[:0]
	if s.space >= store.OnlyDelete {
		return
	}
	seen := 0
	for ; seen < len(s.freed) && seen < s.limits.Keys && len(s.found) < maxKeyTasks; seen++ {
		s.findOf(s.freed[seen])
	}
	s.freed = slices.Delete(s.freed, 0, seen)
}

// findOf reads the tasks of a key that become ready, and one more to know whether others
// wait.
func (s *Shard) findOf(k *limitKey) {
	q, n := k.queue, min(k.free, s.startable(k.queue, k))
	k.free = 0
	from := record.LimitedEntry{Key: k.name, LimitedPlace: k.first}
	entries, err := s.span.ScanLimited(q.key, &from, n+1)
	s.mustRead(err)
	if len(entries) <= n {
		s.endWaiting(k)
	} else {
		k.first = entries[n].LimitedPlace
		if n == maxKeyTasks {
			s.free(k, n)
		}
	}
	for i := range entries[:min(n, len(entries))] {
		s.found = append(s.found, freedTask{q, entries[i]})
	}
}

// endWaiting notes that no task of a key waits any more.
func (s *Shard) endWaiting(k *limitKey) {
	q, last := k.queue, len(k.queue.waiting)-1
	q.waiting[k.waiting] = q.waiting[last]
	q.waiting[k.waiting].waiting = k.waiting
	q.waiting[last] = nil
	q.waiting = q.waiting[:last]
	k.waits = false
	s.forgetKey(k)
}

// makeFreedReady moves the tasks that findFreed read.
func (s *Shard) makeFreedReady() {
	for i := range s.found {
		f := &s.found[i]
		t, err := s.span.Task(f.entry.ID)
		if s.unreadable(err) || t == nil {
			s.quarantineLimited(f.queue, &f.entry)
			continue
		}
		s.transition(t, move{to: wire.LocationPending, status: wire.StatusPending, cause: record.CauseKeyFree, toOldPlace: true})
	}
}

// quarantineLimited is quarantineReady for a task that waits for its key.
func (s *Shard) quarantineLimited(q *queue, e *record.LimitedEntry) {
	s.eventUnreadable(q, e.ID, wire.LocationLimited)
	q.index.RemoveLimited()
	s.span.Batch().DeleteLimited(q.key, e)
	s.mustRead(s.span.Quarantine(e.ID))
	s.freeKey(q, e.Key)
}

// addKeyLimit says which limit of its concurrency key keeps a task from its grant.
func (s *Shard) addKeyLimit(q *queue, key string, w *wire.Waiting) {
	limits, k := &q.settings.PerKey, q.keys[key]
	w.Reason, w.Key = wire.WaitingLimit, key
	w.Limit, w.Of = wire.LimitKeyStarts, int64(limits.StartsPerSecond)
	if k != nil && limits.InProgress != 0 && k.running >= limits.InProgress {
		w.Limit, w.Used, w.Of = wire.LimitKeyInProgress, int64(k.running), int64(limits.InProgress)
	}
}
