package store

import "codeq/record"

// weights are what one task adds to the counters of its queue.
type weights struct{ payloadBytes, fileBytes int64 }

// weigh reads the tasks of an entry in an order; nothing of one that has no weight there or that is
// damaged.
func (sp *Span) weigh(p *record.Key, value []byte) (w weights, err error) {
	switch p.Family {
	case record.FamilyExpiring:
		return w, nil
	case record.FamilyInProgress:
		var l record.Lease
		if record.ParseLease(value, &l) == nil {
			w.fileBytes = l.Files.Bytes
		}
		return w, nil
	case record.FamilyDone, record.FamilyDead:
		if e, err := record.ParseEnded(value); err == nil && !e.HasFiles {
			return w, nil
		}
	}
	for _, id := range p.AppendTasks(nil) {
		task, err := sp.view.task(id)
		if err != nil && !isDamaged(err) {
			return w, err
		}
		if task != nil {
			w = weights{w.payloadBytes + int64(task.PayloadBytes), w.fileBytes + task.Files.Bytes}
		}
	}
	return w, nil
}

// recount counts the keys of one queue, the payloads of its tasks that wait, and their files.
func (sp *Span) recount(q record.QueueKey) (record.Counters, error) {
	var c record.Counters
	for _, f := range record.Orders {
		prefix := record.AppendQueue(append([]byte(nil), sp.prefix...), sp.published.numbers[q].n, f)
		err := sp.view.scanPrefix(prefix, func(key, value []byte) (bool, error) {
			p, err := record.ParseKey(key)
			if err != nil {
				return true, nil
			}
			waited := c.Waiting()
			c.Count(&p, value)
			weighs, err := sp.weigh(&p, value)
			if c.FileBytes += weighs.fileBytes; c.Waiting() != waited {
				c.WaitingBytes += weighs.payloadBytes
			}
			return err == nil, err
		})
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// lostFiles are files of leases that are set aside: of those that can be read the bytes are known.
type lostFiles struct {
	bytes   int64
	unknown bool
}

func (f *lostFiles) add(lease []byte, aside bool) {
	var l record.Lease
	if record.ParseLease(lease, &l) != nil {
		f.unknown = true
	} else if aside {
		f.bytes += l.Files.Bytes
	}
}

// countWithout takes the files of leases that are set aside off the counters of their queue.
func (sp *Span) countWithout(state *QueueState, lost lostFiles) error {
	if lost == (lostFiles{}) {
		return nil
	}
	if lost.unknown {
		c, err := sp.recount(state.Key)
		if err != nil {
			return err
		}
		state.Counters.FileBytes = c.FileBytes
	}
	state.Counters.FileBytes -= lost.bytes
	sp.putCounters(state)
	return nil
}
