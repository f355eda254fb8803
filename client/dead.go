package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"codeq/wire"
)

// DeadQuery says which dead letters of a queue are replayed or purged, oldest
// first. Command is required.
type DeadQuery struct {
	Command string
	// Before leaves out those that ended then or later, Worker those that another
	// worker had last, ErrorPart those whose error does not contain the text. What
	// is zero leaves out none.
	Before    time.Time
	Worker    string
	ErrorPart string
	// Cause leaves out those that died of another one: exhausted,
	// released_too_often, failed, or all. Empty is exhausted and released_too_often
	// for a replay, all for a purge.
	Cause string
	// Limit is how many at most, 1 to 10,000; 0 is 10,000.
	Limit int
	// Cursor is the one of the answer before, empty for the first.
	Cursor string
}

// DeadAnswer says how many dead letters were replayed or purged, how many the
// queue has left, how many of those a worker ended FAILED, and is the answer as it
// came. While there may be more that
// the query is about, Cursor goes on behind these, and with letters that had died
// when the work began.
type DeadAnswer struct {
	Done            int64
	Remaining       int64
	RemainingFailed int64
	Cursor          string
	Raw             []byte
}

// ReplayQueue gives dead letters of a queue all their attempts back: those that
// had died when the first request, the one without a cursor, came to the server.
// A request that broke off may be repeated with the cursor that it had: it goes on
// where it stopped. The first one begins anew.
func (c *Client) ReplayQueue(ctx context.Context, q DeadQuery) (*DeadAnswer, error) {
	body := wire.AppendDeadRequest(nil, q.request(), q.Cause)
	return c.workDead(ctx, call{method: http.MethodPost, path: queuePath(q.Command) + "/dlq/replay", body: body})
}

// PurgeQueue removes dead letters of a queue, with their results and keys: those
// that had died when the first request, the one without a cursor, came to the
// server. A request that broke off may be repeated with the cursor that it had: it
// goes on where it stopped. The first one begins anew.
func (c *Client) PurgeQueue(ctx context.Context, q DeadQuery) (*DeadAnswer, error) {
	query := url.Values{}
	for name, value := range map[string]string{"worker": q.Worker, "error": q.ErrorPart, "cause": q.Cause, "cursor": q.Cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	r := q.request()
	query.Set("limit", strconv.Itoa(r.Limit))
	if !q.Before.IsZero() {
		query.Set("before", q.Before.UTC().Format(time.RFC3339Nano))
	}
	return c.workDead(ctx, call{method: http.MethodDelete, path: queuePath(q.Command) + "/dlq?" + query.Encode()})
}

func (q *DeadQuery) request() *wire.DeadRequest {
	r := &wire.DeadRequest{Worker: q.Worker, ErrorPart: q.ErrorPart, Cursor: q.Cursor}
	if r.Limit = q.Limit; r.Limit == 0 {
		r.Limit = wire.MaxEndedTasks
	}
	if !q.Before.IsZero() {
		r.BeforeMs = max(1, q.Before.UnixMilli())
	}
	return r
}

func (c *Client) workDead(ctx context.Context, in call) (*DeadAnswer, error) {
	in.remedy = "it can be done again, and is then about those that are left"
	answer, err := c.do(ctx, in)
	if err != nil {
		return nil, err
	}
	var said struct {
		Replayed, Purged, Remaining, RemainingFailed int64
		Cursor                                       string
	}
	if err := json.Unmarshal(answer.body, &said); err != nil {
		return nil, answer.misunderstood("what became of dead letters", err)
	}
	return &DeadAnswer{
		Done: said.Replayed + said.Purged, Remaining: said.Remaining, RemainingFailed: said.RemainingFailed,
		Cursor: said.Cursor, Raw: answer.body,
	}, nil
}

// ReasonsAnswer is why a part of the dead letters of a queue died, newest part
// first, and the answer as it came.
type ReasonsAnswer struct {
	wire.DeadReasons
	Raw []byte
}

// DeadReasons groups dead letters of a queue by their error and cause: up to limit,
// 1 to 10,000, behind the cursor, empty for the newest. Of cause see DeadQuery;
// empty is all.
func (c *Client) DeadReasons(ctx context.Context, command, cause string, limit int, cursor string) (*ReasonsAnswer, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if cause != "" {
		query.Set("cause", cause)
	}
	answer, err := c.do(ctx, call{method: http.MethodGet, path: queuePath(command) + "/dlq/reasons?" + query.Encode()})
	if err != nil {
		return nil, err
	}
	found, err := wire.ParseDeadReasons(answer.body)
	if err != nil {
		return nil, answer.misunderstood("reasons", err)
	}
	return &ReasonsAnswer{DeadReasons: *found, Raw: answer.body}, nil
}
