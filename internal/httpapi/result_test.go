package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codeq/mailbox"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// outcome is the body of a result.
type outcome struct {
	Task   json.RawMessage
	Result json.RawMessage
	Status wire.Status
}

func (g got) outcome(t *testing.T) (o outcome) {
	t.Helper()
	if err := json.Unmarshal([]byte(g.body), &o); err != nil {
		t.Fatalf("%s: %v", g.body, err)
	}
	return o
}

func (g got) mustHaveResult(t *testing.T, want string) {
	t.Helper()
	if g.status != http.StatusOK {
		t.Fatalf("no result: %d %s", g.status, g.body)
	}
	o := g.outcome(t)
	task, err := wire.ParseTask(o.Task)
	if err != nil || task.Status != wire.StatusCompleted {
		t.Errorf("task of the result: %s (%v)", o.Task, err)
	}
	record, err := wire.ParseResultRecord(o.Result)
	if err != nil || string(record.Result) != want || record.TaskID != task.ID {
		t.Errorf("result %s, want %s (%v)", o.Result, want, err)
	}
}

func TestResultIsReadAsItWasHandedIn(t *testing.T) {
	b := newBench(t, setup{})
	task := b.post(`{"command":"c","payload":1}`)
	path := "/v1/codeq/tasks/" + task.ID.String() + "/result"
	g := b.do("GET", path, "")
	g.mustRefuse(t, wire.CodeResultNotFound)
	if o := g.outcome(t); o.Status != wire.StatusPending {
		t.Errorf("status is %q", o.Status)
	}
	w := b.newWorker("c")
	granted := w.take()
	if o := b.do("GET", path+"?waitSeconds=0", "").outcome(t); o.Status != wire.StatusInProgress {
		t.Errorf("status is %q", o.Status)
	}
	const result = `{"z":1e400,"a":"\u0000\ud800"}`
	w.finish(granted, result)
	b.do("GET", path+"?waitSeconds=10", "").mustHaveResult(t, result)
	b.do("GET", path, "").mustHaveResult(t, result)
}

func TestWaitEndsWithTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		task := b.post(`{"command":"c","payload":1}`)
		answers := make(chan got, 3)
		startedAt := time.Now()
		for range 3 {
			go func() { answers <- b.do("GET", "/v1/codeq/tasks/"+task.ID.String()+"/result?waitSeconds=60", "") }()
		}
		synctest.Wait()
		w := b.newWorker("c")
		w.finish(w.take(), `{"x":1}`)
		for range 3 {
			(<-answers).mustHaveResult(t, `{"x":1}`)
		}
		if waited := time.Since(startedAt); waited > time.Second {
			t.Errorf("the result came after %v", waited)
		}
	})
}

func TestWaitGoesOnOverAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		task := b.post(`{"command":"c","payload":1,"maxAttempts":1}`)
		answers := make(chan got, 1)
		startedAt := time.Now()
		go func() { answers <- b.do("GET", "/v1/codeq/tasks/"+task.ID.String()+"/result?waitSeconds=60", "") }()
		synctest.Wait()
		w := b.newWorker("c")
		granted := w.take()
		// It dies and is replayed in one step, so that whoever hears of its end can
		// not see it.
		owner := shard.Owner{Tenant: "default", Subject: "anonymous"}
		b.engine.Post(b.engine.ShardOf(task.ID), []shard.Message{
			&shard.End{How: shard.Nack, Holder: shard.Holder{Owner: owner, TaskRef: wire.TaskRef{TaskID: task.ID, Token: granted.Token}}},
			&shard.Manage{Do: shard.Replay, Tenant: "default", TaskID: task.ID},
		}, 0, mailbox.ClassKeep)
		synctest.Wait()
		w.finish(w.take(), `{"x":1}`)
		(<-answers).mustHaveResult(t, `{"x":1}`)
		if waited := time.Since(startedAt); waited > time.Second {
			t.Errorf("the result came after %v", waited)
		}
	})
}

func TestWaitEndsWithoutAResultWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		task := b.post(`{"command":"c","payload":1}`)
		startedAt := time.Now()
		g := b.do("GET", "/v1/codeq/tasks/"+task.ID.String()+"/result?waitSeconds=60", "")
		g.mustRefuse(t, wire.CodeResultNotFound)
		if waited := time.Since(startedAt); waited != 60*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestWaitEndsWhenTheServerDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		task := b.post(`{"command":"c","payload":1}`)
		answers := make(chan got)
		go func() { answers <- b.do("GET", "/v1/codeq/tasks/"+task.ID.String()+"/result?waitSeconds=60", "") }()
		synctest.Wait()
		close(b.draining)
		(<-answers).mustRefuse(t, wire.CodeDraining)
	})
}

func TestWaitEndsWithoutAWordWhenTheClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		task := b.post(`{"command":"c","payload":1}`)
		ctx, leave := context.WithCancel(context.Background())
		r := httptest.NewRequest("GET", "/v1/codeq/tasks/"+task.ID.String()+"/result?waitSeconds=60", nil).WithContext(ctx)
		w := httptest.NewRecorder()
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			b.api.ServeHTTP(w, r)
		}()
		synctest.Wait()
		leave()
		if p := <-ended; p != http.ErrAbortHandler {
			t.Errorf("the request ended with %v", p)
		}
		if w.Body.Len() > 0 {
			t.Errorf("somebody was told %s", w.Body)
		}
	})
}

func TestWaitForAnUnknownTaskEndsAtOnce(t *testing.T) {
	b := newBench(t, setup{})
	b.do("GET", "/v1/codeq/tasks/00000000-0000-7000-8000-000000000000/result?waitSeconds=60", "").
		mustRefuse(t, wire.CodeTaskNotFound)
}

// watches counts what shards are asked to watch and not to watch any more.
type watches struct {
	mu   sync.Mutex
	seen int
	open map[shard.Asker]wire.TaskID
}

func (w *watches) observe(o *shardactor.Observed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range o.Messages {
		switch m := m.(type) {
		case *shard.Watch:
			w.seen++
			w.open[m.Asker] = m.TaskID
		case *shard.Unwatch:
			if w.open[m.Asker] == m.TaskID {
				delete(w.open, m.Asker)
			}
		}
	}
}

// However a wait for a result ends, its shard keeps nothing of it.
func TestAWaitThatEndsLeavesNoWatch(t *testing.T) {
	const second = "?waitSeconds=1"
	for name, end := range map[string]func(b *bench, task *wire.Task, leave func()){
		"its time is over":    func(*bench, *wire.Task, func()) { <-time.After(time.Second) },
		"the client leaves":   func(_ *bench, _ *wire.Task, leave func()) { leave() },
		"the server drains":   func(b *bench, _ *wire.Task, _ func()) { close(b.draining) },
		"the task ends":       func(b *bench, task *wire.Task, _ func()) { b.do("POST", tasksPath+"/"+task.ID.String()+"/cancel", "") },
		"the task is known":   nil,
		"the task is unknown": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &watches{open: make(map[shard.Asker]wire.TaskID)}
				b := newBench(t, setup{observe: w.observe})
				task := b.post(okBody)
				switch name {
				case "the task is known":
					b.do("POST", tasksPath+"/"+task.ID.String()+"/cancel", "")
				case "the task is unknown":
					task.ID[15]++
				}
				ctx, leave := context.WithCancel(context.Background())
				defer leave()
				ended := make(chan any, 1)
				go func() {
					defer func() { ended <- recover() }()
					r := httptest.NewRequest("GET", tasksPath+"/"+task.ID.String()+"/result"+second, nil).WithContext(ctx)
					b.api.ServeHTTP(httptest.NewRecorder(), r)
				}()
				synctest.Wait()
				if end != nil {
					end(b, task, leave)
				}
				synctest.Wait()
				if len(ended) != 1 || w.seen != 1 || len(w.open) != 0 {
					t.Errorf("%d requests have ended, %d watches were asked for, %d are left", len(ended), w.seen, len(w.open))
				}
			})
		})
	}
}
