package store

import "codeq/record"

// pendingPut is a pending key that the open batch puts.
type pendingPut struct {
	queue     record.QueueKey
	priority  int
	key       record.PendingKey
	readyAtMs int64
	// taken is set once the same batch has deleted the key again.
	taken bool
}

// pendingInBatch holds the pending keys that the open batch puts until it is
// applied. Most tasks of a queue whose workers keep up are granted in the round
// that brought them: their key would be written and deleted in one batch, two
// entries that go through the log, the memtable and a flush for nothing.
type pendingInBatch struct {
	entries []pendingPut
	// at finds an entry by its sequence; a shard gives each to one task.
	at map[uint64]int
}

// pendingPutBytes stands for a key and its value in the size of a batch.
const pendingPutBytes = 48

func newPendingInBatch() *pendingInBatch { return &pendingInBatch{at: make(map[uint64]int)} }

// put holds a key back. It refuses one whose sequence another key has.
func (f *pendingInBatch) put(e *pendingPut) bool {
	i, known := f.at[e.key.Seq]
	if known && !f.entries[i].is(e) {
		return false
	}
	if known {
		f.entries[i] = *e
		return true
	}
	f.at[e.key.Seq] = len(f.entries)
	f.entries = append(f.entries, *e)
	return true
}

// take takes back a key that this batch has put, and reports whether it had.
func (f *pendingInBatch) take(e *pendingPut) bool {
	i, known := f.at[e.key.Seq]
	if !known || !f.entries[i].is(e) {
		return false
	}
	f.entries[i].taken = true
	delete(f.at, e.key.Seq)
	return true
}

// is compares everything that is in the key.
func (e *pendingPut) is(other *pendingPut) bool {
	return e.key == other.key && e.priority == other.priority && e.queue == other.queue
}

func (f *pendingInBatch) empty() bool { return len(f.entries) == 0 }

func (f *pendingInBatch) bytes() int { return len(f.at) * pendingPutBytes }

// reset forgets everything; a large round leaves no memory behind.
func (f *pendingInBatch) reset() {
	if cap(f.entries) > maxKeptRecords {
		*f = *newPendingInBatch()
		return
	}
	clear(f.entries)
	f.entries = f.entries[:0]
	clear(f.at)
}
