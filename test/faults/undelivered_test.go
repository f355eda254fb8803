package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// breakable is a worker whose reader dies of one task: it says nothing about
// anything that came with it, and a new one takes its place.
type breakable struct {
	site   *site
	name   string
	poison *atomic.Pointer[wire.TaskID]
	done   *sync.WaitGroup
	died   *atomic.Int64
}

func (b *breakable) run(ctx context.Context) {
	for life := 0; ctx.Err() == nil; life++ {
		dialCtx, cancel := context.WithTimeout(ctx, patience)
		p, err := blackbox.Dial(dialCtx, b.site.server.Addr, &wire.Hello{WorkerID: fmt.Sprint(b.name, " ", life)})
		cancel()
		if err != nil {
			pause(ctx, lookAgain) // the server, too, is busy
			continue
		}
		// What a ping stands behind has arrived, so it is the tasks that speak here.
		p.Mute(true)
		b.live(ctx, p)
		p.Close()
	}
}

// live works until the poison comes.
func (b *breakable) live(ctx context.Context, p *blackbox.Peer) {
	if err := p.Subscribe(ctx, command, 10, 30); err != nil {
		return
	}
	for {
		select {
		case f := <-p.Tasks:
			if bad := b.poison.Load(); bad != nil && f.Task.ID == *bad {
				b.died.Add(1)
				return
			}
			pause(ctx, 20*time.Millisecond) // the work
			if p.Complete(ctx, blackbox.RefOf(f), `{}`) == nil {
				b.done.Done()
			}
		case <-p.Gone():
			return
		case <-ctx.Done():
			return
		}
	}
}

// workOff has four workers finish all tasks but the poison, and says how long
// that took. They go on until they are stopped.
func workOff(x *site, ids []wire.TaskID, poison *wire.TaskID) (took time.Duration, died *atomic.Int64, stop func()) {
	x.t.Helper()
	var bad atomic.Pointer[wire.TaskID]
	var done sync.WaitGroup
	died = new(atomic.Int64)
	done.Add(len(ids))
	if bad.Store(poison); poison != nil {
		done.Add(-1)
	}
	began := time.Now()
	var stops []func()
	for n := range 4 {
		b := &breakable{site: x, name: fmt.Sprint("worker ", n), poison: &bad, done: &done, died: died}
		stops = append(stops, x.inBackground(b.run))
	}
	done.Wait()
	return time.Since(began), died, func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// One task in a thousand breaks every worker that receives it. The others are
// done about as soon as without it, none of them is charged with the deliveries
// that it took along, and nor is it: it waits as a suspect, and says what became
// of its deliveries.
func TestN11OnePoisonTaskHoldsUpNobody(t *testing.T) {
	const tasks = 1000
	x := newSite(t)
	if _, err := x.api.Do(x.ctx, http.MethodPut, "/admin/queues/c", `{"backoff":{"baseSeconds":1}}`); err != nil {
		t.Fatal(err)
	}
	without, _, stop := workOff(x, x.post(command, tasks, 0), nil)
	stop()
	ids := x.post(command, tasks, 0)
	poison := ids[tasks/2]
	with, broken, stop := workOff(x, ids, &poison)
	died := broken.Load()
	t.Logf("%v without it, %v with it, which broke %d workers", without, with, died)
	// A worker that connects anew costs more than the tasks on a machine that is
	// busy, so there is something to spare for each.
	const spare = 200 * time.Millisecond
	if most := without*12/10 + time.Duration(died)*spare; with > most {
		t.Errorf("with it the others took %v, want at most %v", with, most)
	}
	x.eventually(patience, "it waits as a suspect", func() bool {
		task := x.read(poison)
		return task.Waiting != nil && task.Waiting.Reason == wire.WaitingSuspect && len(task.History) >= 3 &&
			task.History[0].Cause == "undelivered" && task.History[0].CloseCode != 0
	})
	stop()
	for _, id := range append(ids[tasks/2-20:tasks/2+20], ids[0], ids[tasks-1]) {
		if task := x.read(id); task.Attempts != 0 || (task.Status == wire.StatusCompleted) == (id == poison) {
			t.Fatalf("task %v is %+v", id, task)
		}
	}
	if strings.Contains(x.metrics(), "\ncodeq_suspect_deliveries_total 0\n") {
		t.Error("no metric counts it")
	}
	if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/"+poison.String()+"/cancel", ""); err != nil {
		t.Errorf("cancel it: %v", err)
	}
}
