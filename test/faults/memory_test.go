package faults

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Backlogs come and go, one after the other, and together are much more than the
// memory that the server was told to take. Each finds what the one before it had:
// there is never more than that and what docs/config.md allows beside it.
func TestA43MemoryOfABacklogComesBack(t *testing.T) {
	const mib = 1 << 20
	cycles, tasks, size := scale(3, 4), scale(1000, 500_000), scale(64<<10, 1<<10)
	aim := scale[int64](128*mib, memoryBytes)
	x := newSite(t, "--memory", fmt.Sprintf("%dMiB", aim/mib), "--retention", "1s")
	idle := x.server.ResidentBytes()
	for cycle := range cycles {
		began := time.Now()
		x.postAlike(tasks, scale(10, 1000), size)
		full := x.server.ResidentBytes()
		x.claimAll(tasks, scale(10, 100))
		x.eventually(scale(patience, 30*time.Minute), "what ended is gone", func() bool {
			var page struct{ Tasks []struct{ ID string } }
			decode(t, x.ask(http.MethodGet, "/admin/queues/c/tasks?state=done&limit=1", "").Body, &page)
			return len(page.Tasks) == 0
		})
		empty := x.server.ResidentBytes()
		t.Logf("backlog %d in %v: %d MiB idle, %d MiB with %d tasks of %d bytes, %d MiB when all had gone", cycle+1,
			time.Since(began).Round(100*time.Millisecond), idle/mib, full/mib, tasks, size, empty/mib)
		if most := max(full, empty); most > aim+besideBytes {
			t.Fatalf("the server has %d MiB, it was told to take %d", most/mib, aim/mib)
		}
	}
}

// postAlike posts so many tasks with one payload of so many bytes, some at a time.
func (x *site) postAlike(tasks, each, size int) {
	x.t.Helper()
	one := fmt.Sprintf(`{"command":%q,"payload":"%s"}`, command, strings.Repeat("x", size))
	body := `{"tasks":[` + strings.Repeat(one+",", each-1) + one + `]}`
	var all bytes.Buffer
	for range tasks / each {
		if n := bytes.Count(x.exchange(&all, "/tasks/batch", body), []byte(`{"id":`)); n != each {
			x.t.Fatalf("%d of %d tasks are posted", n, each)
		}
	}
}

// claimAll claims and completes so many tasks, some at a time. It finds their
// names in the answers by what stands before them.
func (x *site) claimAll(tasks, each int) {
	x.t.Helper()
	claim := fmt.Sprintf(`{"commands":[%q],"count":%d,"waitSeconds":30,"leaseSeconds":3600}`, command, each)
	var all bytes.Buffer
	for done := 0; done < tasks; {
		rest := x.exchange(&all, "/tasks/claim/batch", claim)
		var results []string
		for more := true; more; more = len(rest) > 0 {
			var id, token []byte
			id, rest = behind(rest, `{"id":"`)
			token, rest = behind(rest, `"leaseToken":"`)
			_, rest, _ = bytes.Cut(rest, []byte("},"))
			results = append(results, fmt.Sprintf(`{"taskId":%q,"leaseToken":%q,"status":"COMPLETED","result":{}}`, id, token))
		}
		answer := x.exchange(&all, "/tasks/batch/results", `{"results":[`+strings.Join(results, ",")+`]}`)
		if bytes.Contains(answer, []byte(`"error"`)) {
			x.t.Fatalf("complete %d tasks: %.300s", len(results), answer)
		}
		done += len(results)
	}
}

// behind is the text from a mark to the next quote, and what follows.
func behind(text []byte, mark string) (word, rest []byte) {
	_, text, _ = bytes.Cut(text, []byte(mark))
	word, rest, _ = bytes.Cut(text, []byte(`"`))
	return word, rest
}

// exchange is ask for large bodies, which the race detector makes dear: nothing is
// copied or looked at that need not be, and posts are answered with ids alone. The
// answer is in all until the next.
func (x *site) exchange(all *bytes.Buffer, path, body string) []byte {
	x.t.Helper()
	request, err := http.NewRequestWithContext(x.ctx, http.MethodPost, x.server.URL()+"/v1/codeq"+path, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	request.Header.Set("Prefer", "return=minimal")
	once := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := once.Do(request)
	if err != nil {
		x.t.Fatalf("POST %s: %v", path, err)
	}
	all.Reset()
	_, err = all.ReadFrom(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK {
		x.t.Fatalf("POST %s: %d, %v: %.300s", path, answer.StatusCode, err, all.Bytes())
	}
	return all.Bytes()
}
