package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// post is one task that somebody wanted made. The moments are those of one clock
// that only counts; done is 0 as long as nobody was told.
type post struct {
	request    wire.EnqueueRequest
	sent, done int64
	id         wire.TaskID
}

// line is one queue of a server, everybody who posts to it and who takes from it.
type line struct {
	t       *testing.T
	ctx     context.Context
	api     *blackbox.API
	command string

	mu    sync.Mutex
	clock int64
	posts []*post
	// taken are the payloads as they were handed out.
	taken []string
}

func newLine(t *testing.T, server *blackbox.Server, command string) *line {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	l := &line{t: t, ctx: ctx, api: blackbox.NewAPI(server.Addr), command: command}
	t.Cleanup(func() {
		cancel()
		l.api.Close()
	})
	return l
}

func (l *line) tick() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	return l.clock
}

// spread has the queue spread, or asks for one order.
func (l *line) spread(spread bool) error {
	_, err := l.api.Do(l.ctx, http.MethodPut, "/admin/queues/"+l.command, fmt.Sprintf(`{"spread":%t}`, spread))
	return err
}

// make notes a task that is about to be posted.
func (l *line) make(name string, priority int, key string) *post {
	p := &post{request: wire.EnqueueRequest{
		Command: l.command, Payload: fmt.Appendf(nil, "%q", name), Priority: priority, MaxAttempts: 3, IdempotencyKey: key,
	}, sent: l.tick()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.posts = append(l.posts, p)
	return p
}

func (l *line) told(p *post, id wire.TaskID) {
	p.id, p.done = id, l.tick()
}

// post makes a task. What gets no answer is asked again with its key, and left as
// it is without one.
func (l *line) post(p *post) {
	for l.ctx.Err() == nil {
		task, err := l.api.Post(l.ctx, string(wire.AppendEnqueueRequest(nil, &p.request)))
		var refusal *wire.Error
		switch {
		case err == nil:
			l.told(p, task.ID)
			return
		case errors.As(err, &refusal) && !refusal.Code.Retryable():
			l.t.Errorf("post %s: %v", p.request.Payload, err)
			return
		case p.request.IdempotencyKey == "" && errors.Is(err, blackbox.ErrNoAnswer):
			return
		}
		select {
		case <-time.After(20 * time.Millisecond): // the server starts again
		case <-l.ctx.Done():
		}
	}
	l.t.Errorf("post %s: never answered", p.request.Payload)
}

// produce posts one task after another, each when the one before was answered.
func (l *line) produce(name string, n int, posted *atomic.Int64) {
	for i := range n {
		key := ""
		if i%2 == 0 {
			key = fmt.Sprint(name, "/", i)
		}
		l.post(l.make(fmt.Sprint(name, "/", i), []int{0, 5, 0, 9}[i%4], key))
		posted.Add(1)
	}
}

// take claims one task and completes it; false when there is none.
func (l *line) take() bool {
	answer, err := l.api.Do(l.ctx, http.MethodPost, "/tasks/claim", fmt.Sprintf(`{"commands":[%q],"workerId":"w"}`, l.command))
	if err != nil {
		l.t.Fatalf("claim: %v", err)
	}
	if answer.Status == http.StatusNoContent {
		return false
	}
	task, err := wire.ParseTask(answer.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	l.taken = append(l.taken, string(task.Payload))
	if _, err := l.api.Do(l.ctx, http.MethodPost, "/tasks/"+task.ID.String()+"/result", `{"status":"COMPLETED","result":{},"workerId":"w"}`); err != nil {
		l.t.Fatalf("complete: %v", err)
	}
	return true
}

// judge holds the order in which tasks were handed out, after all of them were
// posted, against what was promised: each that was answered comes once, by
// priority, and of one priority not before another that was answered when it was
// sent.
func (l *line) judge(since int64) {
	l.t.Helper()
	at := map[string]int{}
	for i, payload := range l.taken {
		if first, twice := at[payload]; twice {
			l.t.Errorf("%s was handed out as number %d and %d", payload, first, i)
		}
		at[payload] = i
	}
	var known []*post
	for _, p := range l.posts {
		if _, came := at[string(p.request.Payload)]; came {
			known = append(known, p)
		} else if p.done != 0 {
			l.t.Errorf("%s was answered and never handed out", p.request.Payload)
		}
	}
	if len(known) != len(l.taken) {
		l.t.Errorf("%d tasks were handed out, %d of them were posted", len(l.taken), len(known))
	}
	for _, a := range known {
		for _, b := range known {
			placeA, placeB := at[string(a.request.Payload)], at[string(b.request.Payload)]
			first := a.request.Priority > b.request.Priority ||
				a.request.Priority == b.request.Priority && a.sent > since && a.done != 0 && a.done < b.sent
			if first && placeA > placeB {
				l.t.Errorf("%s (priority %d, answered at %d) was handed out as number %d, %s (priority %d, sent at %d) as number %d",
					a.request.Payload, a.request.Priority, a.done, placeA, b.request.Payload, b.request.Priority, b.sent, placeB)
			}
		}
	}
}

// mustBeSound lets the program look at the directory of a server that has ended.
func mustBeSound(t *testing.T, server *blackbox.Server) {
	t.Helper()
	path, err := blackbox.Program()
	if err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(path, "doctor", server.Dir).CombinedOutput(); err != nil {
		t.Errorf("codeq doctor: %v\n%s", err, said)
	}
}

// awaitPosted waits until so many tasks were posted.
func (l *line) awaitPosted(posted *atomic.Int64, n int64) {
	for posted.Load() < n && l.ctx.Err() == nil {
		time.Sleep(time.Millisecond) // what other goroutines have come to
	}
}

// Producers of a queue, one by one, in batches and over a session, while
// the server is killed, and killed again before the second half is handed out.
func TestU02QueueKeepsItsOrderOverKills(t *testing.T) {
	server := blackbox.Serve(t, "--shards", "4")
	l := newLine(t, server, "ledger")
	const producers, each = 6, 24
	var all sync.WaitGroup
	var posted atomic.Int64
	for n := range producers {
		all.Go(func() { l.produce(fmt.Sprint("p", n), each, &posted) })
	}
	l.awaitPosted(&posted, producers*each/2)
	server.Kill()
	server.Start()
	all.Wait()
	l.batch(30)
	l.stream(server, 30)
	half := len(l.posts) / 2
	for range half {
		l.take()
	}
	server.Kill()
	server.Start()
	for l.take() {
	}
	l.judge(0)
	server.Kill()
	mustBeSound(t, server)
}

// batch posts tasks of priority 0 in one request, in whose order they are.
func (l *line) batch(n int) { l.batchOf(n, func() int { return 0 }) }

// batchOf posts tasks of some priorities in one request.
func (l *line) batchOf(n int, priority func() int) {
	l.t.Helper()
	var requests []wire.EnqueueRequest
	var posts []*post
	for range n {
		p := l.make(fmt.Sprint("batch/", len(l.posts)), priority(), "")
		p.request.MaxAttempts = 100
		posts, requests = append(posts, p), append(requests, p.request)
	}
	answer, err := l.api.Do(l.ctx, http.MethodPost, "/tasks/batch", string(wire.AppendBatchRequest(nil, requests)))
	if err != nil {
		l.t.Fatalf("post a batch: %v", err)
	}
	var said struct {
		Results []struct{ Task struct{ ID string } }
	}
	if err := json.Unmarshal(answer.Body, &said); err != nil || len(said.Results) != n {
		l.t.Fatalf("a batch was answered %s: %v", answer.Body, err)
	}
	for i, p := range posts {
		var ok bool
		if p.id, ok = wire.ParseTaskID(said.Results[i].Task.ID); !ok {
			l.t.Fatalf("item %d of a batch was answered %s", i, answer.Body)
		}
	}
	l.answeredTogether(posts)
}

// stream posts tasks over a session without waiting for answers, but for the last.
func (l *line) stream(server *blackbox.Server, n int) {
	l.t.Helper()
	p, err := blackbox.Dial(l.ctx, server.Addr, &wire.Hello{})
	if err != nil {
		l.t.Fatal(err)
	}
	defer p.Close()
	var posts []*post
	for i := range n {
		next := l.make(fmt.Sprint("stream/", i), 0, []string{"", fmt.Sprint("stream/", i)}[i%2])
		posts = append(posts, next)
		if i < n-1 {
			err = p.Say(&wire.Enqueue{EnqueueRequest: next.request})
		} else {
			_, err = p.Ask(l.ctx, func(ref wire.Ref) wire.ClientFrame { return &wire.Enqueue{Ref: ref, EnqueueRequest: next.request} })
		}
		if err != nil {
			l.t.Fatalf("enqueue over a session: %v", err)
		}
	}
	l.answeredTogether(posts)
}

// answeredTogether notes the order that those who sent tasks together gave them.
func (l *line) answeredTogether(posts []*post) {
	for _, p := range posts {
		p.sent, p.done = l.tick(), l.tick()
	}
}

// Producers that do not stop while their queues are spread and get one order
// again: whether that is done or refused, no task is lost, made twice or told to
// anybody else, and what is posted behind the answer comes in order.
func TestProducersMeetTheChangeOfTheOrder(t *testing.T) {
	server := blackbox.Serve(t, "--shards", "4")
	const queues, producers, each = 10, 4, 6
	lines := make([]*line, queues)
	orderedAt := make([]int64, queues)
	var all sync.WaitGroup
	var posted atomic.Int64
	for n := range lines {
		l := newLine(t, server, fmt.Sprint("q", n))
		lines[n] = l
		if err := l.spread(true); err != nil {
			t.Fatalf("spread %s: %v", l.command, err)
		}
		change := func() {
			switch err := l.spread(false); {
			case err == nil:
				orderedAt[n] = l.tick()
			case !mustWait(err):
				t.Errorf("order %s: %v", l.command, err)
			}
		}
		if n == 0 {
			change() // one has an order whatever the machine does
			if orderedAt[0] == 0 {
				t.Fatal("an empty queue got no order")
			}
		} else {
			all.Go(change)
		}
		for p := range producers {
			all.Go(func() { l.produce(fmt.Sprint("p", p), each, &posted) })
		}
	}
	all.Wait()
	for n, l := range lines {
		l.repeat()
		since := orderedAt[n]
		for l.take() {
		}
		if since == 0 {
			since = l.tick() // it has no order to speak of
			for _, p := range l.posts {
				p.request.Priority = 0
			}
		}
		l.judge(since)
	}
	server.Kill()
	mustBeSound(t, server)
}

// mustWait says that a change was refused because the queue has tasks.
func mustWait(err error) bool {
	var refusal *wire.Error
	return errors.As(err, &refusal) && refusal.Code == wire.CodeQueueNotEmpty
}

// repeat posts what has a key once more, which must make nothing.
func (l *line) repeat() {
	l.t.Helper()
	for _, p := range slices.Clone(l.posts) {
		if p.request.IdempotencyKey == "" {
			continue
		}
		answer, err := l.api.Do(l.ctx, http.MethodPost, "/tasks", string(wire.AppendEnqueueRequest(nil, &p.request)))
		var task struct{ ID string }
		if err == nil {
			err = json.Unmarshal(answer.Body, &task)
		}
		if err != nil || task.ID != p.id.String() || answer.Header.Get("Idempotent-Replayed") != "true" {
			l.t.Errorf("key %s made %v and then %s (%v)", p.request.IdempotencyKey, p.id, task.ID, err)
		}
	}
}
