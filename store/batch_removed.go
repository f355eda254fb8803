package store

import (
	"bytes"
	"slices"

	"codeq/record"
	"codeq/wire"
)

// goneTask is a task that the open batch removes.
type goneTask struct {
	id     wire.TaskID
	absent record.Absent
}

// skips says that there is no key of a family.
func (t goneTask) skips(f record.Family) bool {
	switch f {
	case record.FamilyHistory:
		return t.absent.History
	case record.FamilyPayload, record.FamilyResult:
		return t.absent.Payload
	}
	return false
}

// goneTaskBytes stands for the keys of one in the size of a batch.
const goneTaskBytes = 4 * 24

// DeleteTask removes a task's record, payload, result and history, but for keys that it
// never had. Index and idempotency keys are the caller's to remove.
func (b *Batch) DeleteTask(id wire.TaskID, absent record.Absent) {
	for _, f := range record.TaskFamilies {
		b.overlay.dropValue(f, id)
	}
	b.overlay.recordAt[id] = goneRecord
	b.gone = append(b.gone, goneTask{id: id, absent: absent})
}

// Removed reports that this batch has removed a task and not put it again.
func (b *Batch) Removed(id wire.TaskID) bool { return b.overlay.recordAt[id] == goneRecord }

// removeGone writes the deletions at the end of the batch, family by family and
// in the order of their keys: the memtable finds the place of a key from that of
// the one before, and neighbours cost it a fraction of a search.
func (b *Batch) removeGone() {
	slices.SortFunc(b.gone, func(x, y goneTask) int { return bytes.Compare(x.id[:], y.id[:]) })
	for _, f := range record.TaskFamilies {
		for _, t := range b.gone {
			if !t.skips(f) {
				b.remove(b.idKey(f, t.id))
			}
		}
	}
	b.gone = b.gone[:0]
}

// comesBack writes what waits before something is put for a task that this batch
// has removed.
func (b *Batch) comesBack(id wire.TaskID) {
	if len(b.gone) > 0 && b.overlay.recordAt[id] == goneRecord {
		b.removeGone()
	}
}

// describeGone tells what removeGone will write.
func (b *Batch) describeGone() (ops []string) {
	for _, f := range record.TaskFamilies {
		for _, t := range b.gone {
			if !t.skips(f) {
				ops = append(ops, "del "+record.DescribeKey(b.idKey(f, t.id), record.QueueKey{}))
			}
		}
	}
	return ops
}
