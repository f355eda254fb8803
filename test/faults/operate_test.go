package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// pageFor is how long a page of figures is shown before it is made anew.
const pageFor = 1100 * time.Millisecond

// freshPage is a page of figures that was made after the call.
func (x *site) freshPage() string {
	pause(x.ctx, pageFor)
	return x.server.Metrics()
}

func (x *site) ask(method, path, body string) *blackbox.Answer {
	x.t.Helper()
	answer, err := x.api.Do(x.ctx, method, path, body)
	if err != nil {
		x.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer
}

// retryAfter sets the time between two attempts of the command.
func (x *site) retryAfter(seconds int) {
	x.t.Helper()
	x.ask(http.MethodPut, "/admin/queues/"+command, fmt.Sprintf(`{"backoff":{"policy":"fixed","baseSeconds":%d}}`, seconds))
}

// arrived makes sure that the server knows that the worker has a task.
func (x *site) arrived(p *blackbox.Peer, f *wire.TaskFrame) {
	x.t.Helper()
	if _, err := p.Ask(x.ctx, func(ref wire.Ref) wire.ClientFrame {
		return &wire.Heartbeat{Ref: ref, Tasks: []wire.TaskRef{blackbox.RefOf(f)}}
	}); err != nil {
		x.t.Fatalf("heartbeat: %v", err)
	}
}

// finish has so many tasks of the command done by one worker.
func (x *site) finish(tasks int) {
	x.t.Helper()
	l := newLedger(x)
	stop := x.inBackground((&hand{ledger: l, addr: x.server.Addr, name: "drain", window: 100, lease: 600}).run)
	defer stop()
	x.eventually(scale(resumeGrace+patience, 30*time.Minute), fmt.Sprintf("%d tasks are done", tasks), func() bool {
		completed, _ := l.counts()
		return completed >= tasks
	})
}

// Workers hold all they can and are killed, and so is the server. What they held
// is done by others, and every figure comes back to zero.
func TestA20FiguresComeBackToZero(t *testing.T) {
	tasks := scale(100, 1000)
	x := newSite(t)
	x.post(command, tasks, 0)
	w := x.worker(x.server.Addr, "doomed", tasks, 600)
	x.takeAll(w, tasks, patience)
	x.inProgress(tasks, patience)
	w.Close()
	x.server.Kill()
	x.server.Start()
	x.finish(tasks)
	x.eventually(patience, "nothing is counted", func() bool {
		q := x.figures(command)
		return q.Ready+q.Delayed+q.InProgress+q.Dead == 0
	})
	page := x.freshPage()
	for _, name := range []string{"ready", "delayed", "in_progress", "dead"} {
		series := fmt.Sprintf(`codeq_queue_%s_tasks{tenant="default",command=%q}`, name, command)
		if n := blackbox.Figure(page, series); n != 0 {
			t.Errorf("%s is %v", series, n)
		}
	}
}

// A task ends in every way that is no result. It is dead after as many failures
// as it may have, whatever they were, a hand-back is none, and its history says
// why each delivery ended.
func TestA21EveryEndCountsOnce(t *testing.T) {
	x := newSite(t)
	x.retryAfter(1)
	id := x.post(command, 1, 0)[0]
	said := func(make func(ref wire.Ref, task wire.TaskRef) wire.ClientFrame) func(p *blackbox.Peer, f *wire.TaskFrame) {
		return func(p *blackbox.Peer, f *wire.TaskFrame) {
			if _, err := p.Ask(x.ctx, func(ref wire.Ref) wire.ClientFrame { return make(ref, blackbox.RefOf(f)) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	nack := said(func(ref wire.Ref, task wire.TaskRef) wire.ClientFrame { return &wire.Nack{Ref: ref, TaskRef: task} })
	release := said(func(ref wire.Ref, task wire.TaskRef) wire.ClientFrame { return &wire.Release{Ref: ref, TaskRef: task} })
	abandon := said(func(ref wire.Ref, task wire.TaskRef) wire.ClientFrame { return &wire.Abandon{Ref: ref, TaskRef: task} })
	expire := func(p *blackbox.Peer, _ *wire.TaskFrame) {
		select {
		case <-p.Revoked:
		case <-time.After(patience):
			t.Fatal("the lease does not end")
		}
	}
	leave := func(*blackbox.Peer, *wire.TaskFrame) {} // every worker here leaves at the end
	attempts := 0
	var causes []string
	for _, c := range []struct {
		cause string
		fails int
		lease int // seconds
		end   func(p *blackbox.Peer, f *wire.TaskFrame)
	}{
		{"nack", 1, 600, nack}, {"lease_expired", 1, 10, expire}, {"release", 0, 600, release}, {"session_gone", 1, 600, leave},
		{"release", 0, 600, release}, {"abandon", 1, 600, abandon}, {"nack", 1, 600, nack},
	} {
		p := x.worker(x.server.Addr, "w "+c.cause, 1, c.lease)
		f := x.take(p, patience)
		if f.Task.Attempts != attempts {
			t.Errorf("after %v the task has %d attempts, want %d", causes, f.Task.Attempts, attempts)
		}
		x.arrived(p, f)
		// It takes no more, or it would be given the task again before it leaves.
		said(func(ref wire.Ref, _ wire.TaskRef) wire.ClientFrame { return &wire.Window{Ref: ref, Size: 0} })(p, f)
		c.end(p, f)
		p.Close()
		attempts += c.fails
		causes = append(causes, c.cause)
	}
	task := x.read(id)
	if task.Status != wire.StatusFailed || task.Location != wire.LocationDead || task.Attempts != wire.DefaultMaxAttempts {
		t.Errorf("at the end the task is %+v", task)
	}
	var told []string
	for _, line := range task.History {
		told = append(told, line.Cause)
	}
	if fmt.Sprint(told) != fmt.Sprint(causes) {
		t.Errorf("the history says %v, want %v", told, causes)
	}
}

// One task ends the process of whoever works on it. It is dead after its
// attempts, and the tasks that were in the same processes are finished.
func TestA23PoisonStopsAfterItsAttempts(t *testing.T) {
	const neighbours, lives = 9, 3
	x := newSite(t)
	x.retryAfter(1)
	ids := x.post(command, neighbours, 0)
	poison, err := x.api.Post(x.ctx, fmt.Sprintf(`{"command":%q,"payload":"x","priority":9,"maxAttempts":%d}`, command, lives))
	if err != nil {
		t.Fatal(err)
	}
	for n := range lives {
		p := x.worker(x.server.Addr, fmt.Sprint("life ", n), neighbours+1, 5)
		f := x.take(p, patience)
		for f.Task.ID != poison.ID {
			f = x.take(p, patience)
		}
		x.arrived(p, f)
		p.Close()
	}
	x.eventually(patience, "the poison is dead", func() bool { return x.read(poison.ID).Status == wire.StatusFailed })
	task := x.read(poison.ID)
	if task.Location != wire.LocationDead || task.Attempts != lives || task.Error != wire.ErrorLeaseExpired {
		t.Errorf("the poison is %+v", task)
	}
	if n := len(task.History); n != lives || task.History[0].WorkerID != "life 0" {
		t.Errorf("its history is %+v", task.History)
	}
	x.finish(neighbours)
	for _, id := range ids {
		if record := x.outcome(id); record.Status != wire.StatusCompleted {
			t.Errorf("a neighbour ended as %+v", record)
		}
	}
}

// The server is killed beside a backlog. At its start it reads what it hands out
// next and no more, it is healthy, hands out tasks, and whoever had a task has it
// still.
func TestA40StartDoesNotReadTheBacklog(t *testing.T) {
	tasks := scale(22_000, 1_000_000)
	// What a shard keeps of one queue in memory, for four of them, and a little.
	const most = 4*4096 + 1000
	x := newSite(t)
	x.post(command, tasks, 0)
	var held struct{ ID, LeaseToken string }
	decode(t, x.ask(http.MethodPost, "/tasks/claim", `{"commands":["c"],"leaseSeconds":600}`).Body, &held)
	x.server.Kill()
	x.server.Start()
	for _, path := range []string{"/healthz", "/readyz"} {
		if answer := x.get(path); answer != http.StatusOK {
			t.Errorf("%s answers %d", path, answer)
		}
	}
	x.ask(http.MethodPost, "/tasks/"+held.ID+"/heartbeat", fmt.Sprintf(`{"leaseToken":%q}`, held.LeaseToken))
	var next struct{ ID string }
	decode(t, x.ask(http.MethodPost, "/tasks/claim", `{"commands":["c"]}`).Body, &next)
	if next.ID == "" || next.ID == held.ID {
		t.Errorf("the first task after the start is %q, %q is with somebody", next.ID, held.ID)
	}
	if steps := blackbox.Figure(x.freshPage(), "codeq_scan_steps_total"); steps > most {
		t.Errorf("the start went over %v keys beside %d tasks, want at most %d", steps, tasks, most)
	}
}

// Very many tasks have gone through a queue. Whoever looks at its head does not
// go over what was deleted.
func TestA41DeletedKeysAreNotWalkedOver(t *testing.T) {
	gone, left := scale(2000, 100_000), 10
	x := newSite(t)
	x.post(command, gone, 0)
	x.finish(gone)
	x.post(command, left, 0)
	var late []wire.TaskID
	for range scale(100, 10_000) {
		task, err := x.api.Post(x.ctx, `{"command":"c","payload":1,"delaySeconds":3600}`)
		if err != nil {
			t.Fatal(err)
		}
		late = append(late, task.ID)
	}
	for _, id := range late {
		x.ask(http.MethodPost, "/tasks/"+id.String()+"/cancel", "")
	}
	before := blackbox.Figure(x.freshPage(), "codeq_scan_steps_total")
	for range 3 {
		x.ask(http.MethodGet, "/admin/queues/c/tasks?state=ready&limit=10", "")
		x.ask(http.MethodGet, "/admin/queues/c/tasks?state=delayed&limit=10", "")
		x.ask(http.MethodPost, "/tasks/claim", `{"commands":["c"]}`)
	}
	after := blackbox.Figure(x.freshPage(), "codeq_scan_steps_total")
	if after-before > float64(gone)/2 {
		t.Errorf("a few looks at the head of a queue of %d went over %v keys; %d are gone", left, after-before, gone)
	}
	x.server.Kill()
	x.server.Start()
	x.finish(left - 3)
}

// Short tasks come and go beside one that is delayed by a month and a dead
// letter. What ended goes, and the two stay. scale measures the space.
func TestA42OneOldTaskKeepsNothing(t *testing.T) {
	tasks := scale(1000, 200_000)
	x := newSite(t, "--retention", "1s")
	late, err := x.api.Post(x.ctx, `{"command":"late","payload":1,"delaySeconds":2592000}`)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := x.api.Post(x.ctx, `{"command":"poison","payload":1,"maxAttempts":1}`)
	if err != nil {
		t.Fatal(err)
	}
	var task struct{ LeaseToken string }
	decode(t, x.ask(http.MethodPost, "/tasks/claim", `{"commands":["poison"]}`).Body, &task)
	x.ask(http.MethodPost, "/tasks/"+dead.ID.String()+"/nack", fmt.Sprintf(`{"leaseToken":%q}`, task.LeaseToken))
	x.post(command, tasks, 0)
	x.finish(tasks)
	x.eventually(patience, "what ended is gone", func() bool {
		var page struct{ Tasks []struct{ ID string } }
		decode(t, x.ask(http.MethodGet, "/admin/queues/c/tasks?state=done&limit=1", "").Body, &page)
		return len(page.Tasks) == 0
	})
	x.server.Kill()
	x.server.Start()
	if got := x.read(late.ID).Location; got != wire.LocationDelayed {
		t.Errorf("the delayed task is in %s", got)
	}
	if got := x.read(dead.ID).Location; got != wire.LocationDead {
		t.Errorf("the dead letter is in %s", got)
	}
}

// Very many queues, workers and keys: the page of figures stays small, names no
// task, worker or key, and forgets queues that are empty.
func TestA52FiguresHaveFewSeries(t *testing.T) {
	const series = `codeq_queue_ready_tasks{`
	queues := scale(150, 10_000)
	x := newSite(t)
	var names []string
	for n := range queues {
		names = append(names, fmt.Sprint("queue-", n))
		if _, err := x.api.Post(x.ctx, fmt.Sprintf(`{"command":%q,"payload":1,"idempotencyKey":"secret-%d"}`, names[n], n)); err != nil {
			t.Fatal(err)
		}
	}
	page := x.freshPage()
	if n := strings.Count(page, "\n"+series); n > 101 || n < 2 || !strings.Contains(page, series+`tenant="other",command="other"}`) {
		t.Errorf("%d series of %d queues", n, queues)
	}
	l := newLedger(x)
	x.inBackground((&hand{ledger: l, addr: x.server.Addr, name: "worker-name", commands: names[:min(queues, 150)], window: 100, lease: 60}).run)
	x.eventually(patience, "the tasks are done", func() bool {
		completed, _ := l.counts()
		return completed >= min(queues, 150)
	})
	page = x.freshPage()
	// What happened in queues is counted for some of them too, also when they are empty.
	for _, word := range []string{"worker-name", "secret-", series + `tenant="default",command="queue-0"`} {
		if strings.Contains(page, word) {
			t.Errorf("the page has %q", word)
		}
	}
	if n := strings.Count(page, "\ncodeq_queue_wait_seconds_count{"); n > 101 || n < 2 {
		t.Errorf("the waits of %d queues are on the page", n)
	}
	if len(page) > 1<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

// A list of a long queue, with a filter that fits nothing, reads so many records
// and no more; the figures of the queue read none.
func TestA53ListsReadNoMoreThanTheySay(t *testing.T) {
	const mostRead = 5000
	tasks := scale(8000, 500_000)
	x := newSite(t)
	x.post(command, tasks, 0)
	before := blackbox.Figure(x.freshPage(), "codeq_scan_steps_total")
	var page struct {
		Tasks  []struct{ ID string }
		Cursor string
	}
	decode(t, x.ask(http.MethodGet, "/admin/queues/c/tasks?state=ready&worker=nobody", "").Body, &page)
	if len(page.Tasks) != 0 || page.Cursor == "" {
		t.Errorf("the first page has %d tasks and the cursor %q", len(page.Tasks), page.Cursor)
	}
	if q := x.figures(command); q.Ready != int64(tasks) {
		t.Errorf("the figures are %+v", q)
	}
	after := blackbox.Figure(x.freshPage(), "codeq_scan_steps_total")
	// It goes over the entry of each task and over its record.
	if read := after - before; read < 1 || read > 2*mostRead+500 {
		t.Errorf("a page went over %v keys, want at most twice %d", read, mostRead)
	}
}

// decode reads an answer.
func decode(t *testing.T, body []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("decode %q: %v", body, err)
	}
}

// get is the status of an answer outside the API.
func (x *site) get(path string) int {
	x.t.Helper()
	once := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := once.Get(x.server.URL() + path)
	if err != nil {
		x.t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		x.t.Fatal(err)
	}
	return answer.StatusCode
}
