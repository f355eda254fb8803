package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"codeq/wire"
)

// ResultAnswer is a task that has ended, and its result record.
type ResultAnswer struct {
	Task   *wire.Task
	Result *wire.ResultRecord
}

// Decode decodes the result of a completed task into the value that into points to, as
// json.Unmarshal does.
func (a *ResultAnswer) Decode(into any) error {
	if err := json.Unmarshal(a.Result.Result, into); err != nil {
		return fmt.Errorf("decode result of task %s: %w", a.Result.TaskID, err)
	}
	return nil
}

// TaskError is the error of a task that ended without a result: its status is FAILED or
// CANCELLED.
type TaskError struct {
	Task   *wire.Task
	Result *wire.ResultRecord
}

// Error is a sentence with the status and the reason.
func (e *TaskError) Error() string {
	if e.Result.Error == "" {
		return fmt.Sprintf("task %s is %s", e.Result.TaskID, e.Result.Status)
	}
	return fmt.Sprintf("task %s is %s: %s", e.Result.TaskID, e.Result.Status, e.Result.Error)
}

// Result waits until a task has ended. If the task did not complete, the error is a
// *TaskError. If ctx ends first, the error wraps the cause of ctx. While the server is not
// there, Result asks again.
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

// ResultOf is Client.Result, and decodes the result.
func ResultOf[R any](ctx context.Context, c *Client, id wire.TaskID) (R, error) {
	var result R
	answer, err := c.Result(ctx, id)
	if err != nil {
		return result, err
	}
	return result, answer.Decode(&result)
}

// ResultWithin reads the result record of a task with any status, and waits for it up to
// waitFor, which may be longer than the 60 s for which a server waits in one request. If
// the task has not ended by then, the error is a *wire.Error with the code
// result_not_found and the status of the task. While the server is not there, or a proxy
// answers in its place, ResultWithin asks again until waitFor is over; then the error says
// what happened last.
func (c *Client) ResultWithin(ctx context.Context, id wire.TaskID, waitFor time.Duration) (*ResultAnswer, error) {
	var answer *ResultAnswer
	err := c.persist(ctx, waitResult, waitFor, func(left time.Duration) (err error) {
		asked := min(max(0, left), wire.MaxWaitSeconds*time.Second).Truncate(time.Second)
		answer, err = c.resultOnce(ctx, id, asked)
		return err
	})
	return answer, err
}

func (c *Client) resultOnce(ctx context.Context, id wire.TaskID, waitFor time.Duration) (*ResultAnswer, error) {
	in := call{
		method:  http.MethodGet,
		path:    fmt.Sprintf("%s/tasks/%s/result?waitSeconds=%d", apiPath, id, waitFor/time.Second),
		waitFor: waitFor,
	}
	return ask(ctx, c, in, "a result", func(body []byte) (*ResultAnswer, error) {
		var parts struct{ Task, Result json.RawMessage }
		if err := json.Unmarshal(body, &parts); err != nil {
			return nil, err
		}
		task, err := wire.ParseTask(parts.Task)
		if err != nil {
			return nil, err
		}
		record, err := wire.ParseResultRecord(parts.Result)
		return &ResultAnswer{Task: task, Result: record}, err
	})
}
