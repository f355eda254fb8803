package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"codeq/wire"
)

// BulkQuery selects tasks of a queue. Command is required. Every other field that is not
// zero leaves tasks out; those that pass all of them are selected.
type BulkQuery struct {
	Command string
	// Before selects dead letters that ended before this time. Only for dead letters.
	Before time.Time
	// Cause selects dead letters with this cause: exhausted, released_too_often, failed,
	// or all. Empty means exhausted and released_too_often for a replay, and all for a
	// purge. Only for dead letters.
	Cause string
	// State selects tasks to cancel or to move: waiting, which is ready and delayed, or
	// one of ready and delayed. A cancel takes inProgress and open, too; open is all
	// three. Empty means waiting.
	State string
	// Worker selects tasks that this worker has, or had last.
	Worker string
	// ErrorPart selects tasks whose error contains this text.
	ErrorPart string
	// KeyPrefix selects tasks whose idempotency key begins with this text.
	KeyPrefix string
	// CreatedAfter selects tasks that were created at this time or later.
	CreatedAfter time.Time
	// CreatedBefore selects tasks that were created before this time.
	CreatedBefore time.Time
	// Priority selects tasks with this priority; nil selects all.
	Priority *int
	// MinAttempts selects tasks of which at least this many executions have failed.
	MinAttempts int
	// Match selects tasks whose payload has all of these members, at most
	// wire.MaxFilterMembers.
	Match []wire.MemberIs
	// DryRun counts the tasks and changes none.
	DryRun bool
	// Limit is the largest number of tasks, from 1 to 10,000; 0 means 10,000.
	Limit int
	// Cursor is that of the answer before, and empty in the first request.
	Cursor string
}

// BulkAnswer is the answer to one request about many tasks.
type BulkAnswer struct {
	// Done is the number of tasks that were changed; of a dry run, that would be.
	Done int64
	// Sample has some of the tasks of a dry run.
	Sample []*wire.Task
	// Remaining is the number of dead letters that the queue has left after a replay or a
	// purge. RemainingFailed is how many of those a worker has ended FAILED.
	Remaining       int64
	RemainingFailed int64
	// Cursor goes on where this request stopped, with the tasks that were there when the
	// first request came; it is empty when there are no more.
	Cursor string
}

// CancelTasks cancels up to q.Limit tasks of a queue that have not ended and were there
// when the first request, which has no cursor, came to the server. A task that changes
// its state meanwhile may be missed, unless its queue is paused. If there was no answer,
// the error is ErrOutcomeUnknown; the same request can be sent again.
func (c *Client) CancelTasks(ctx context.Context, q BulkQuery) (*BulkAnswer, error) {
	return c.openTasks(ctx, "cancel", wire.BulkCancel, &q, 0)
}

// RunTasksNow makes delayed tasks of a queue ready before their time, also tasks that
// wait for another attempt. It ignores q.State. Otherwise it works as CancelTasks.
func (c *Client) RunTasksNow(ctx context.Context, q BulkQuery) (*BulkAnswer, error) {
	return c.openTasks(ctx, "run", wire.BulkRun, &q, 0)
}

// MoveTasks gives waiting tasks of a queue another priority, from 0 to 9. Ready tasks
// keep the order in which they became ready, also among those that had the priority
// before. Otherwise it works as CancelTasks.
func (c *Client) MoveTasks(ctx context.Context, q BulkQuery, toPriority int) (*BulkAnswer, error) {
	return c.openTasks(ctx, "move", wire.BulkMove, &q, toPriority)
}

func (c *Client) openTasks(ctx context.Context, verb string, kind wire.BulkKind, q *BulkQuery, toPriority int) (*BulkAnswer, error) {
	r, err := q.request()
	if err != nil {
		return nil, err
	}
	r.ToPriority = toPriority
	body := wire.AppendBulkRequest(nil, kind, r, "")
	return c.bulk(ctx, call{method: http.MethodPost, path: queuePath(q.Command) + "/tasks/" + verb, body: body})
}

// ReplayTasks gives up to q.Limit dead letters of a queue all their attempts back: those
// that had died when the first request, which has no cursor, came to the server. If there
// was no answer, the error is ErrOutcomeUnknown; the same request can be sent again.
func (c *Client) ReplayTasks(ctx context.Context, q BulkQuery) (*BulkAnswer, error) {
	r, err := q.request()
	if err != nil {
		return nil, err
	}
	body := wire.AppendBulkRequest(nil, wire.BulkDead, r, q.Cause)
	return c.bulk(ctx, call{method: http.MethodPost, path: queuePath(q.Command) + "/dlq/replay", body: body})
}

// PurgeTasks removes up to q.Limit dead letters of a queue, with their results and
// idempotency keys: those that had died when the first request, which has no cursor, came
// to the server. If there was no answer, the error is ErrOutcomeUnknown; the same request
// can be sent again.
func (c *Client) PurgeTasks(ctx context.Context, q BulkQuery) (*BulkAnswer, error) {
	r, err := q.request()
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(wire.AppendBulkRequest(nil, wire.BulkDead, r, q.Cause), &members); err != nil {
		return nil, err
	}
	query := url.Values{}
	for name, raw := range members {
		text := string(raw)
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, err
			}
		}
		query.Set(name, text)
	}
	return c.bulk(ctx, call{method: http.MethodDelete, path: queuePath(q.Command) + "/dlq?" + query.Encode()})
}

func (q *BulkQuery) request() (*wire.BulkRequest, error) {
	r := &wire.BulkRequest{
		EndedRequest: wire.EndedRequest{BeforeMs: askedMs(q.Before), Limit: q.Limit},
		TaskFilter: wire.TaskFilter{
			Worker: q.Worker, ErrorPart: q.ErrorPart, KeyPrefix: q.KeyPrefix, MinAttempts: q.MinAttempts,
			CreatedFromMs: askedMs(q.CreatedAfter), CreatedBeforeMs: askedMs(q.CreatedBefore),
		},
		State: q.State, DryRun: q.DryRun, Cursor: q.Cursor,
	}
	if r.Limit == 0 {
		r.Limit = wire.MaxEndedTasks
	}
	if q.Priority != nil {
		r.OnlyPriority, r.Priority = true, *q.Priority
	}
	if len(q.Match) > len(r.Members) {
		return nil, fmt.Errorf("a query has %d members in Match, at most %d are possible", len(q.Match), len(r.Members))
	}
	copy(r.Members[:], q.Match)
	return r, nil
}

// askedMs is a time in a request, in Unix milliseconds; 0 is none.
func askedMs(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return max(1, at.UnixMilli())
}

func (c *Client) bulk(ctx context.Context, in call) (*BulkAnswer, error) {
	in.remedy = "it can be done again, and then concerns those that are left"
	return ask(ctx, c, in, "what became of many tasks", func(body []byte) (*BulkAnswer, error) {
		said, err := decoded[struct {
			Replayed, Purged, Cancelled, Ready, Moved, Matched int64
			BulkAnswer
		}](body)
		if err == nil && slices.Contains(said.Sample, nil) {
			err = errors.New("a task of the sample is null")
		}
		said.Done = said.Replayed + said.Purged + said.Cancelled + said.Ready + said.Moved + said.Matched
		return &said.BulkAnswer, err
	})
}

// DeadReasons groups dead letters of a queue by their error and cause. It reads up to
// limit letters, from 1 to 10,000, from the cursor on, which is empty for the newest.
// cause is that of a BulkQuery; empty means all.
func (c *Client) DeadReasons(ctx context.Context, command, cause string, limit int, cursor string) (*wire.DeadReasons, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if cause != "" {
		query.Set("cause", cause)
	}
	in := call{method: http.MethodGet, path: queuePath(command) + "/dlq/reasons?" + query.Encode()}
	return ask(ctx, c, in, "reasons", wire.ParseDeadReasons)
}
