package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

const (
	// delayedTasks wait for their time beside the one that is stuck, deadTasks are
	// dead letters.
	delayedTasks = 1500
	deadTasks    = 300
)

// momentPattern is how times are printed.
var momentPattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)

// lastedPattern is how long a delivery lasted.
var lastedPattern = regexp.MustCompile(`for [0-9.]+m?s`)

// desk is where an operator sits, who has the command line and nothing else.
type desk struct {
	t   *testing.T
	url string
	// names are what the test cannot know before, and what it calls them.
	names []string
}

// says runs one command, which must end well, and compares all that it prints
// on both streams, but for times and names.
func (d *desk) says(want string, args ...string) {
	d.t.Helper()
	code, out, errs := command(d.t, d.url, args...)
	text := momentPattern.ReplaceAllString(strings.NewReplacer(d.names...).Replace(out+errs), "SOME TIME")
	text = lastedPattern.ReplaceAllString(text, "for SO LONG")
	if code != exitFine || text != want {
		d.t.Errorf("codeq %s: exit code %d\n%s\nwant\n%s", strings.Join(args, " "), code, text, want)
	}
}

// fail has a worker that takes so many tasks and fails each.
func (d *desk) fail(address, queue string, tasks int, reason string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 5*time.Minute)
	defer cancel()
	p, err := blackbox.Dial(ctx, address, &wire.Hello{WorkerID: "box-7"})
	if err != nil {
		d.t.Fatal(err)
	}
	defer p.Close()
	if err := p.Subscribe(ctx, queue, tasks, 600); err != nil {
		d.t.Fatal(err)
	}
	_, err = p.AskTogether(ctx, tasks, func(ref wire.Ref) wire.ClientFrame {
		select {
		case f := <-p.Tasks:
			return &wire.Nack{Ref: ref, TaskRef: blackbox.RefOf(f), NackRequest: wire.NackRequest{DelaySeconds: 600, Reason: reason}}
		case <-ctx.Done():
			d.t.Fatalf("not all tasks of %s come", queue)
			return nil
		}
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// lines is a file with so many payloads.
func lines(t *testing.T, n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "{\"n\":%d}\n", i)
	}
	return fileOf(t, text.String())
}

// An operator finds the one task that is stuck among thousands, is told why it
// waits, has a thousand dead letters tried again, takes a backup of the running
// server, has it examined and restores it: each with one command.
func TestOperatorNeedsOneCommandForEachThing(t *testing.T) {
	dir := t.TempDir()
	_, said := serve(t, filepath.Join(dir, "data"), "127.0.0.1:0")
	d := &desk{t: t, url: said.URL}
	for _, args := range [][]string{
		{"enqueue", "invoice", "--file", lines(t, delayedTasks), "--delay", "1h"},
		{"enqueue", "thumbnail", "--file", lines(t, deadTasks), "--max-attempts", "1"},
	} {
		if code, out, errs := command(t, d.url, args...); code != exitFine {
			t.Fatalf("%q: exit code %d, %q, errors %q", args, code, out, errs)
		}
	}
	_, id, _ := command(t, d.url, "enqueue", "invoice", `{"customer":4711}`)
	id = strings.TrimSpace(id)
	d.fail(said.Address, "invoice", 1, "the ledger does not answer")
	d.fail(said.Address, "thumbnail", deadTasks, "the disk of box-7 is full")

	d.names = []string{id, "THE-TASK", dir, "DIR"}
	d.says(`COMMAND    READY  DELAYED  IN PROGRESS  DEAD  PAUSED  OLDEST READY
invoice    0      1501     0            0     no      -
thumbnail  0      0        0            300   no      -
`, "queues")
	d.says(`TASK                                  STATUS   PRIORITY  FAILED  DELIVERIES  WORKER  DUE                       UPDATED                   ERROR
THE-TASK  PENDING  0         1 of 5  1           -       SOME TIME  SOME TIME  the ledger does not answer
`, "tasks", "invoice", "--state", "delayed", "--error", "ledger")
	sheet := `task        THE-TASK
command     invoice
status      PENDING
place       delayed
priority    0
failed      1 of 5
deliveries  1
due         SOME TIME
waits       delayed, due SOME TIME
error       the ledger does not answer
created     SOME TIME
updated     SOME TIME
payload     {"customer":4711}
delivery 1  nack, SOME TIME for SO LONG, worker box-7: the ledger does not answer
`
	d.says(sheet, "task", id)
	d.says("codeq: 300 dead letters of thumbnail are ready again, 0 are left\n", "dlq", "replay", "thumbnail")
	copied := filepath.Join(dir, "copy")
	if code, out, errs := command(t, d.url, "backup", copied); code != exitFine {
		t.Fatalf("backup: exit code %d, %q, errors %q", code, out, errs)
	}
	d.says("codeq: DIR/copy is in order\n", "doctor", copied)
	restored := filepath.Join(dir, "restored")
	if code, out, errs := command(t, d.url, "restore", copied, restored); code != exitFine {
		t.Fatalf("restore: exit code %d, %q, errors %q", code, out, errs)
	}
	_, again := serve(t, restored, "127.0.0.1:0")
	d.url = again.URL
	d.says(sheet, "task", id)
	_, out, _ := command(t, d.url, "queues")
	has(t, out, "thumbnail  300    0        0            0     no ")
}
