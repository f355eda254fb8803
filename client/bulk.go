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

// BulkQuery says which tasks of a queue something is done with. Command is required;
// what is zero leaves out none.
type BulkQuery struct {
	Command string
	// Before leaves out dead letters that ended then or later, Cause those that died
	// of another one: exhausted, released_too_often, failed, or all. Empty is exhausted
	// and released_too_often for a replay, all for a purge. Both are for dead letters
	// alone.
	Before time.Time
	Cause  string
	// State says which tasks are cancelled or moved: waiting, which is what empty
	// means, ready, delayed, or, to be cancelled, inProgress or open, which is all
	// that have not ended.
	State string
	// Worker leaves out those that another worker has, or had last, ErrorPart those
	// whose error does not contain the text, KeyPrefix those whose idempotency key does
	// not begin with it.
	Worker    string
	ErrorPart string
	KeyPrefix string
	// CreatedAfter leaves out those that were created before, CreatedBefore those that
	// were created then or later.
	CreatedAfter  time.Time
	CreatedBefore time.Time
	// Priority leaves out those of another priority, nil none. MinAttempts leaves out
	// those of which fewer executions have failed.
	Priority    *int
	MinAttempts int
	// Match leaves out those whose payload does not hold all of it, at most
	// wire.MaxFilterMembers names of members with their values; see wire.MemberIs.
	Match []wire.MemberIs
	// DryRun counts the tasks and does nothing.
	DryRun bool
	// Limit is how many at most, 1 to 10,000; 0 is 10,000.
	Limit int
	// Cursor is the one of the answer before, empty for the first.
	Cursor string
}

// BulkAnswer says with how many tasks it was done. Of
// a dry run it says how many there are and shows some of them. After a replay or a
// purge it says how many dead letters the queue has left, and how many of those a
// worker ended FAILED. While there may be more that the query is about, Cursor goes
// on behind these, and with tasks that were there when the work began.
type BulkAnswer struct {
	Done            int64
	Sample          []*wire.Task
	Remaining       int64
	RemainingFailed int64
	Cursor          string
}

// CancelTasks cancels tasks of a queue that have not ended: those that were there
// when the first request, the one without a cursor, came to the server. One that
// changes its state meanwhile may be passed over, unless its queue is paused. A
// request that broke off may be repeated with the cursor that it had: it goes on
// where it stopped. The first one begins anew.
func (c *Client) CancelTasks(ctx context.Context, q BulkQuery) (*BulkAnswer, error) {
	return c.openTasks(ctx, "cancel", wire.BulkCancel, &q, 0)
}

// RunTasksNow makes delayed tasks of a queue ready before their time, those that wait
// after a failure too; State has no meaning. The rest is as for CancelTasks.
func (c *Client) RunTasksNow(ctx context.Context, q BulkQuery) (*BulkAnswer, error) {
	return c.openTasks(ctx, "run", wire.BulkRun, &q, 0)
}

// MoveTasks gives waiting tasks of a queue another priority. Ready ones stand there
// in the order in which they became ready, among those that are there. The rest is
// as for CancelTasks.
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

// ReplayTasks gives dead letters of a queue all their attempts back: those that
// had died when the first request, the one without a cursor, came to the server.
// A request that broke off may be repeated with the cursor that it had: it goes on
// where it stopped. The first one begins anew.
func (c *Client) ReplayTasks(ctx context.Context, q BulkQuery) (*BulkAnswer, error) {
	r, err := q.request()
	if err != nil {
		return nil, err
	}
	body := wire.AppendBulkRequest(nil, wire.BulkDead, r, q.Cause)
	return c.bulk(ctx, call{method: http.MethodPost, path: queuePath(q.Command) + "/dlq/replay", body: body})
}

// PurgeTasks removes dead letters of a queue, with their results and keys: those
// that had died when the first request, the one without a cursor, came to the
// server. A request that broke off may be repeated with the cursor that it had: it
// goes on where it stopped. The first one begins anew.
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
		return nil, fmt.Errorf("a query asks for %d members of payloads, at most %d are possible", len(q.Match), len(r.Members))
	}
	copy(r.Members[:], q.Match)
	return r, nil
}

// askedMs is a bound in time as a request has it, 0 for none.
func askedMs(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return max(1, at.UnixMilli())
}

func (c *Client) bulk(ctx context.Context, in call) (*BulkAnswer, error) {
	in.remedy = "it can be done again, and is then about those that are left"
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

// DeadReasons groups dead letters of a queue by their error and cause: up to limit,
// 1 to 10,000, behind the cursor, empty for the newest. Of cause see BulkQuery;
// empty is all.
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
