package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"codeq/wire"
)

// ResultAnswer is the outcome of a task, with the task.
type ResultAnswer struct {
	Task   *wire.Task
	Result *wire.ResultRecord
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

// Result waits until a task has ended, or until ctx ends, whose cause is then
// in the error. A task that ended in another way than completed is a
// *TaskError. A server that is not there, or goes away meanwhile, is asked again.
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
// and the task's status. A server that is not there or goes away while the caller
// waits, or a proxy that loses it, is asked again until the time is over, and the
// error says what happened last.
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
