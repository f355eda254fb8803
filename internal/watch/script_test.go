package watch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"codeq/internal/auth"
	"codeq/internal/events"
	"codeq/internal/needs"
	"codeq/record"
	"codeq/wire"
)

// scriptEpochMs is where the time of every script begins: 2026-01-01 UTC.
const scriptEpochMs = 1_767_225_600_000

// script is a subscriber over a board and a log of two shards with rings of four events.
type script struct {
	log   *fakeLog
	board *Board
	sub   *Subscriber
	nowMs int64
	// tasks are those of every list.
	tasks []*wire.Task
}

// TestScripts: what happened in, frames out. `go test ./internal/watch -rewrite` makes the
// scripts anew; the diff is the review.
func TestScripts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		s := &script{log: newFakeLog(2, 4), nowMs: scriptEpochMs}
		s.board = NewBoard(s.log.facts())
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.run(t, d)
		})
	}
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "open": // tenant, scope, stream?
		var tenant, scope string
		d.ScanArgs(t, "tenant", &tenant)
		d.ScanArgs(t, "scope", &scope)
		sub, refusal := NewSubscriber(s.board, principal(tenant, scope), s.nowMs)
		if refusal != nil {
			return refusal.Error()
		}
		if d.HasArg("stream") {
			sub.format = asStream
		}
		s.sub = sub
	case "renew": // scope
		return s.renew(t, d)
	case "queues": // slot tenant command ready oldest dead; a slot alone is a queue that is gone
		for line := range strings.Lines(d.Input) {
			var name wire.SlotName
			var f wire.Figures
			// A short line leaves the rest as it is.
			_, _ = fmt.Sscan(line, &name.Slot, &name.Tenant, &name.Command, &f[wire.FigureReady], &f[wire.FigureOldestReadyAt], &f[wire.FigureDead])
			s.board.Set(name, &f, 0)
		}
	case "events": // shard slot cause
		for line := range strings.Lines(d.Input) {
			var shard int
			r := events.Record{AtMs: s.nowMs, Task: wire.TaskID{6: 0x70, 8: 0x80, 15: 1}, To: wire.LocationPending, SpentMs: 7}
			var cause string
			if _, err := fmt.Sscan(line, &shard, &r.Slot, &cause); err != nil {
				d.Fatalf(t, "%v", err)
			}
			r.Cause = record.Cause(slices.Index(causes, cause) + 1)
			s.log.add(shard, r)
		}
		s.board.At = s.log.Positions()
	case "points":
		s.log.points = append(s.log.points, wire.WatchPoint{AtMs: s.nowMs})
	case "later":
		var ms int64
		d.ScanArgs(t, "ms", &ms)
		s.nowMs += ms
	case "client":
		return s.client(d)
	case "next":
		return s.next()
	default:
		return s.outside(t, d)
	}
	return ""
}

// outside sets what a subscriber sees beside the queues and their events.
func (s *script) outside(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "sessions": // of a tenant: number command held
		var tenant string
		d.ScanArgs(t, "tenant", &tenant)
		s.log.sessions[tenant] = nil
		for line := range strings.Lines(d.Input) {
			f := wire.SessionFigures{
				Subject: "bob", Commands: make([]string, 1), Window: 8, State: wire.SessionLive, ConnectedAtMs: scriptEpochMs, LastSeenAtMs: s.nowMs,
			}
			if _, err := fmt.Sscan(line, &f.ID[0], &f.Commands[0], &f.Held); err != nil {
				d.Fatalf(t, "%v", err)
			}
			s.log.sessions[tenant] = append(s.log.sessions[tenant], f)
		}
	case "server": // level of the disk guard
		s.log.server = wire.ServerFigures{Version: "1.0.0", DiskGuard: d.Input, Shards: make([]wire.ShardFigures, 1)}
		s.log.dead = needs.DeadLetters{SinceMs: scriptEpochMs, Reason: "secret", Of: 7, Same: 5}
	case "tasks": // number attempts
		s.tasks = nil
		for line := range strings.Lines(d.Input) {
			task := scriptTask()
			if _, err := fmt.Sscan(line, &task.ID[15], &task.Attempts); err != nil {
				d.Fatalf(t, "%v", err)
			}
			s.tasks = append(s.tasks, task)
		}
	case "event": // of task 1 to 9: number from to
		var n int
		r := events.Record{AtMs: s.nowMs, Task: scriptTask().ID, Cause: record.CauseResult}
		d.ScanArgs(t, "task", &n)
		for _, end := range []struct {
			name string
			at   *wire.Location
		}{{"from", &r.From}, {"to", &r.To}} {
			var state string
			d.MaybeScanArgs(t, end.name, &state)
			*end.at = wire.LocationOf(state)
		}
		r.Task[15] = byte(n)
		s.log.add(0, r)
		s.board.At = s.log.Positions()
	case "read":
		f, rows := s.sub.Wants(s.nowMs)
		if f == nil {
			return "nothing"
		}
		shows := &Shows{At: s.log.Positions(), Page: &wire.WatchSnapshot{}}
		shows.Page.Tasks = s.tasks
		for _, t := range s.tasks {
			if slices.Contains(rows, t.ID) {
				shows.Rows = append(shows.Rows, t)
			}
		}
		s.sub.Show(s.nowMs, f, shows)
		return fmt.Sprint(f.ID, " with rows ", len(rows))
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return ""
}

func (s *script) renew(t *testing.T, d *datadriven.TestData) string {
	var scope string
	d.ScanArgs(t, "scope", &scope)
	if refusal := s.sub.Renew(principal(s.sub.rights.tenant, scope)); refusal != nil {
		return refusal.Error()
	}
	return ""
}

// client takes one message, each frame with what the store would say.
func (s *script) client(d *datadriven.TestData) string {
	list, violation := wire.ParseWatchRequest([]byte(d.Input))
	if violation != nil {
		return violation.Error()
	}
	for _, f := range list {
		shows := &Shows{At: s.log.Positions(), Task: scriptTask(), Page: &wire.WatchSnapshot{}}
		shows.Page.Tasks = s.tasks
		if ask, ok := f.(*wire.WatchSubscribe); ok && ask.Filter != nil {
			shows.Page.Scanned, shows.Page.Cursor = new(int64(20_000)), "next"
		}
		if d.HasArg("missing") {
			shows.Err = wire.Refuse(wire.CodeTaskNotFound, "there is no such task")
		}
		s.sub.Take(s.nowMs, f, shows)
	}
	return ""
}

func scriptTask() *wire.Task {
	return &wire.Task{
		ID: wire.TaskID{6: 0x70, 8: 0x80, 15: 1}, Command: "mail", Payload: []byte(`"secret"`), Error: "\nsecret\nof more lines",
		Location: wire.LocationDead, History: []wire.HistoryLine{{Delivery: 1, Cause: "nack", Error: "secret"}},
	}
}

// next is the next message, a frame a line.
func (s *script) next() string {
	message := string(s.sub.Next(s.nowMs))
	if message == "" {
		return "nothing"
	}
	return strings.ReplaceAll(strings.ReplaceAll(message, `},{"type"`, "},\n"+`{"type"`), "\n\n", "\n.\n")
}

// TestWorkersAndProducersSeeNoFigures: only who may see the queues may watch them.
func TestWorkersAndProducersSeeNoFigures(t *testing.T) {
	t.Parallel()
	board := NewBoard(newFakeLog(1, 1).facts())
	for scope, may := range map[string]bool{
		auth.ScopeProduce: false, auth.ScopeSubscribe: false, auth.ScopeRead: true, auth.ScopeAdmin: true, auth.ScopeAdminAll: true,
	} {
		if _, refusal := NewSubscriber(board, principal("t", scope), 0); (refusal == nil) != may {
			t.Errorf("%s: %v", scope, refusal)
		}
	}
}
