package store

import (
	"errors"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"codeq/record"
	"codeq/wire"
)

// ListState says which tasks of a queue are listed, and in which order.
type ListState int

// The states. Ready tasks are listed as they will be handed out, delayed ones
// by due time, those in progress by id, dead letters and the other ended ones
// by the time they ended, newest first.
const (
	ListReady ListState = iota
	ListDelayed
	ListInProgress
	ListDead
	ListDone
)

var listFamilies = [...]record.Family{
	ListReady:      record.FamilyPending,
	ListDelayed:    record.FamilyDelayed,
	ListInProgress: record.FamilyInProgress,
	ListDead:       record.FamilyDead,
	ListDone:       record.FamilyDone,
}

// ListPlace is how far a listing has come in one shard: the end of the last key
// it looked at. Empty is the beginning.
type ListPlace []byte

// ErrListPlace is a place that no listing of that state can have come to, or a
// number of places other than that of the shards.
var ErrListPlace = errors.New("not a place in this list")

// ListFilter leaves tasks out. Its zero value leaves out none.
type ListFilter struct {
	Status wire.Status
	// Causes are those of dead letters; other tasks have none of them.
	Causes wire.DeadCauses
	wire.TaskFilter
}

// takes reports whether the filter, but for what it asks of payloads, takes a task
// of an order.
func (f *ListFilter) takes(v *view, r *record.Task, state ListState) (bool, error) {
	status, worker := r.Status, r.LastWorkerID
	if state == ListInProgress && (f.Status != "" || f.Worker != "") {
		lease, err := v.lease(r.Queue(), r.ID)
		if err != nil || lease == nil {
			return false, err
		}
		status, worker = wire.StatusInProgress, lease.WorkerID
	}
	switch {
	case f.Status != "" && f.Status != status, f.Worker != "" && f.Worker != worker:
		return false, nil
	case f.OnlyPriority && f.Priority != r.Priority, r.Attempts < f.MinAttempts:
		return false, nil
	case r.CreatedAtMs < f.CreatedFromMs, f.CreatedBeforeMs != 0 && r.CreatedAtMs >= f.CreatedBeforeMs:
		return false, nil
	}
	return strings.Contains(r.Error, f.ErrorPart) && strings.HasPrefix(r.IdempotencyKey, f.KeyPrefix), nil
}

// ListQuery asks for one page.
type ListQuery struct {
	Queue record.QueueKey
	State ListState
	// After is one place for each shard, nil for the first page.
	After  []ListPlace
	Filter ListFilter
	// Limit is the most tasks on a page, MostRead the most records that are
	// looked at for it. A page also ends when the payloads and errors on it reach MostBytes.
	Limit, MostRead, MostBytes int
}

// ListPage is one page. More says that Places lead to a next one, which may
// turn out to be empty.
type ListPage struct {
	Tasks  []*wire.Task
	Places []ListPlace
	More   bool
	// Read is how many records were looked at.
	Read int
}

// ListTasks reads one page of the tasks of a queue: in queue order within each
// shard, the shards merged by priority and id, or by time and id. It begins at
// the places of the query and costs as much as what it looks at, whatever the
// length of the queue. A record that cannot be read is passed over. The error
// is ErrListPlace for a query with a wrong place.
func (s *Store) ListTasks(q *ListQuery) (page *ListPage, err error) {
	err = s.merged(q, func(m *merge) error {
		page, err = m.page(q)
		return err
	})
	return page, err
}

// page fills one page.
func (m *merge) page(q *ListQuery) (*ListPage, error) {
	page := &ListPage{}
	bytes := 0
	for o := m.first(); o != nil; o = m.first() {
		if len(page.Tasks) >= q.Limit || page.Read >= q.MostRead || bytes >= q.MostBytes {
			page.More, page.Places = true, m.places()
			return page, nil
		}
		page.Read++
		task, err := o.task(q)
		if err != nil && !isDamaged(err) {
			return nil, err
		}
		if err == nil && task != nil {
			page.Tasks = append(page.Tasks, task)
			bytes += len(task.Payload) + len(task.Error)
		}
		if err := o.next(); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// task reads the task at the place, nil if the filter leaves it out.
func (o *order) task(q *ListQuery) (*wire.Task, error) {
	r, err := o.record(q.State, &q.Filter)
	if err != nil || r == nil {
		return nil, err
	}
	return joinTask(&o.view, r)
}

// record reads the record at the place, nil if the filter leaves it out.
func (o *order) record(state ListState, f *ListFilter) (*record.Task, error) {
	if f.Causes != 0 && (state != ListDead || !f.Causes.Has(o.ended.Cause)) {
		return nil, nil
	}
	r, err := o.view.task(o.key.ID)
	if err != nil || r == nil {
		return nil, err
	}
	if takes, err := f.takes(&o.view, r, state); err != nil || !takes {
		return nil, err
	}
	return r, nil
}

// merged opens a merge over one snapshot for the time of read.
func (s *Store) merged(q *ListQuery, read func(m *merge) error, change ...func(*merge)) error {
	if q.After != nil && len(q.After) != s.shards {
		return ErrListPlace
	}
	m := &merge{state: q.State, back: q.State == ListDead || q.State == ListDone}
	for _, f := range change {
		f(m)
	}
	return s.atOneMoment(func(snapshot *pebble.Snapshot) error {
		err := m.open(s, snapshot, q)
		if err == nil {
			err = read(m)
		}
		for _, o := range m.orders {
			if closeErr := o.leave(); err == nil {
				err = closeErr
			}
		}
		return err
	})
}

func oldestFirst(m *merge) { m.back = false }

func (m *merge) open(s *Store, reader pebble.Reader, q *ListQuery) error {
	for shard := range s.shards {
		o := &order{view: s.viewOf(reader, shard), back: m.back}
		m.orders = append(m.orders, o)
		if q.After != nil {
			o.place = slices.Clone(q.After[shard])
		}
		if err := o.begin(q.Queue, listFamilies[q.State]); err != nil {
			return err
		}
	}
	return nil
}
