package store

import (
	"codeq/record"
	"codeq/wire"
)

// ReasonsQuery asks why the letters of a part of a queue are dead. At most
// MostRead of them are looked at, and no more once the reasons have MostBytes.
type ReasonsQuery struct {
	Queue               record.QueueKey
	After               []ListPlace
	Causes              wire.DeadCauses
	MostRead, MostBytes int
}

// ReasonsPage are the reasons in the order of the newest letter of each. Places
// lead on to older letters; they are nil when there are none.
type ReasonsPage struct {
	Reasons []wire.DeadReason
	Places  []ListPlace
	// Read is how many letters were looked at.
	Read int
}

// reasonKey is what the letters of one reason have in common.
type reasonKey struct {
	text  string
	cause wire.DeadCause
}

// DeadReasons groups dead letters of a queue by their cause and the first line of
// their error, without what varies, newest first. A letter that cannot be read is in no group. The error is ErrListPlace for a
// query with a wrong place.
func (s *Store) DeadReasons(q *ReasonsQuery) (*ReasonsPage, error) {
	page, at, bytes := &ReasonsPage{}, make(map[reasonKey]int), 0
	err := s.merged(&ListQuery{Queue: q.Queue, State: ListDead, After: q.After}, func(m *merge) error {
		for o := m.first(); o != nil; o = m.first() {
			if page.Read >= q.MostRead || bytes >= q.MostBytes {
				page.Places = m.places()
				return nil
			}
			page.Read++
			r, err := o.record(ListDead, &ListFilter{Causes: q.Causes})
			if err != nil && !isDamaged(err) {
				return err
			}
			if err == nil && r != nil {
				key := reasonKey{foldReason(r.Error), r.DeadCause}
				i, known := at[key]
				if !known {
					i = len(page.Reasons)
					at[key] = i
					page.Reasons = append(page.Reasons, wire.DeadReason{
						Error: key.text, Example: wire.Head(firstLine(r.Error), wire.MaxLineErrorBytes),
						Cause: key.cause, TaskID: r.ID, EndedAtMs: o.key.AtMs,
					})
					bytes += len(key.text) + len(page.Reasons[i].Example)
				}
				page.Reasons[i].Count++
			}
			if err := o.next(); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}
