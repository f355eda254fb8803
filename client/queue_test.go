package client

import (
	"context"
	"io"
	"testing"

	"codeq/wire"
)

func TestQueueIsReadSetPausedAndResumed(t *testing.T) {
	want := wire.QueueFigures{Command: "hash", TenantID: "default", Ready: 3, Paused: true, Settings: wire.QueueSettings{
		MaxAttempts: 2, Backoff: wire.Backoff{Policy: wire.BackoffFixed},
	}}
	c, asked := answering(t, 200, string(wire.AppendQueueFigures(nil, &want)))
	ctx := context.Background()
	for _, one := range []struct {
		method, path, body string
		do                 func() (*wire.QueueFigures, error)
	}{
		{"GET", "", "", func() (*wire.QueueFigures, error) { return c.Queue(ctx, "hash") }},
		{"POST", "/pause", "", func() (*wire.QueueFigures, error) { return c.PauseQueue(ctx, "hash") }},
		{"POST", "/resume", "", func() (*wire.QueueFigures, error) { return c.ResumeQueue(ctx, "hash") }},
		{"PUT", "", `{"maxAttempts":2,"backoff":{"policy":"fixed"}}`, func() (*wire.QueueFigures, error) {
			return c.SetQueue(ctx, "hash", &want.Settings)
		}},
	} {
		got, err := one.do()
		if err != nil || *got != want {
			t.Errorf("%s%s: got %+v, %v", one.method, one.path, got, err)
		}
		body, err := io.ReadAll(asked.Body)
		if err != nil {
			t.Fatal(err)
		}
		if asked.Method != one.method || asked.URL.Path != "/v1/codeq/admin/queues/hash"+one.path || string(body) != one.body {
			t.Errorf("asked %s %s %s", asked.Method, asked.URL.Path, body)
		}
	}
}
