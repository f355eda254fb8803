package client

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

func TestEnqueueSaysWhatItsOptionsSay(t *testing.T) {
	type file struct {
		Name string `json:"name"`
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, given := range map[string]struct {
		payload any
		options []EnqueueOption
	}{
		`{"command":"c","payload":{"name":"<a> & b"}}`:                                              {file{"<a> & b"}, nil},
		`{"command":"c","payload":null}`:                                                            {nil, nil},
		`{"command":"c","payload":"eA=="}`:                                                          {[]byte("x"), nil},
		`{"command":"c","payload":{"b":1, "a":10000000000000000001}}`:                               {json.RawMessage(`{"b":1, "a":10000000000000000001}`), nil},
		`{"command":"c","payload":1,"priority":9,"maxAttempts":2,"idempotencyKey":"k"}`:             {1, []EnqueueOption{Key("k"), Priority(9), MaxAttempts(2)}},
		`{"command":"c","payload":1,"delaySeconds":2}`:                                              {1, []EnqueueOption{Delay(1001 * time.Millisecond)}},
		`{"command":"c","payload":1,"runAt":"2030-01-02T03:04:05.000Z"}`:                            {1, []EnqueueOption{RunAt(at)}},
		`{"command":"c","payload":` + `"` + strings.Repeat("x", wire.MaxPayloadBytes-2) + `"` + `}`: {strings.Repeat("x", wire.MaxPayloadBytes-2), nil},
	} {
		r, err := newRequest(t.Context(), "c", given.payload, given.options)
		if err != nil {
			t.Errorf("%.80s: %v", want, err)
		} else if got := string(wire.AppendEnqueueRequest(nil, r)); got != want {
			t.Errorf("got %.200s, want %.200s", got, want)
		}
	}
}

func TestEnqueueRefusesBeforeItAsks(t *testing.T) {
	both := []EnqueueOption{Delay(time.Second), RunAt(time.Now())}
	for name, given := range map[string]struct {
		command string
		payload any
		options []EnqueueOption
	}{
		"no JSON":           {"c", func() {}, nil},
		"NaN":               {"c", math.NaN(), nil},
		"raw that is none":  {"c", json.RawMessage(`1,"priority":9`), nil},
		"no command":        {"", 1, nil},
		"odd command":       {"a b", 1, nil},
		"too large":         {"c", strings.Repeat("x", wire.MaxPayloadBytes), nil},
		"priority 10":       {"c", 1, []EnqueueOption{Priority(10)}},
		"empty key":         {"c", 1, []EnqueueOption{Key("")}},
		"long key":          {"c", 1, []EnqueueOption{Key(strings.Repeat("k", wire.MaxKeyBytes+1))}},
		"no attempts":       {"c", 1, []EnqueueOption{MaxAttempts(0)}},
		"negative delay":    {"c", 1, []EnqueueOption{Delay(-1)}},
		"endless delay":     {"c", 1, []EnqueueOption{Delay(math.MaxInt64)}},
		"delay and a time":  {"c", 1, both},
		"too many attempts": {"c", 1, []EnqueueOption{MaxAttempts(1001)}},
	} {
		if r, err := newRequest(t.Context(), given.command, given.payload, given.options); err == nil {
			t.Errorf("%s: made a request %+v", name, r)
		}
	}
}

func TestALostAnswerIsUnknownWithoutAKeyAndRepeatedWithOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d := openDesk(t, "break")
		if _, err := c.Enqueue(context.Background(), "c", 1); !errors.Is(err, ErrOutcomeUnknown) || len(d.bodies) != 1 {
			t.Errorf("error %v after %d requests, want ErrOutcomeUnknown after 1", err, len(d.bodies))
		}
		draining := `{"error":"going away","code":"draining","retryable":true}`
		internal := `{"error":"oh","code":"internal","retryable":true}`
		c, d = openDesk(t, internal, "break", draining, taskBody('a'))
		got, err := c.Enqueue(context.Background(), "c", 1, Key("k"))
		if err != nil || got.TaskID != taskID('a') || len(d.bodies) != 4 {
			t.Fatalf("got %+v, error %v after %d requests, want the task after 4", got, err, len(d.bodies))
		}
		for _, body := range d.bodies {
			if body != `{"command":"c","payload":1,"idempotencyKey":"k"}` {
				t.Errorf("asked for %s", body)
			}
		}
	})
}

func TestARepeatedEnqueueEndsWithItsContextOrForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errTest)
		defer cancel()
		c, _ := openDesk(t, strings.Split(strings.Repeat("break ", 40), " ")...)
		_, err := c.Enqueue(ctx, "c", 1, Key("k"))
		if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, errTest) {
			t.Errorf("error %v, want ErrOutcomeUnknown and the cause", err)
		}
		var refusal *wire.Error
		c, _ = openDesk(t, "break", `{"error":"who?","code":"unauthenticated","retryable":false}`)
		_, err = c.Enqueue(context.Background(), "c", 1, Key("k"))
		if !errors.Is(err, ErrOutcomeUnknown) || !errors.As(err, &refusal) || refusal.Code != wire.CodeUnauthenticated {
			t.Errorf("error %v, want ErrOutcomeUnknown and unauthenticated", err)
		}
		c, d := openDesk(t, `{"error":"later","code":"overloaded","retryable":true}`)
		_, err = c.Enqueue(context.Background(), "c", 1, Key("k"))
		if errors.Is(err, ErrOutcomeUnknown) || !errors.As(err, &refusal) || len(d.bodies) != 1 {
			t.Errorf("error %v after %d requests, want overloaded after 1", err, len(d.bodies))
		}
	})
}

func TestAProxyThatLostTheServerLeavesTheOutcomeOpen(t *testing.T) {
	c, _ := answering(t, 502, "<html>bad gateway</html>")
	if _, err := c.Enqueue(context.Background(), "c", 1); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("error %v, want ErrOutcomeUnknown", err)
	}
	c, _ = answering(t, 404, "<html>not here</html>")
	if _, err := c.Enqueue(context.Background(), "c", 1); err == nil || errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("error %v, want one that is no ErrOutcomeUnknown", err)
	}
}

func TestResultWaitsUntilTheTaskEndsAndDecodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type sum struct{ Sha string }
		c, d := openDesk(t, "wait", "wait", "break", resultBody())
		got, err := ResultOf[sum](context.Background(), c, taskID('a'))
		if err != nil || got.Sha != "1" || len(d.asked) != 4 {
			t.Errorf("got %+v, error %v after %d requests", got, err, len(d.asked))
		}
		c, _ = openDesk(t, resultBody())
		if n, err := ResultOf[int](context.Background(), c, taskID('a')); err == nil || !strings.Contains(err.Error(), taskID('a').String()) {
			t.Errorf("an object decoded into %d, error %v", n, err)
		}
	})
}

func TestResultOfAFailedTaskIsAnErrorThatCarriesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := &wire.ResultRecord{TaskID: taskID('a'), Status: wire.StatusFailed, Error: "no such file", CompletedAtMs: 5}
		body := append([]byte(`{"task":`+taskBody('a')+`,"result":`), wire.AppendResultRecord(nil, record)...)
		c, _ := openDesk(t, string(append(body, '}')))
		_, err := c.Result(context.Background(), taskID('a'))
		var failed *TaskError
		if !errors.As(err, &failed) || failed.Result.Error != "no such file" || failed.Task.ID != taskID('a') {
			t.Fatalf("error %v, want a TaskError with the record", err)
		}
		if text := err.Error(); !strings.Contains(text, "FAILED: no such file") {
			t.Errorf("the error says %q", text)
		}
	})
}

func TestResultEndsWithItsContextAndItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(context.Background(), 90*time.Second, errTest)
		defer cancel()
		c, _ := openDesk(t, "wait", "wait")
		if _, err := c.Result(ctx, taskID('a')); !errors.Is(err, errTest) {
			t.Errorf("error %v, want the cause of the context", err)
		}
		time.Sleep(time.Minute) // until the desk has noticed
	})
}
