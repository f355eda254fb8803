package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// gallery is a watch under test. Its body notes what it is told, one line each.
type gallery struct {
	*stage
	told  chan string
	ended chan error
	leave context.CancelFunc
}

func newGallery(t *testing.T, subscriptions ...Subscription) *gallery {
	t.Helper()
	g := &gallery{stage: newStage(t), told: make(chan string, 100), ended: make(chan error, 1)}
	ctx, leave := context.WithCancel(context.Background())
	g.leave = leave
	go func() {
		for news, err := range g.client.Watch(ctx, subscriptions...) {
			if err != nil {
				g.ended <- err
				return
			}
			g.told <- lineOf(&news)
		}
		g.ended <- errors.New("the iteration ended without an error")
	}()
	t.Cleanup(leave)
	return g
}

func lineOf(news *News) string {
	line := fmt.Sprintf("%d:", news.Of)
	for _, q := range news.Queues {
		line += fmt.Sprintf(" %s/%s=%d", q.TenantID, q.Command, q.Figures[wire.FigureReady])
	}
	for _, s := range news.Sessions {
		line += " " + s.WorkerID
	}
	for _, t := range news.Tasks {
		line += fmt.Sprintf(" %x=%d", t.ID[15:], t.Attempts)
	}
	if news.Above > 0 {
		line += fmt.Sprint(" above ", news.Above)
	}
	switch {
	case news.Server != nil:
		line += fmt.Sprint(" server ", news.Server.Version, len(news.Needs))
	case news.Task != nil:
		line += " task " + string(news.Task.Status)
	case news.Event != nil:
		line += fmt.Sprintf(" event %d.%d %s", news.Event.Shard, news.Event.Number, news.Event.Cause)
	case news.Gap != nil:
		line += fmt.Sprintf(" gap %s %d", news.Gap.Reason, news.Gap.Missed)
	}
	return line
}

// tells waits for the next lines of the body.
func (g *gallery) tells(want ...string) {
	g.t.Helper()
	for _, line := range want {
		select {
		case got := <-g.told:
			if got != line {
				g.t.Fatalf("the watch tells %q, want %q", got, line)
			}
		case err := <-g.ended:
			g.t.Fatalf("the watch ended with %v, want %q", err, line)
		case <-time.After(time.Hour):
			g.t.Fatalf("the watch tells nothing, want %q", line)
		}
	}
}

// opened waits for the next socket of the watch and welcomes it.
func (g *gallery) opened(creationID string, positions ...uint64) *peer {
	g.t.Helper()
	p := g.upgraded()
	next[*wire.Hello](p)
	p.send(&wire.WatchWelcome{CreationID: creationID, Shards: len(positions), Positions: positions, Oldest: positions, TenantID: "default"})
	return p
}

func figures(ready int64) (f wire.Figures) {
	f[wire.FigureReady] = ready
	return f
}

func rows(ready ...int64) (state wire.WatchState) {
	for slot, n := range ready {
		state.Queues = append(state.Queues, wire.QueueRow{Slot: uint32(slot), Figures: figures(n)})
	}
	return state
}

func event(id string, shard int, n uint64) *wire.WatchEvent {
	return &wire.WatchEvent{ID: id, Shard: shard, Number: n, Task: taskID('a'), Command: "hash", Cause: "grant"}
}

func TestE17WatchShowsQueuesWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGallery(t, QueueWatch{Commands: []string{"ma.*"}, Every: 250 * time.Millisecond})
		p := g.opened("c1", 0)
		ask := next[*wire.WatchSubscribe](p)
		if ask.Kind != wire.WatchQueues || ask.EveryMs != 250 || !slices.Equal(ask.Commands, []string{"ma.*"}) {
			t.Errorf("asked for %+v", ask)
		}
		names := &wire.WatchNames{Queues: []wire.SlotName{{Slot: 0, Tenant: "b", Command: "mail"}, {Slot: 1, Tenant: "a", Command: "map"}}}
		p.send(&wire.OK{Ref: ask.Ref}, names, &wire.WatchSnapshot{ID: ask.ID, More: true, WatchState: rows(3)})
		p.send(&wire.WatchSnapshot{ID: ask.ID, WatchState: wire.WatchState{Queues: []wire.QueueRow{{Slot: 1, Figures: figures(5)}}}})
		g.tells("0: a/map=5 b/mail=3")
		p.send(&wire.WatchTick{ID: ask.ID, WatchState: rows(4)})
		g.tells("0: a/map=5 b/mail=4")
		// Slot 1 is given to another queue.
		p.send(&wire.WatchNames{Queues: []wire.SlotName{{Slot: 1}}},
			&wire.WatchNames{Queues: []wire.SlotName{{Slot: 1, Tenant: "a", Command: "make"}}}, &wire.WatchTick{ID: ask.ID, WatchState: rows(4)})
		g.tells("0: b/mail=4")
		// After a reconnect slots have other names, and nothing is left of before.
		p.cut()
		p = g.opened("c1", 0)
		ask = next[*wire.WatchSubscribe](p)
		p.send(&wire.WatchNames{Queues: []wire.SlotName{{Slot: 0, Tenant: "a", Command: "make"}}}, &wire.WatchSnapshot{ID: ask.ID, WatchState: rows(1)})
		g.tells("0: a/make=1")
	})
}

// Every event is told once, or a gap says why not, also over lost sockets.
func TestE17WatchOfEventsContinuesWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGallery(t, EventWatch{Causes: []string{"grant"}})
		p := g.opened("c1", 10, 20)
		if ask := next[*wire.WatchSubscribe](p); !slices.Equal(ask.After, []uint64{10, 20}) || ask.CreationID != "c1" {
			t.Errorf("asked for events behind %v of %q", ask.After, ask.CreationID)
		}
		p.cut() // before any event
		p = g.opened("c1", 15, 25)
		ask := next[*wire.WatchSubscribe](p)
		if !slices.Equal(ask.After, []uint64{10, 20}) {
			t.Errorf("asked for events behind %v", ask.After)
		}
		p.send(event(ask.ID, 0, 12), &wire.WatchGap{ID: ask.ID, Shard: 1, From: 21, To: 30, Reason: wire.GapEvicted, Missed: 10})
		p.send(&wire.WatchMark{Positions: []uint64{14, 29}})
		g.tells("0: event 0.12 grant", "0: gap evicted 10")
		p.cut()
		p = g.opened("c1", 90, 90)
		if ask := next[*wire.WatchSubscribe](p); !slices.Equal(ask.After, []uint64{14, 30}) {
			t.Errorf("asked for events behind %v", ask.After)
		}
		p.cut()
		p = g.opened("c2", 3) // with fewer shards
		g.tells("0: gap replaced 0")
		if ask := next[*wire.WatchSubscribe](p); !slices.Equal(ask.After, []uint64{3}) || ask.CreationID != "c2" {
			t.Errorf("asked for events behind %v of %q", ask.After, ask.CreationID)
		}
		p.send(event(ask.ID, 0, 4), event(ask.ID, 7, 4), event("unknown", 0, 5))
		g.tells("0: event 0.4 grant", "0: event 7.4 grant")
	})
}

func TestE17WatchHasSeveralSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGallery(t, TaskWatch{taskID('a')}, SessionWatch{})
		p := g.opened("c1", 0)
		one, two := next[*wire.WatchSubscribe](p), next[*wire.WatchSubscribe](p)
		if one.Kind != wire.WatchTask || one.TaskID != taskID('a') || two.Kind != wire.WatchWorkers || one.ID == two.ID {
			t.Fatalf("asked for %+v and %+v", one, two)
		}
		figures := func(name byte) wire.SessionFigures {
			return wire.SessionFigures{ID: wire.SessionID{name}, WorkerID: string(name), State: "connected"}
		}
		p.send(&wire.WatchSnapshot{ID: two.ID, WatchState: wire.WatchState{Sessions: []wire.SessionFigures{figures('y'), figures('x')}}},
			&wire.WatchSnapshot{ID: one.ID, WatchState: wire.WatchState{Task: task('a')}}, event(one.ID, 0, 7))
		g.tells("1: x y", "0: task IN_PROGRESS", "0: event 0.7 grant")
		p.send(&wire.WatchTick{ID: two.ID, WatchState: wire.WatchState{
			Sessions: []wire.SessionFigures{figures('z')}, Left: []string{wire.SessionID{'x'}.String()}}})
		g.tells("1: y z")
	})
}

func TestE17WatchShowsAPageAndTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGallery(t, PageWatch{Command: "hash", State: wire.StateReady, Limit: 2}, ServerWatch{})
		p := g.opened("c1", 0)
		one, two := next[*wire.WatchSubscribe](p), next[*wire.WatchSubscribe](p)
		if one.Kind != wire.WatchPage || one.Command != "hash" || one.State != wire.StateReady || one.Limit != 2 || two.Kind != wire.WatchServer {
			t.Fatalf("asked for %+v and %+v", one, two)
		}
		row := func(name byte, attempts int) *wire.Task {
			return &wire.Task{ID: taskID(name), Command: "hash", Attempts: attempts}
		}
		p.send(&wire.WatchSnapshot{ID: one.ID, More: true, WatchState: wire.WatchState{Tasks: []*wire.Task{row(0xb0, 0)}}})
		p.send(&wire.WatchSnapshot{ID: one.ID, WatchState: wire.WatchState{Tasks: []*wire.Task{row(0xa0, 0)}, Above: new(int64)}})
		g.tells("0: b0=0 a0=0")
		p.send(&wire.WatchTick{ID: one.ID, WatchState: wire.WatchState{Tasks: []*wire.Task{row(0xb0, 3)}, Above: new(int64(4))}})
		g.tells("0: b0=3 a0=0 above 4")
		p.send(&wire.WatchTick{ID: one.ID, WatchState: wire.WatchState{Left: []string{taskID(0xb0).String()}, Above: new(int64)}})
		g.tells("0: a0=0")
		p.send(&wire.WatchTick{ID: two.ID, WatchState: wire.WatchState{Server: &wire.ServerFigures{Version: "v", Durability: "fsync", DiskGuard: "ok"}, Needs: []wire.Need{}}})
		g.tells("1: server v0")
	})
}

func TestE17WatchAsksAgainForWhatIsRefusedForNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGallery(t, SessionWatch{}, TaskWatch{taskID('a')})
		p := g.opened("c1", 0)
		one, two := next[*wire.WatchSubscribe](p), next[*wire.WatchSubscribe](p)
		p.ok(two.Ref)
		p.refuse(one.Ref, wire.CodeOverloaded)
		if again := next[*wire.WatchSubscribe](p); again.ID != one.ID {
			t.Errorf("asked again for %+v", again)
		}
		p.send(&wire.WatchError{ID: two.ID, ErrorFrame: wire.ErrorFrame{Err: wire.Refuse(wire.CodeTaskNotFound, "it was removed")}})
		var refusal *wire.Error
		if err := <-g.ended; !errors.As(err, &refusal) || refusal.Code != wire.CodeTaskNotFound {
			t.Errorf("the watch ended with %v", err)
		}
		p.closed()
	})
}

func TestE17WatchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGallery(t, SessionWatch{})
		p := g.opened("c1", 0)
		next[*wire.WatchSubscribe](p)
		g.leave()
		if err := <-g.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended with %v", err)
		}
		p.closed()
	})
}

// The end of the iteration ends the socket, and the body hears nothing more.
func TestE17WatchEndsWithItsIteration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		told := make(chan int, 1)
		go func() {
			n := 0
			for range s.client.Watch(context.Background(), EventWatch{}) {
				n++
				break
			}
			told <- n
		}()
		p := (&gallery{stage: s}).opened("c1", 0)
		ask := next[*wire.WatchSubscribe](p)
		p.send(event(ask.ID, 0, 1), event(ask.ID, 0, 2))
		if n := <-told; n != 1 {
			t.Errorf("the body ran %d times", n)
		}
		p.closed()
	})
}

func TestE17WatchEndsAtARefusalThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGallery(t, SessionWatch{})
		p := g.upgraded()
		next[*wire.Hello](p)
		p.send(&wire.ErrorFrame{Err: wire.Refuse(wire.CodeUnauthenticated, "the token is wrong")})
		if err := <-g.ended; err == nil || !strings.Contains(err.Error(), "the token is wrong") {
			t.Errorf("the watch ended with %v", err)
		}
		p.closed()
		// A server that is older than the route.
		g = newGallery(t, SessionWatch{})
		g.answers("HTTP/1.1 404 Not Found\r\nContent-Length: 58\r\n\r\n" + `{"error":"no such path","code":"not_found","retryable":false}`[:58])
		if err := <-g.ended; err == nil {
			t.Error("the watch has no error")
		}
	})
}
