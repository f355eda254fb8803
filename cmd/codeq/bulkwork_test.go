package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/client"
)

// slowly is a server that does 500 tasks in each 2 seconds and has so many of them.
func slowly(parts int) bulkCall {
	return func(_ *client.Client, _ context.Context, q client.BulkQuery) (*client.BulkAnswer, error) {
		time.Sleep(2 * time.Second) // of a bubble
		if parts--; parts == 0 {
			return &client.BulkAnswer{Done: 1}, nil
		}
		return &client.BulkAnswer{Done: 500, Cursor: fmt.Sprint("c", parts)}, nil
	}
}

// work runs a command about many tasks and returns what it said.
func workSlowly(parts int, quiet bool, stopAfter time.Duration) (string, error) {
	tt := newTerminal("")
	tt.app.URL, tt.app.Quiet = "http://127.0.0.1:1", quiet
	if stopAfter > 0 {
		time.AfterFunc(stopAfter, func() { tt.stops <- os.Interrupt })
	}
	query := func() (client.BulkQuery, error) { return client.BulkQuery{Command: "mail"}, nil }
	err := tt.app.workOn("mail", 0, query, &bulkVerb{what: "task", became: "are cancelled", would: "would be cancelled", many: slowly(parts)})
	return tt.err.String(), err
}

func TestU05LongWorkSaysHowFarItCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said, err := workSlowly(12, false, 0)
		want := "codeq: 2500 tasks of mail are cancelled so far\ncodeq: 5000 tasks of mail are cancelled so far\ncodeq: 5501 tasks of mail are cancelled\n"
		if err != nil || said != want {
			t.Errorf("it says %q and ends with %v, want %q", said, err, want)
		}
		if said, err := workSlowly(12, true, 0); err != nil || said != "" {
			t.Errorf("with -q it says %q and ends with %v", said, err)
		}
		if said, err := workSlowly(1, false, 0); err != nil || said != "codeq: 1 task of mail is cancelled\n" {
			t.Errorf("of one it says %q and ends with %v", said, err)
		}
	})
}

func TestU05StoppedWorkSaysHowToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := "1000 tasks of mail are cancelled before the command ended: stopped by interrupt; the same command with --cursor c2 continues"
		if _, err := workSlowly(4, false, 3*time.Second); err == nil || err.Error() != want {
			t.Errorf("it ends with %v, want %s", err, want)
		}
	})
}

// The cursor of a command that was stopped names what was there when it began.
func TestU05CursorGoesOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.fine("enqueue", "mail", "--file", fileOf(t, strings.Repeat("1\n", 4)))
	_, cursor, found := strings.Cut(h.fine("cancel", "mail", "--limit", "2", "--json"), `"cursor":"`)
	cursor, _, _ = strings.Cut(cursor, `"`)
	if !found {
		t.Fatal("the answer has no cursor")
	}
	h.fine("enqueue", "mail", "2")
	code, _, errs := h.run("", "task", "cancel", "mail", "--all", "--cursor", cursor)
	if want := "codeq: 2 tasks of mail are cancelled\n"; code != exitFine || errs != want {
		t.Errorf("exit code %d, said %q, want %q", code, errs, want)
	}
}
