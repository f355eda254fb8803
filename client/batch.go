package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"codeq/wire"
)

// NewTask is one task of a batch.
type NewTask struct {
	Command string
	Payload any
	Options []EnqueueOption
}

// BatchAnswer is the answer for one task of a batch: the task, or why there is none.
type BatchAnswer struct {
	Enqueued *Enqueued
	// Err is nil, a *wire.Error, or says why the task could not be written.
	Err error
}

// EnqueueBatch posts up to 1,000 tasks in one request and returns an answer for each, in order. A task
// that is refused keeps no other one from being made. If each task has a Key the request is repeated
// as that of Enqueue; otherwise a lost answer is ErrOutcomeUnknown. Over 1,000 tasks or 8 MiB the
// server refuses all.
func (c *Client) EnqueueBatch(ctx context.Context, tasks []NewTask) ([]BatchAnswer, error) {
	answers := make([]BatchAnswer, len(tasks))
	var sent []int
	body, how := []byte(`{"tasks":[`), keyed
	for i, task := range tasks {
		request, err := newRequest(ctx, task.Command, task.Payload, task.Options)
		if err != nil {
			answers[i].Err = err
			continue
		}
		if request.IdempotencyKey == "" {
			how = once
		}
		if len(sent) > 0 {
			body = append(body, ',')
		}
		body = wire.AppendEnqueueRequest(body, request)
		sent = append(sent, i)
	}
	if len(sent) == 0 {
		return answers, nil
	}
	in := call{method: http.MethodPost, path: apiPath + "/tasks/batch", body: append(body, "]}"...)}
	if how == once {
		in.remedy = "look with \"codeq tasks\" which tasks are there before they are posted again"
	}
	var results []json.RawMessage
	err := c.persist(ctx, how, waitForever, func(time.Duration) (err error) {
		results, err = ask(ctx, c, in, "the answers to a batch", func(body []byte) ([]json.RawMessage, error) {
			batch, err := decoded[struct{ Results []json.RawMessage }](body)
			if err == nil && len(batch.Results) != len(sent) {
				err = fmt.Errorf("%d answers to %d tasks", len(batch.Results), len(sent))
			}
			return batch.Results, err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	for n, i := range sent {
		answers[i] = batchAnswer(results[n])
	}
	return answers, nil
}

// batchAnswer reads the answer for one task.
func batchAnswer(raw []byte) BatchAnswer {
	made, err := decoded[struct {
		Task     json.RawMessage
		Replayed bool
	}](raw)
	if err != nil {
		return BatchAnswer{Err: err}
	}
	if made.Task == nil {
		refusal, err := wire.ParseError(raw)
		if err != nil {
			return BatchAnswer{Err: err}
		}
		return BatchAnswer{Err: refusal}
	}
	task, err := wire.ParseTask(made.Task)
	if err != nil {
		return BatchAnswer{Err: err}
	}
	return BatchAnswer{Enqueued: &Enqueued{TaskID: task.ID, Replayed: made.Replayed, Task: task}}
}
