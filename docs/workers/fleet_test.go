package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// fleet is workers of both kinds at one queue, and how much was posted to it.
type fleet struct {
	t       *testing.T
	url     string
	scripts []*output
	posted  int
	late    time.Time
}

func (f *fleet) get(path string, into any) {
	f.t.Helper()
	response, err := http.Get(f.url + "/v1/codeq" + path)
	if err := errors.Join(err, read(response, into)); err != nil {
		f.t.Fatal(err)
	}
}

// post posts the next numbers.
func (f *fleet) post(count int) {
	f.t.Helper()
	items := make([]string, count)
	for n := range items {
		f.posted++
		items[n] = fmt.Sprintf(`{"command":"square","payload":%d}`, f.posted)
	}
	response, err := http.Post(f.url+"/v1/codeq/tasks/batch", "application/json", strings.NewReader(`{"tasks":[`+strings.Join(items, ",")+`]}`))
	var answer struct{ Results []struct{ Code string } }
	if err := errors.Join(err, read(response, &answer)); err != nil {
		f.t.Fatal(err)
	}
	for _, r := range answer.Results {
		if r.Code != "" {
			f.t.Fatalf("a post is refused with %s", r.Code)
		}
	}
}

// unfinished is how many tasks have not ended.
func (f *fleet) unfinished() int {
	f.t.Helper()
	var q struct{ Ready, Delayed, InProgress, Dlq int }
	f.get("/admin/queues/square", &q)
	if q.Delayed+q.Dlq > 0 {
		f.t.Fatalf("work went wrong: %+v", q)
	}
	return q.Ready + q.InProgress
}

// keep holds so many tasks unfinished until done says that it is enough; when
// that takes minutes somebody starves.
func (f *fleet) keep(backlog int, done func(shares []int) bool) {
	f.t.Helper()
	for {
		var shares []int
		byScripts := 0
		for _, said := range f.scripts {
			n := said.count("COMPLETED")
			shares, byScripts = append(shares, n), byScripts+n
		}
		left := f.unfinished()
		shares = append(shares, f.posted-left-byScripts) // those in sessions, nearly
		switch {
		case done(shares):
			f.t.Logf("of %d tasks the scripts and those in sessions have done %v", f.posted, shares)
			return
		case time.Now().After(f.late):
			f.t.Fatalf("somebody starves: %v", shares)
		case left < backlog:
			f.post(backlog)
		}
		time.Sleep(10 * time.Millisecond) // programs work, and the figures of their queue tell nobody
	}
}

// atLeast says whether everybody has done so many more than before.
func atLeast(more int) func(shares []int) bool {
	var first []int
	return func(shares []int) bool {
		if first == nil {
			first = shares
		}
		for i, n := range shares {
			if n < first[i]+more {
				return false
			}
		}
		return true
	}
}

// Scripts with curl and workers in sessions empty one queue together. Nobody
// starves: not when all wait for the next task, and not when there is always
// more than they can do. Each task is done once.
func TestScriptsWithCurlAndSessionsEmptyOneQueue(t *testing.T) {
	mustHaveCurl(t)
	t.Setenv(asWorker, "1")
	f := &fleet{t: t, url: serve(t), late: time.Now().Add(4 * patience)}
	for range 3 {
		f.scripts = append(f.scripts, start(t, f.url, "sh", "worker_curl.sh"))
	}
	for range 2 {
		start(t, f.url, os.Args[0])
	}
	f.keep(1, atLeast(3))
	f.keep(200, atLeast(3))
	f.keep(0, func([]int) bool { return f.unfinished() == 0 })
	seen := 0
	for cursor := ""; ; {
		var page struct {
			Tasks []struct {
				Status               string
				Attempts, Deliveries int
			}
			Cursor string
		}
		f.get("/admin/queues/square/tasks?state=done&limit=500"+cursor, &page)
		for _, task := range page.Tasks {
			if seen++; task.Status != "COMPLETED" || task.Attempts != 0 || task.Deliveries != 1 {
				t.Fatalf("a task is %+v", task)
			}
		}
		if page.Cursor == "" {
			break
		}
		cursor = "&cursor=" + page.Cursor
	}
	if seen != f.posted {
		t.Errorf("%d tasks were posted, %d are done", f.posted, seen)
	}
}
