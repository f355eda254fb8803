package store

import (
	"bytes"
	"slices"

	"codeq/record"
	"codeq/wire"
)

// removedTask is a task that the open batch removes.
type removedTask struct {
	id     wire.TaskID
	absent record.Absent
}

// skips says that there is no key of a family.
func (t removedTask) skips(f record.Family) bool {
	switch f {
	case record.FamilyHistory:
		return t.absent.History
	case record.FamilyPayload, record.FamilyResult:
		return t.absent.Payload
	}
	return false
}

// goneTaskBytes stands for the keys of one in the size of a batch.
const removedTaskBytes = 4 * 24

// DeleteTask removes a task's record, payload, result and history at the end of the
// batch, except for keys that are absent. The caller removes index and idempotency keys.
func (b *Batch) DeleteTask(id wire.TaskID, absent record.Absent) {
	for _, f := range record.TaskFamilies {
		b.overlay.dropValue(f, id)
	}
	b.overlay.recordAt[id] = removedRecord
	b.removals = append(b.removals, removedTask{id: id, absent: absent})
}

// Removed reports that this batch has removed a task and not put it again.
func (b *Batch) Removed(id wire.TaskID) bool { return b.overlay.recordAt[id] == removedRecord }

// flushRemovals writes the deletions at the end of the batch, family by family and
// in the order of their keys: the memtable finds the place of a key from that of
// the one before, and neighbours cost it a fraction of a search.
func (b *Batch) flushRemovals() {
	slices.SortFunc(b.removals, func(x, y removedTask) int { return bytes.Compare(x.id[:], y.id[:]) })
	for _, f := range record.TaskFamilies {
		for _, t := range b.removals {
			if !t.skips(f) {
				b.remove(b.idKey(f, t.id))
			}
		}
	}
	b.removals = b.removals[:0]
}

// flushRemovalsBefore writes the deletions that wait, before something is put for a task that
// this batch has removed.
func (b *Batch) flushRemovalsBefore(id wire.TaskID) {
	if len(b.removals) > 0 && b.overlay.recordAt[id] == removedRecord {
		b.flushRemovals()
	}
}

// describeRemovals tells what flushRemovals will write.
func (b *Batch) describeRemovals() (ops []string) {
	for _, f := range record.TaskFamilies {
		for _, t := range b.removals {
			if !t.skips(f) {
				ops = append(ops, "del "+record.DescribeKey(b.idKey(f, t.id), record.QueueKey{}))
			}
		}
	}
	return ops
}
