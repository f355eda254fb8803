package client

import (
	"context"
	"errors"
	"testing"

	"codeq/wire"
)

func TestCancelReadsTheTaskAndWhatEndedItBefore(t *testing.T) {
	c, asked := answering(t, 200, taskBody('a'))
	got, err := c.Cancel(context.Background(), taskID('a'))
	if err != nil || got.ID != taskID('a') {
		t.Errorf("got %+v, %v", got, err)
	}
	if want := "/v1/codeq/tasks/" + taskID('a').String() + "/cancel"; asked.Method != "POST" || asked.URL.Path != want {
		t.Errorf("asked %s %s, want POST of %s", asked.Method, asked.URL, want)
	}
	c, _ = answering(t, 409, string(wire.AppendError(nil, &wire.Error{
		Code: wire.CodeAlreadyTerminal, Sentence: "it has ended", Status: wire.StatusCompleted, Task: task('a'),
	})))
	_, err = c.Cancel(context.Background(), taskID('a'))
	var refusal *wire.Error
	if !errors.As(err, &refusal) || refusal.Code != wire.CodeAlreadyTerminal || refusal.Status != wire.StatusCompleted ||
		refusal.Task == nil || refusal.Task.ID != taskID('a') {
		t.Errorf("got %v, want already_terminal with the task", err)
	}
}
