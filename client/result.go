package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"codeq/wire"
)

// ResultAnswer is the outcome of a task, with the task, and the answer as it
// came.
type ResultAnswer struct {
	Task   *wire.Task
	Result *wire.ResultRecord
	Raw    []byte
}

// Decode stores the result of a completed task in the value that into points
// to, as json.Unmarshal does.
func (a *ResultAnswer) Decode(into any) error {
	if err := json.Unmarshal(a.Result.Result, into); err != nil {
		return fmt.Errorf("decode result of task %s: %w", a.Result.TaskID, err)
	}
	return nil
}

// TaskError says that a task ended without a result: it FAILED, or somebody
// CANCELLED it.
type TaskError struct {
	Task   *wire.Task
	Result *wire.ResultRecord
}

// Error is the status and the reason.
func (e *TaskError) Error() string {
	if e.Result.Error == "" {
		return fmt.Sprintf("task %s is %s", e.Result.TaskID, e.Result.Status)
	}
	return fmt.Sprintf("task %s is %s: %s", e.Result.TaskID, e.Result.Status, e.Result.Error)
}

// waitForever is longer than any context lives.
const waitForever = 100 * 365 * 24 * time.Hour

// Result waits until a task has ended, or until ctx ends, whose cause is then
// in the error. A task that ended in another way than completed is a
// *TaskError. A server that goes away meanwhile is asked again; one that never
// answered this client is an *UnreachableError at once.
func (c *Client) Result(ctx context.Context, id wire.TaskID) (*ResultAnswer, error) {
	answer, err := c.ResultWithin(ctx, id, waitForever)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("wait for the result of task %s: %w", id, context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	if answer.Result.Status != wire.StatusCompleted {
		return nil, &TaskError{Task: answer.Task, Result: answer.Result}
	}
	return answer, nil
}

// ResultOf is Client.Result for those who want nothing but the decoded result.
func ResultOf[R any](ctx context.Context, c *Client, id wire.TaskID) (R, error) {
	var result R
	answer, err := c.Result(ctx, id)
	if err != nil {
		return result, err
	}
	return result, answer.Decode(&result)
}

// ResultWithin reads the outcome of a task, whatever it is, and waits for it up
// to waitFor, which may be longer than a server waits in one request. A task
// without an outcome by then is a *wire.Error with the code result_not_found
// and the task's status. A server that goes away while the caller waits is
// asked again until the time is over; one that never answered this client is
// an *UnreachableError at once.
func (c *Client) ResultWithin(ctx context.Context, id wire.TaskID, waitFor time.Duration) (*ResultAnswer, error) {
	until := time.Now().Add(waitFor)
	failures := 0
	for {
		began := time.Now()
		asked := min(max(0, until.Sub(began)), wire.MaxWaitSeconds*time.Second).Truncate(time.Second)
		answer, err := c.resultOnce(ctx, id, asked)
		if err == nil || ctx.Err() != nil || time.Until(until) <= 0 {
			return answer, err
		}
		if !c.worthWaiting(err) {
			return nil, err
		}
		if isNotYet(err) && asked > 0 && time.Since(began) >= asked/2 {
			failures = 0
			continue
		}
		// A server that did not wait, because less than a whole second is left
		// or for reasons of its own, is not asked again at once.
		if err := sleep(ctx, min(backoff(failures), time.Until(until))); err != nil {
			return nil, err
		}
		failures++
	}
}

func isNotYet(err error) bool {
	var refusal *wire.Error
	return errors.As(err, &refusal) && refusal.Code == wire.CodeResultNotFound
}

// worthWaiting reports whether the next request may have another answer.
func (c *Client) worthWaiting(err error) bool {
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return refusal.Code.Retryable()
	}
	var nobody *UnreachableError
	return c.reached.Load() && (errors.As(err, &nobody) || errors.Is(err, context.DeadlineExceeded))
}

func (c *Client) resultOnce(ctx context.Context, id wire.TaskID, waitFor time.Duration) (*ResultAnswer, error) {
	answer, err := c.do(ctx, call{
		method:  http.MethodGet,
		path:    fmt.Sprintf("%s/tasks/%s/result?waitSeconds=%d", apiPath, id, waitFor/time.Second),
		waitFor: waitFor,
	})
	if err != nil {
		return nil, err
	}
	var parts struct {
		Task   json.RawMessage `json:"task"`
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(answer.body, &parts); err != nil {
		return nil, c.misunderstood("a result", err)
	}
	task, err := wire.ParseTask(parts.Task)
	if err != nil {
		return nil, c.misunderstood("the task of a result", err)
	}
	record, err := wire.ParseResultRecord(parts.Result)
	if err != nil {
		return nil, c.misunderstood("a result", err)
	}
	return &ResultAnswer{Task: task, Result: record, Raw: answer.body}, nil
}

// sleep waits that long or until ctx ends.
func sleep(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
