package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/client"
	"codeq/wire"
)

// A command that asks in parts asks each time for what is left, and for no more than a
// server gives at once. Here the server always has more, and gives part of what is
// asked for.
func TestEveryPartIsAskedForWhatIsLeft(t *testing.T) {
	task := string(wire.AppendTask(nil, &wire.Task{
		ID: wire.TaskID{15: 1}, Command: "q", Payload: []byte("1"), Status: wire.StatusPending, Location: wire.LocationPending,
		MaxAttempts: 5, TenantID: "default", CreatedAtMs: 1, UpdatedAtMs: 1,
	}, wire.PayloadAsString))
	tasks := func(n int) string {
		return `{"tasks":[` + strings.TrimSuffix(strings.Repeat(task+",", n), ",") + `],"cursor":"next"}`
	}
	reasons := func(n int) string { return fmt.Sprintf(`{"reasons":[],"read":%d,"cursor":"next"}`, n) }
	done := func(n int) string {
		return fmt.Sprintf(`{"replayed":%d,"remaining":9,"cursor":"next"}`, n)
	}
	for _, c := range []struct {
		args   string
		part   int
		answer func(n int) string
		want   []int // limits of the requests
	}{
		{"dlq reasons q --most 1000", 400, reasons, []int{1000, 600, 200}},
		{"dlq reasons q --most 25000", 1 << 20, reasons, []int{wire.MaxEndedTasks, wire.MaxEndedTasks, 5000}},
		{"dlq replay q --limit 700", 300, done, []int{700, 400, 100}},
		{"dlq replay q --limit 2500", 1 << 20, done, []int{bulkPart, bulkPart, 500}},
		{"dlq purge q --limit 700", 300, done, []int{700, 400, 100}},
		{"dlq purge q --limit 2500", 1 << 20, done, []int{bulkPart, bulkPart, 500}},
		{"tasks q -n 5", 2, tasks, []int{5, 3, 1}},
		{"tasks q -n 1100", 1 << 20, tasks, []int{wire.MaxListTasks, wire.MaxListTasks, 100}},
		{"dlq list q --limit 5", 2, tasks, []int{5, 3, 1}},
	} {
		limit := regexp.MustCompile(`limit"?[=:](\d+)`)
		var asked []int
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			said := limit.FindStringSubmatch(r.URL.RawQuery + string(body))
			if err != nil || said == nil || (len(asked) > 0) != strings.Contains(r.URL.RawQuery+string(body), "next") {
				t.Errorf("%s: request %d is %s %s, %v", c.args, len(asked), r.URL, body, err)
				return
			}
			n, _ := strconv.Atoi(said[1]) // it is digits
			asked = append(asked, n)
			_, _ = io.WriteString(w, c.answer(min(n, c.part))) // whoever asked looks at it
		}))
		code, _, errs := codeq("", append([]string{"--url", server.URL}, strings.Fields(c.args)...)...)
		server.Close()
		if code != exitFine || !slices.Equal(asked, c.want) {
			t.Errorf("%s: asked for %d, want %d; exit code %d, errors %q", c.args, asked, c.want, code, errs)
		}
	}
}

// A task with a key is posted for a minute if nothing answers, or for as long as its
// result would be waited for if that is longer.
func TestTaskWithAKeyIsPostedAsLongAsItsResultIsWaitedFor(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{
		0: giveUpAfter, giveUpAfter - 1: giveUpAfter, giveUpAfter + 1: giveUpAfter + 1, 10 * time.Minute: 10 * time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			silent := func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, far) }() // until the other end is closed
				return near, nil
			}
			c, err := client.New("http://queue.test", client.WithDial(silent))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			began := time.Now()
			err = (&enqueueCmd{Wait: wait}).postOne(context.Background(), newTerminal("").app, c,
				&wire.EnqueueRequest{Command: "q", Payload: []byte("1"), IdempotencyKey: "k"})
			took := time.Since(began)
			if took != want || !errors.Is(err, client.ErrOutcomeUnknown) {
				t.Errorf("with --wait %s it is posted for %s, want %s: %v", wait, took, want, err)
			}
		})
	}
}
