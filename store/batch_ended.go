package store

import (
	"bytes"
	"cmp"
	"slices"

	"codeq/record"
	"codeq/wire"
)

// endedName is what ended tasks have in common that share a key.
type endedName struct {
	queue uint32
	atMs  int64
	ended record.Ended
}

// endedPut is a task that the open batch puts under a name.
type endedPut struct {
	name int
	id   wire.TaskID
}

// endedMoment is when tasks of a queue ended.
type endedMoment struct {
	queue uint32
	atMs  int64
}

// doneKey is a key of ended tasks that is in the database.
type doneKey struct {
	endedName
	ids []wire.TaskID
	// left are the ids that the open batch does not delete.
	left []wire.TaskID
}

// endedInBatch holds back the entries of tasks that end until the batch is applied: a round of a
// busy queue ends some hundred tasks in one millisecond, mostly in one way, and they share keys,
// each of which costs the log, the memtable, a flush and a compaction as much as a key of one.
// Retention deletes them together again; a key that keeps some is written anew without the others.
type endedInBatch struct {
	names []endedName
	at    map[endedName]int
	puts  []endedPut

	// keys are those that the batch deletes from, and some behind them, moments which of
	// them are of one time: from and up to.
	keys    []doneKey
	moments map[endedMoment][2]int
}

// endedPutBytes stands for one id in the size of a batch.
const endedPutBytes = 16

// readDoneAhead is how many keys are read with one from which a task is deleted. Retention deletes
// from those behind it next.
const readDoneAhead = 64

func newEndedInBatch() *endedInBatch {
	return &endedInBatch{at: make(map[endedName]int), moments: make(map[endedMoment][2]int)}
}

func (f *endedInBatch) put(name endedName, id wire.TaskID) {
	i, known := f.at[name]
	if !known {
		i = len(f.names)
		f.at[name] = i
		f.names = append(f.names, name)
	}
	f.puts = append(f.puts, endedPut{i, id})
}

// take takes back what this batch has put, and reports whether it had. That is the newest mostly:
// a task that ends in a queue that is being deleted.
func (f *endedInBatch) take(queue uint32, k record.TimedKey) bool {
	if !slices.ContainsFunc(f.names, func(n endedName) bool { return n.queue == queue && n.atMs == k.AtMs }) {
		return false
	}
	for i, p := range slices.Backward(f.puts) {
		if name := &f.names[p.name]; p.id == k.ID && name.queue == queue && name.atMs == k.AtMs {
			f.puts = slices.Delete(f.puts, i, i+1)
			return true
		}
	}
	return false
}

func (f *endedInBatch) empty() bool { return len(f.puts)+len(f.keys) == 0 }

func (f *endedInBatch) bytes() int {
	n := len(f.puts)
	for i := range f.keys {
		n += len(f.keys[i].ids)
	}
	return n * endedPutBytes
}

// reset forgets everything; a large round leaves no memory behind.
func (f *endedInBatch) reset() {
	if cap(f.puts) > maxKeptRecords {
		*f = *newEndedInBatch()
		return
	}
	f.names, f.puts = f.names[:0], f.puts[:0]
	clear(f.at)
	clear(f.keys)
	f.keys = f.keys[:0]
	clear(f.moments)
}

// each calls remove for the keys that the batch deletes, and set for those that it puts.
func (f *endedInBatch) each(remove, set func(name *endedName, ids []wire.TaskID)) {
	for i := range f.keys {
		k := &f.keys[i]
		if len(k.left) == len(k.ids) {
			continue
		}
		remove(&k.endedName, k.ids)
		if len(k.left) > 0 {
			set(&k.endedName, k.left)
		}
	}
	slices.SortFunc(f.puts, func(a, b endedPut) int {
		return cmp.Or(cmp.Compare(a.name, b.name), bytes.Compare(a.id[:], b.id[:]))
	})
	var ids [record.MaxTogether]wire.TaskID
	for from := 0; from < len(f.puts); {
		n, name := 0, f.puts[from].name
		for ; from+n < len(f.puts) && n < len(ids) && f.puts[from+n].name == name; n++ {
			ids[n] = f.puts[from+n].id
		}
		set(&f.names[name], ids[:n])
		from += n
	}
}

// flushEnded writes what was held back.
func (b *Batch) flushEnded() {
	b.ended.each(func(name *endedName, ids []wire.TaskID) {
		b.removeOnce(record.AppendDoneKey(b.start(), name.queue, name.atMs, ids))
	}, func(name *endedName, ids []wire.TaskID) {
		b.value = record.AppendEnded(b.value[:0], name.ended)
		b.set(record.AppendDoneKey(b.start(), name.queue, name.atMs, ids), b.value)
	})
}

// describeEnded tells what flushEnded will write.
func (b *Batch) describeEnded() (ops []string) {
	text := func(name *endedName, ids []wire.TaskID) string {
		key := record.AppendDoneKey(slices.Clone(b.span.prefix), name.queue, name.atMs, ids)
		return record.DescribeKey(key, b.span.store.queueOf(key))
	}
	b.ended.each(func(name *endedName, ids []wire.TaskID) {
		ops = append(ops, "del1 "+text(name, ids))
	}, func(name *endedName, ids []wire.TaskID) {
		ops = append(ops, "set "+text(name, ids))
		if name.ended != (record.Ended{}) {
			ops[len(ops)-1] += " " + name.ended.String()
		}
	})
	return ops
}

// deleteDone takes an ended task out of the key that names it.
func (b *Batch) deleteDone(queue uint32, k record.TimedKey) {
	if b.ended.take(queue, k) {
		return
	}
	at := endedMoment{queue, k.AtMs}
	if _, read := b.ended.moments[at]; !read {
		if err := b.readDone(at); err != nil {
			b.err = cmp.Or(b.err, err)
			return
		}
	}
	part := b.ended.moments[at]
	for i := part[0]; i < part[1]; i++ {
		key := &b.ended.keys[i]
		if n, is := slices.BinarySearchFunc(key.left, k.ID, compareIDs); is {
			if len(key.left) == len(key.ids) {
				key.left = slices.Clone(key.ids)
			}
			key.left = slices.Delete(key.left, n, n+1)
			return
		}
	}
}

func compareIDs(a, b wire.TaskID) int { return bytes.Compare(a[:], b[:]) }

// readDone reads the keys of one moment, and of some behind it. What the open batch deletes stays
// as it is.
func (b *Batch) readDone(from endedMoment) error {
	f, at := b.ended, from
	f.moments[at] = [2]int{len(f.keys), len(f.keys)}
	read := 0
	return b.span.eachDone(from.queue, from.atMs, func(k *doneKey) bool {
		if k.atMs != at.atMs {
			at.atMs = k.atMs
			if _, known := f.moments[at]; known || read >= readDoneAhead {
				return false
			}
			f.moments[at] = [2]int{len(f.keys), len(f.keys)}
		}
		k.left = k.ids
		f.keys = append(f.keys, *k)
		f.moments[at] = [2]int{f.moments[at][0], len(f.keys)}
		read++
		return true
	})
}

// eachDone calls do for the keys of ended tasks of a queue, from a time on, until it returns false.
func (sp *Span) eachDone(queue uint32, atMs int64, do func(k *doneKey) bool) error {
	prefix := record.AppendQueue(slices.Clone(sp.prefix), queue, record.FamilyDone)
	lower := record.AppendTimedKey(slices.Clone(sp.prefix), queue, record.FamilyDone, record.TimedKey{AtMs: atMs})
	return sp.view.scan(lower, record.UpperBound(prefix), func(key, value []byte) (bool, error) {
		p, err := record.ParseKey(key)
		if err != nil {
			return false, &DamagedError{Key: slices.Clone(key), Err: err}
		}
		ended, _ := record.ParseEnded(value) // one that is damaged says nothing
		return do(&doneKey{endedName: endedName{queue, p.AtMs, ended}, ids: p.AppendTasks(nil)}), nil
	})
}

// scanDone is ScanEnded for ended tasks that share keys. It reads all of the last moment, because
// ids of one moment may stand in any of its keys.
func (sp *Span) scanDone(queue uint32, after record.TimedKey, limit int) (found []record.EndedEntry, err error) {
	if limit <= 0 {
		return nil, nil
	}
	moment := 0
	sort := func() {
		slices.SortFunc(found[moment:], func(a, b record.EndedEntry) int { return compareIDs(a.ID, b.ID) })
		moment = len(found)
	}
	err = sp.eachDone(queue, after.AtMs, func(k *doneKey) bool {
		if len(found) > moment && found[moment].AtMs != k.atMs {
			sort()
			if len(found) >= limit {
				return false
			}
		}
		for _, id := range k.ids {
			if k.atMs > after.AtMs || compareIDs(id, after.ID) > 0 {
				found = append(found, record.EndedEntry{TimedKey: record.TimedKey{AtMs: k.atMs, ID: id}, Ended: k.ended})
			}
		}
		return true
	})
	sort()
	return found[:min(limit, len(found))], err
}
