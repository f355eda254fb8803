package store

import (
	"errors"
	"math"
	"regexp"
	"strings"

	"codeq/record"
	"codeq/wire"
)

// ListState says which tasks of a queue are listed, and in which order.
type ListState int

// The states. Ready tasks are listed as they will be handed out, and behind them those of
// ListLimited, which wait for their concurrency key, by key; delayed ones by due time, those
// in progress by id, dead letters and the other ended ones by the time they ended, newest
// first.
const (
	ListReady ListState = iota
	ListDelayed
	ListInProgress
	ListLimited
	ListDead
	ListDone
	// ListLabelled are the tasks of the tenant with the first label of the filter, whatever
	// their queue and state: in each shard by queue, newest first.
	ListLabelled
)

// ready reports a state of tasks that wait for nothing but a worker or their key, whose entries
// have their priority.
func (s ListState) ready() bool { return s == ListReady || s == ListLimited }

// ended reports a state of ended tasks, whose order is that of their ends.
func (s ListState) ended() bool { return s >= ListDead }

var listFamilies = [...]record.Family{
	ListReady:      record.FamilyPending,
	ListLimited:    record.FamilyLimited,
	ListDelayed:    record.FamilyDelayed,
	ListInProgress: record.FamilyInProgress,
	ListDead:       record.FamilyDead,
	ListDone:       record.FamilyDone,
	ListLabelled:   record.FamilyLabels,
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
	wire.TaskSearch
}

// takes reports whether the filter, but for what it asks of payloads, takes a task
// of an order.
func (f *ListFilter) takes(v *view, r *record.Task, state ListState) (bool, error) {
	var t wire.Task
	setTask(&t, r)
	t.WorkerID = r.LastWorkerID
	running := state == ListInProgress || state == ListLabelled && !r.Status.Terminal()
	if running && (f.Status != "" || f.Worker != "" || f.State != "") {
		lease, err := v.lease(r.Queue(), r.ID)
		switch {
		case err != nil, lease == nil && state == ListInProgress:
			return false, err
		case lease != nil:
			joinLease(&t, lease)
		}
	}
	return (f.Status == "" || f.Status == t.Status) && strings.HasPrefix(r.IdempotencyKey, f.KeyPrefix) && f.Takes(&t), nil
}

// ListQuery asks for tasks of a queue in one state.
type ListQuery struct {
	// Queue is without a command for ListLabelled.
	Queue record.QueueKey
	State ListState
	// After is one place for each shard, nil for the beginning.
	After  []ListPlace
	Filter ListFilter
	// UntilMs, in Unix milliseconds, is for Find: the latest end of a task that has ended,
	// and the latest time at which the id of any other was drawn.
	UntilMs int64
	// NotPriority leaves out the tasks of a priority, nil none.
	NotPriority *int
	// Limit is the most tasks, MostRead the most that are looked at for them. The search
	// also ends when the bytes of what it found, or of the payloads that its filter was
	// held against, reach MostBytes, if that is not 0.
	Limit, MostRead, MostBytes int
}

// ListPart says how far a query has come. Places lead on to what is left, which may turn
// out to be nothing; they are nil at the end. Read is how many tasks were looked at.
type ListPart struct {
	Places []ListPlace
	Read   int
}

// ListPage is one page of tasks.
type ListPage struct {
	Tasks []*wire.Task
	ListPart
}

// ListTasks reads one page of the tasks of a queue: in queue order within each
// shard, the shards merged by priority and id, or by time and id. It begins at
// the places of the query and costs as much as what it looks at, whatever the
// length of the queue. A record that cannot be read is passed over. MostBytes bounds
// payloads and errors. The error is ErrListPlace for a query with a wrong place.
func (s *Store) ListTasks(q *ListQuery) (*ListPage, error) {
	page := &ListPage{}
	w := &walk{query: q, part: &page.ListPart, back: q.State.ended(), untilMs: math.MaxInt64, records: true}
	w.visit = func(e *entry) (int, error) {
		task, err := joinTask(&e.order.view, e.record)
		if err != nil {
			return 0, err
		}
		page.Tasks = append(page.Tasks, task)
		return len(task.Payload) + len(task.Error), nil
	}
	return page, s.walk(w)
}

// FindPage is a part of what was asked for, the tasks with the time in their entry:
// when they ended, or are due.
type FindPage struct {
	Found []record.TimedKey
	ListPart
}

// Find finds tasks of a queue, for whoever does something with each of them: ended ones
// oldest first, others as they are listed. Their records are read only for a filter that
// needs them; a task that cannot be read is passed over then. The error is ErrListPlace
// for a query with a wrong place.
func (s *Store) Find(q *ListQuery) (*FindPage, error) {
	page := &FindPage{}
	w := &walk{query: q, part: &page.ListPart, untilMs: q.UntilMs}
	w.visit = func(e *entry) (int, error) {
		page.Found = append(page.Found, e.key)
		return 0, nil
	}
	return page, s.walk(w)
}

// ReasonsPage are the reasons in the order of the newest letter of each.
type ReasonsPage struct {
	Reasons []wire.DeadReason
	ListPart
}

// reasonKey is what the letters of one reason have in common.
type reasonKey struct {
	text  string
	cause wire.DeadCause
}

// DeadReasons groups the dead letters that a query with State ListDead asks for by their
// cause and the first line of their error, without what varies, newest first. A letter
// that cannot be read is in no group. MostBytes bounds the reasons. The error is
// ErrListPlace for a query with a wrong place.
func (s *Store) DeadReasons(q *ListQuery) (*ReasonsPage, error) {
	page, at := &ReasonsPage{}, make(map[reasonKey]int)
	w := &walk{query: q, part: &page.ListPart, back: true, untilMs: math.MaxInt64, records: true}
	w.visit = func(e *entry) (bytes int, err error) {
		r := e.record
		key := reasonKey{groupingText(r.Error), r.DeadCause}
		i, known := at[key]
		if !known {
			i = len(page.Reasons)
			at[key] = i
			example := wire.Head(wire.FirstLine(r.Error), wire.MaxLineErrorBytes)
			page.Reasons = append(page.Reasons, wire.DeadReason{
				Error: key.text, Example: example, Cause: key.cause, TaskID: r.ID, EndedAtMs: e.key.AtMs,
			})
			bytes = len(key.text) + len(example)
		}
		page.Reasons[i].Count++
		return bytes, nil
	}
	return page, s.walk(w)
}

// varying is what differs between errors that have one reason: quoted text, UUIDs,
// times, long hexadecimal words and numbers. An apostrophe within a word is no
// quote. What comes first in the list is tried first.
var varying = regexp.MustCompile(strings.Join([]string{
	`"[^"]*"`, "`[^`]*`", `\B'[^']*'\B`,
	`\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`,
	`\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?`,
	`\b\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?`,
	`\b0[xX][0-9a-fA-F]+\b`, `\b[0-9a-fA-F]{8,}\b`, `\d+(?:[.,]\d+)*`,
}, "|"))

// groupingText is the first line of an error without what varies: a quoted text becomes
// "…", a time, number or hexadecimal word with a digit becomes #.
func groupingText(text string) string {
	return varying.ReplaceAllStringFunc(wire.FirstLine(text), func(found string) string {
		switch {
		case strings.ContainsAny(found[:1], "\"'`"):
			return `"…"`
		case !strings.ContainsAny(found, "0123456789"):
			return found // a word of the letters a to f
		}
		return "#"
	})
}
