package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"codeq/wire"
)

func claimedBody(name byte) string { return string(wire.AppendClaimed(nil, task(name), token(name))) }

// body is what was asked with.
func body(t *testing.T, asked *http.Request) string {
	t.Helper()
	text, err := io.ReadAll(asked.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestClaimAsksForOneOrManyAndReadsThem(t *testing.T) {
	ctx := context.Background()
	c, asked := answering(t, 200, claimedBody('a'))
	got, err := c.Claim(ctx, ClaimOptions{Commands: []string{"hash"}, Lease: 1500 * time.Millisecond, Wait: 5 * time.Second, WorkerID: "w"})
	if err != nil || len(got) != 1 || got[0].Task.ID != taskID('a') || got[0].Ref != ref('a') {
		t.Fatalf("got %+v, %v", got, err)
	}
	want := `{"commands":["hash"],"leaseSeconds":2,"waitSeconds":5,"workerId":"w"}`
	if text := body(t, asked); text != want || asked.URL.Path != "/v1/codeq/tasks/claim" || asked.Method != "POST" {
		t.Errorf("asked %s of %s, want %s", text, asked.URL.Path, want)
	}
	c, asked = answering(t, 200, `{"tasks":[`+claimedBody('a')+`,`+claimedBody('b')+`]}`)
	got, err = c.Claim(ctx, ClaimOptions{Count: 7})
	if err != nil || len(got) != 2 || got[1].Ref != ref('b') {
		t.Fatalf("got %+v, %v", got, err)
	}
	if text := body(t, asked); text != `{"count":7}` || asked.URL.Path != "/v1/codeq/tasks/claim/batch" {
		t.Errorf("asked %s of %s", text, asked.URL.Path)
	}
	for _, count := range []int{1, 2} {
		c, _ = answering(t, 204, "")
		if got, err = c.Claim(ctx, ClaimOptions{Count: count}); err != nil || len(got) != 0 {
			t.Errorf("of nothing: %+v, %v", got, err)
		}
		c, _ = answering(t, 200, `[]`)
		if got, err = c.Claim(ctx, ClaimOptions{Count: count}); err == nil || got != nil {
			t.Errorf("of nonsense: %+v, %v", got, err)
		}
	}
}

func TestClaimedTaskSaysEachVerbWithItsToken(t *testing.T) {
	ctx := context.Background()
	const requeued = `{"status":"requeued"}`
	settle := func(out Outcome) func(*Claimed) error {
		return func(h *Claimed) error {
			var raw []byte
			got, err := h.End(CaptureAnswer(ctx, &raw), out)
			if err == nil && (got.DeadLetter != strings.Contains(string(raw), "dlq") || len(raw) == 0 ||
				(got.Wait == time.Second) != strings.Contains(string(raw), `:1}`)) {
				t.Errorf("answered %+v, %s", got, raw)
			}
			return err
		}
	}
	for name, c := range map[string]struct {
		say          func(*Claimed) error
		verb, answer string
		members      string
	}{
		"complete": {settle(Complete([]byte(`{"a": 1}`))), "result", `{"taskId":"x","status":"COMPLETED"}`, `,"status":"COMPLETED","result":{"a": 1}`},
		"no JSON":  {settle(Complete([]byte(`1`))), "nack", requeued, `,"reason":"the result is JSON, but not an object"`},
		"fail":     {settle(Fail("no")), "result", `{"status":"FAILED"}`, `,"status":"FAILED","error":"no"`},
		"nack":     {settle(Nack("no")), "nack", `{"status":"dlq","delaySeconds":0}`, `,"reason":"no"`},
		"in 2 s":   {settle(NackAfter("no", 2*time.Second)), "nack", `{"status":"requeued","delaySeconds":1}`, `,"delaySeconds":2,"reason":"no"`},
		"release":  {settle(Release()), "release", requeued, ``},
		"unbegun":  {settle(NotStarted("no disk")), "release", requeued, `,"started":false`},
		"stopped":  {settle(Stopped()), "release", requeued, `,"stopping":true`},
		"abandon": {func(h *Claimed) error {
			_, err := h.Abandon(ctx)
			return err
		}, "abandon", requeued, ``},
		"heartbeat": {func(h *Claimed) error {
			until, err := h.Heartbeat(ctx, time.Minute)
			if err == nil && !until.Equal(time.Date(2030, 1, 2, 3, 4, 5, 6e6, time.UTC)) {
				t.Errorf("the lease ends at %v", until)
			}
			return err
		}, "heartbeat", `{"ok":true,"leaseUntil":"2030-01-02T03:04:05.006Z"}`, `,"extendSeconds":60`},
	} {
		t.Run(name, func(t *testing.T) {
			knows, asked := answering(t, 200, c.answer)
			if err := c.say(knows.Claimed(ref('a'))); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf(`{"leaseToken":"%v"%s}`, token('a'), c.members)
			if text := body(t, asked); text != want || asked.URL.Path != "/v1/codeq/tasks/"+taskID('a').String()+"/"+c.verb {
				t.Errorf("asked %s of %s, want %s of %s", text, asked.URL.Path, want, c.verb)
			}
			refuses, _ := answering(t, 409, string(wire.AppendError(nil, wire.Refuse(wire.CodeLeaseLost, "it is over"))))
			var refusal *wire.Error
			if err := c.say(refuses.Claimed(ref('a'))); !errors.As(err, &refusal) || refusal.Code != wire.CodeLeaseLost {
				t.Errorf("refused with %v", err)
			}
			nonsense, _ := answering(t, 200, `[`)
			if err := c.say(nonsense.Claimed(ref('a'))); err == nil {
				t.Error("nonsense was understood")
			}
			cut, _ := answering(t, 502, "no gateway")
			if err := c.say(cut.Claimed(ref('a'))); !errors.Is(err, ErrOutcomeUnknown) || !strings.Contains(err.Error(), "done again without harm") {
				t.Errorf("got %v, want a doubt and that it may be repeated", err)
			}
		})
	}
	c, _ := answering(t, 200, requeued)
	if _, err := c.Claimed(ref('a')).End(ctx, Outcome{}); err == nil {
		t.Error("an outcome that nobody made was settled")
	}
}
