package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"codeq/store"
	"codeq/wire"
)

const (
	// listDefault is how many tasks a page has when nothing is asked for.
	listDefault = 100
	// listMostRead is how many records are looked at for one page, listMostBytes
	// how many bytes of payloads and errors are on it, but for its last task. In
	// JSON, where the worst of them grows sixfold, that is still an answer that
	// clients read whole.
	listMostRead  = 5000
	listMostBytes = 2 << 20
)

// listStates are the states by their names in a query.
var listStates = map[string]store.ListState{
	"ready": store.ListReady, "delayed": store.ListDelayed, "inProgress": store.ListInProgress,
	"dlq": store.ListDead, "done": store.ListDone,
}

// getTasks lists the tasks of one queue of the caller's tenant in one state, a
// page at a time.
func (a *api) getTasks(c *call) answer {
	q, refusal := c.queueOf()
	if refusal != nil {
		return refuse(refusal)
	}
	query, cursor, refusal := listQueryOf(c.r.URL)
	if refusal != nil {
		return refuse(refusal)
	}
	query.Queue = q
	if cursor != "" {
		if query.After, refusal = decodeCursor(cursor, query.Queue, query.State); refusal != nil {
			return refuse(refusal)
		}
	}
	page, err := a.o.Store.ListTasks(query)
	if errors.Is(err, store.ErrListPlace) {
		return refuse(badCursor())
	}
	if err == nil {
		err = a.allDurable(c)
	}
	if err != nil {
		return a.failedRead(c, err)
	}
	body := append([]byte(nil), `{"tasks":[`...)
	for i, task := range page.Tasks {
		if i > 0 {
			body = append(body, ',')
		}
		body = wire.AppendTask(body, task, wire.PayloadAsString)
	}
	body = append(body, ']')
	if page.More {
		body = appendCursorMember(body, query.Queue, query.State, page.Places)
	}
	return answer{status: http.StatusOK, body: append(body, '}')}
}

// allDurable waits until what was read of any shard is on disk.
func (a *api) allDurable(c *call) error {
	for shard := range a.o.Store.Shards() {
		if err := a.o.Store.WaitDurable(c.r.Context(), shard); err != nil {
			return err
		}
	}
	return nil
}

// listQueryOf reads a query. The cursor, "" for the first page, is read when the
// list is known that it must be of.
func listQueryOf(u *url.URL) (query *store.ListQuery, cursor string, refusal *wire.Error) {
	values, refusal := queryOf(u)
	if refusal != nil {
		return nil, "", refusal
	}
	if refusal := onceEach(values, "state", "limit", "cursor", "status", "worker", "error", "cause"); refusal != nil {
		return nil, "", refusal
	}
	state, known := listStates[values.Get("state")]
	if !known {
		return nil, "", wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf(
			"state is required: ready, delayed, inProgress, dlq or done, got %.40q", values.Get("state")))
	}
	status := wire.Status(values.Get("status"))
	switch status {
	case "", wire.StatusPending, wire.StatusInProgress, wire.StatusCompleted, wire.StatusFailed, wire.StatusCancelled:
	default:
		return nil, "", wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf(
			"status must be PENDING, IN_PROGRESS, COMPLETED, FAILED or CANCELLED, got %.40q", string(status)))
	}
	limit, refusal := limitOf(values, listDefault, wire.MaxListTasks)
	if refusal != nil {
		return nil, "", refusal
	}
	causes, refusal := causesOf(values)
	if refusal == nil && causes != 0 && state != store.ListDead {
		refusal = wire.Refuse(wire.CodeInvalidArgument, "cause is for state=dlq alone: no other task has one")
	}
	if refusal != nil {
		return nil, "", refusal
	}
	return &store.ListQuery{
		State: state, Limit: limit, MostRead: listMostRead, MostBytes: listMostBytes,
		Filter: store.ListFilter{Status: status, Worker: values.Get("worker"), ErrorPart: values.Get("error"), Causes: causes},
	}, values.Get("cursor"), nil
}

// causesOf reads cause, which is all when it is left out.
func causesOf(values url.Values) (wire.DeadCauses, *wire.Error) {
	if text := values.Get("cause"); text != "" {
		return wire.ParseDeadCauses(text)
	}
	return 0, nil
}

// onceEach refuses a parameter that is there twice, or empty.
func onceEach(values url.Values, names ...string) *wire.Error {
	for _, name := range names {
		if given, ok := values[name]; ok && (len(given) > 1 || given[0] == "") {
			return wire.Refuse(wire.CodeInvalidArgument, name+" must be given once and not be empty, or left out")
		}
	}
	return nil
}

// limitOf reads limit, which is absent when it is left out.
func limitOf(values url.Values, absent, most int) (int, *wire.Error) {
	text := values.Get("limit")
	if text == "" {
		return absent, nil
	}
	n, ok := wire.ParseInteger(text)
	if !ok || n < 1 || n > int64(most) {
		return 0, wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf("limit must be an integer from 1 to %d", most))
	}
	return int(n), nil
}
