package faults

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"codeq/wire"
)

// told are the server-sent events of a task from an id on, until one has a text.
func (x *site) told(id wire.TaskID, last, until string) (lines []string, lastID string) {
	x.t.Helper()
	ctx, stop := context.WithTimeout(x.ctx, patience)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/v1/codeq/events?kind=task&taskId=%v", x.server.Addr, id), nil)
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	for scan := bufio.NewScanner(answer.Body); scan.Scan(); {
		if id, found := strings.CutPrefix(scan.Text(), "id: "); found {
			lastID = id
		}
		if data, found := strings.CutPrefix(scan.Text(), "data: "); found {
			lines = append(lines, data)
			if strings.Contains(data, until) {
				return lines, lastID
			}
		}
	}
	x.t.Fatalf("the stream of %v ended before %s: %q", id, until, lines)
	return nil, ""
}

func (x *site) report(id wire.TaskID, verb, body string) {
	x.t.Helper()
	if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/"+id.String()+"/"+verb, body); err != nil {
		x.t.Fatalf("%s %s: %v", verb, body, err)
	}
}

// mustShow fails unless one line has all texts.
func mustShow(t *testing.T, lines []string, texts ...string) {
	t.Helper()
	for _, line := range lines {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			return
		}
	}
	t.Errorf("none of %q has %q", lines, texts)
}

// What a worker reports is seen at once. Over a kill the progress stays, the output is gone and a gap
// says so; the progress stays with the task when that has failed.
func TestReportsAreSeenAndProgressOutlivesAKill(t *testing.T) {
	x := newSite(t)
	id := x.post("c", 1, 10)[0]
	if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/claim", `{"commands":["c"],"waitSeconds":10}`); err != nil {
		t.Fatal(err)
	}
	x.report(id, "progress", `{"percent":40,"note":"half way","data":{"page":2}}`)
	x.report(id, "output", `{"text":"page 1\npage 2\n"}`)
	if p := x.read(id).Progress; p == nil || p.Percent != 40 || p.Note != "half way" || string(p.Data) != `{"page":2}` || p.Delivery != 1 {
		t.Errorf("the progress is %+v", p)
	}
	lines, last := x.told(id, "", `"type":"output"`)
	mustShow(t, lines, `"type":"progress"`, `"percent":40,"note":"half way","data":{"page":2}`, `"delivery":1`)
	mustShow(t, lines, `"type":"output"`, `"stream":"stdout","text":"page 1\npage 2\n"`)
	x.report(id, "output", `{"stream":"stderr","text":"page 3\n"}`)
	lines, last = x.told(id, last, `page 3`)
	if len(lines) != 2 { // the welcome, and what is new
		t.Errorf("a stream that resumes got %q", lines)
	}
	for n := 41; n < 50; n++ {
		x.report(id, "progress", fmt.Sprintf(`{"percent":%d}`, n))
	}
	pause(x.ctx, 1200*time.Millisecond) // the last one is on disk a second after it came
	x.server.Kill()
	x.server.Start()
	if task := x.read(id); task.Progress == nil || task.Progress.Percent != 49 || !task.Printed {
		t.Errorf("after a kill the task is %+v", task)
	}
	x.report(id, "output", `{"text":"page 4\n"}`)
	lines, _ = x.told(id, last, `page 4`)
	mustShow(t, lines, `"type":"gap"`, `"reason":"restarted"`, `"of":"output"`)
	x.report(id, "result", `{"status":"FAILED","error":"no"}`)
	if task := x.read(id); task.Status != wire.StatusFailed || task.Progress == nil || task.Progress.Percent != 49 {
		t.Errorf("the dead letter is %+v", task)
	}
	lines, _ = x.told(id, "", `page 4`) // the ring still has it
	mustShow(t, lines, `"type":"snapshot"`, `"status":"FAILED"`, `"percent":49`)
}
