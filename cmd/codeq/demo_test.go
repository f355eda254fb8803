package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDemoFillsAServerThatHasOtherQueues(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	p := start(t, "demo", "--json", "--url", said.URL)
	p.out.await(t, said.URL+"/ui/")
	want := map[string]func(q demoFigures) bool{
		"demo.ml.embed":        func(q demoFigures) bool { return q.Paused && q.Ready > 0 },
		"demo.report.daily":    func(q demoFigures) bool { return q.Ready > 0 && q.InProgress == 0 },
		"demo.import.csv":      func(q demoFigures) bool { return q.InProgress > 0 },
		"demo.search.index":    func(q demoFigures) bool { return q.Ready+q.InProgress+q.Delayed >= 0 },
		"demo.webhook.partner": func(q demoFigures) bool { return q.Delayed > 0 }, // it failed and waits
	}
	for late := time.Now().Add(time.Minute); len(want) > 0; {
		_, out, errText := codeq("", "--json", "queues", "--url", said.URL)
		var list struct{ Queues []demoFigures }
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("%s%s: %v", out, errText, err)
		}
		for _, q := range list.Queues {
			if !strings.HasPrefix(q.Command, demoPrefix) {
				t.Fatalf("the queue %s is not of the demo", q.Command)
			}
			if holds := want[q.Command]; holds != nil && holds(q) {
				delete(want, q.Command)
			}
		}
		if time.Now().After(late) {
			t.Fatalf("never seen: %v, last %s", want, out)
		}
	}
	p.signal(os.Interrupt)
	if code := p.exit(); code != exitFine {
		t.Errorf("exit %d: %s", code, p.err)
	}
}

type demoFigures struct {
	Command                    string
	Ready, Delayed, InProgress int
	Paused                     bool
}

func TestDemoStartsAServerAndRemovesItsData(t *testing.T) {
	t.Setenv(asCodeq, "1")
	t.Setenv("CODEQ_URL", "http://127.0.0.1:1") // must not be looked at
	t.Setenv("TMPDIR", t.TempDir())
	code, out, errText := codeq("", "demo", "--seconds", "1")
	if code != exitFine || !strings.HasPrefix(out, "the server is at http://127.0.0.1:") {
		t.Errorf("exit %d: %s%s", code, out, errText)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "*")); err != nil || left != nil {
		t.Errorf("it left %v, %v", left, err)
	}
}

func TestDemoDrawsTheSameForASeed(t *testing.T) {
	a, b, other := &demo{demoCmd: &demoCmd{Seed: 7}}, &demo{demoCmd: &demoCmd{Seed: 7}}, &demo{demoCmd: &demoCmd{Seed: 8}}
	drawn := map[uint64]bool{}
	for i := range demoQueues {
		q := &demoQueues[i]
		n := a.drawn(q, 3, 1).Uint64()
		if n != b.drawn(q, 3, 1).Uint64() || n == other.drawn(q, 3, 1).Uint64() || drawn[n] {
			t.Errorf("%s draws %d", q.command, n)
		}
		drawn[n] = true
	}
}
