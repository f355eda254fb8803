package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codeq/client"
	"codeq/wire"
)

// exitsWanted are the exit codes of all refusals.
var exitsWanted = map[int]string{
	exitFailed: "unauthenticated forbidden not_owner lease_lost not_in_progress already_terminal idempotency_conflict queue_not_empty not_waiting " +
		"not_found method_not_allowed unsupported internal forbidden_host forbidden_origin version_conflict cluster_refused",
	exitWrong:    "invalid_body invalid_command invalid_priority invalid_time invalid_webhook invalid_result invalid_argument unknown_member too_large",
	exitNotThere: "task_not_found not_in_dlq queue_not_found session_not_found",
	exitAgain:    "result_not_found rate_limited overloaded draining not_leader storage_full auth_unavailable queue_deleted",
}

// A new code of the server or a new error of the client has to be given an exit code.
func TestU10EveryRefusalHasAnExitCode(t *testing.T) {
	var known []string
	for code, words := range exitsWanted {
		for _, word := range strings.Fields(words) {
			known = append(known, word)
			refusal := wire.Refuse(wire.Code(word), "a sentence")
			if got := exitCode(fmt.Errorf("around it: %w", refusal)); got != code {
				t.Errorf("%s ends with %d, want %d", word, got, code)
			}
		}
	}
	codes := constantsOf(t, "wire/code.go", "Code")
	slices.Sort(codes)
	slices.Sort(known)
	if !slices.Equal(codes, known) {
		t.Errorf("the server has %q, and this test %q", codes, known)
	}
	if got := exitCode(wire.Refuse("from_a_newer_server", "")); got != exitFailed {
		t.Errorf("an unknown code ends with %d", got)
	}
}

func TestU10EveryErrorOfTheClientHasAnExitCode(t *testing.T) {
	table := map[string]struct {
		err  error
		code int
	}{
		"ErrOutcomeUnknown": {fmt.Errorf("%w: %w", client.ErrOutcomeUnknown, wire.Refuse(wire.CodeForbidden, "")), exitAgain},
		"ErrClosed":         {client.ErrClosed, exitFailed},
		"ErrLeaseLost":      {client.ErrLeaseLost, exitFailed},
		"ErrTimeout":        {client.ErrTimeout, exitFailed},
		"ErrStopping":       {client.ErrStopping, exitFailed},
		"ErrGraceOver":      {client.ErrGraceOver, exitFailed},
		"ErrRedirected":     {client.ErrRedirected, exitFailed},
		"ErrNotCodeq":       {client.ErrNotCodeq, exitFailed},
		"nothing":           {nil, exitFine},
		"anything":          {errors.New("anything"), exitFailed},
		"deadline":          {context.DeadlineExceeded, exitAgain},
		"a mistake":         {fmt.Errorf("around it: %w", wrong("no")), exitWrong},
		"later":             {tryAgain("later"), exitAgain},
		"said":              {errSaid, exitFailed},
		"said and later":    {saidBefore(exitAgain), exitAgain},
	}
	for name, row := range table {
		if got := exitCode(row.err); got != row.code {
			t.Errorf("%s ends with %d, want %d", name, got, row.code)
		}
	}
	for _, name := range constantsOf(t, "client/errors.go", "Err") {
		if _, known := table[name]; !known {
			t.Errorf("%s has no exit code in this test", name)
		}
	}
	for _, c := range [][3]int{{0, 0, 0}, {0, 75, 75}, {75, 0, 75}, {75, 1, 1}, {1, 75, 1}, {1, 0, 1}} {
		if got := worseExit(c[0], c[1]); got != c[2] {
			t.Errorf("%d and %d end with %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// What a script sees of a server.
func TestU10ExitCodesOfCommands(t *testing.T) {
	h := newHouse(t)
	id := h.fine("enqueue", "mail", "1")
	for _, c := range []struct {
		code int
		args []string
	}{
		{exitNotThere, []string{"task", heldID}},
		{exitNotThere, []string{"cancel", heldID}},
		{exitNotThere, []string{"result", heldID}},
		{exitNotThere, []string{"dlq", "replay", heldID}},
		{exitNotThere, []string{"dlq", "replay", id}},
		{exitNotThere, []string{"claim", "nothing"}},
		{exitNotThere, []string{"task", "claim", "nothing", "--json"}},
		{exitAgain, []string{"result", id}},
		{exitAgain, []string{"result", id, "--wait", "1"}},
		{exitAgain, []string{"enqueue", "slow", "1", "--wait", "1"}},
		{exitAgain, []string{"enqueue", "slow", "--file", fileOf(t, "1\n2\n"), "--wait", "1"}},
		{exitNotThere, []string{"task", "list", "nothing"}},
		{exitFine, []string{"task", "list", "mail", "--state", "dlq"}},
		{exitFine, []string{"cancel", id}},
		{exitFailed, []string{"result", id}},
		{exitFailed, []string{"complete", id, heldToken, "{}"}},
		{exitWrong, []string{"queue", "set", "mail", "--create", "--backoff", "never"}},
		{exitWrong, []string{"queue", "set", "mail", "--create", "--target-window", "5"}},
		{exitWrong, []string{"cancel", "mail", "--limit", "0"}},
		{exitWrong, []string{"cancel", id, "--limit", "0"}},
		{exitWrong, []string{"task", "run", "mail", "--limit", "0"}},
		{exitWrong, []string{"task", "move", "mail", "--to", "1", "--limit", "0"}},
		{exitWrong, []string{"task", "list", "mail", "--limit", "0"}},
		{exitWrong, []string{"dlq", "list", "mail", "--limit", "0"}},
		{exitWrong, []string{"dlq", "reasons", "mail", "--most", "0"}},
		{exitWrong, []string{"dlq", "replay", "mail", "--limit", "0"}},
		{exitWrong, []string{"dlq", "purge", "mail", "--limit", "0"}},
	} {
		if code, out, errs := h.run("", c.args...); code != c.code {
			t.Errorf("%q: exit code %d, want %d\n%s%s", c.args, code, c.code, out, errs)
		}
	}
}

// The page in the program and the one in docs say the same.
func TestU10ExitCodesAreDocumented(t *testing.T) {
	code, out, errs := codeq("", "help", "exit-codes")
	if code != exitFine || errs != "" {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range exitTable {
		has(t, out, fmt.Sprint(row.code), row.word, row.meaning)
		has(t, string(page), fmt.Sprintf("| %d | %s | %s |", row.code, row.word, row.meaning))
	}
}
