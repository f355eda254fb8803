package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

// A watch of events outlives the server: each event is told once, or a gap counts it.
func TestE17WatchContinuesOverAKill(t *testing.T) {
	server := blackbox.Serve(t)
	c, err := client.New(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	seen, missed, posted := map[string]bool{}, uint64(0), 0
	post := func() {
		t.Helper()
		for range 5 {
			posted++
			if _, err := c.Enqueue(ctx, "mail", posted, client.Key(fmt.Sprint(posted))); err != nil {
				t.Fatal(err)
			}
		}
	}
	subscribed := false
	// The figures come when the socket is there, so nothing is posted before it.
	for news, err := range c.Watch(ctx, client.EventWatch{}, client.QueueWatch{}) {
		switch {
		case err != nil:
			t.Fatalf("seen %d and missed %d of %d: %v", len(seen), missed, posted, err)
		case news.Gap != nil:
			missed += news.Gap.Missed
		case news.Event != nil:
			name := fmt.Sprintf("%d.%d", news.Event.Shard, news.Event.Number)
			if seen[name] || news.Event.Cause != "enqueue" || news.Event.To != wire.LocationPending {
				t.Errorf("told twice, or no enqueue: %+v", news.Event)
			}
			seen[name] = true
		case !subscribed:
			subscribed = true
			post()
		}
		switch sum := uint64(len(seen)) + missed; {
		case posted == 5 && sum == 5:
			server.Kill()
			server.Start()
			post()
		case posted == 10 && sum == 10:
			return
		case sum > uint64(posted):
			t.Fatalf("seen %d and missed %d of %d", len(seen), missed, posted)
		}
	}
}

// A client that watches sees that a queue is paused, and that it goes on, though that moves no task.
func TestE18AWatchShowsThePauseOfAQueue(t *testing.T) {
	x := newSite(t)
	x.post(command, 1, 0)
	c := x.sdk(x.server.Addr)
	ctx, cancel := context.WithTimeout(x.ctx, patience)
	defer cancel()
	pauses := []func(context.Context, string) (*wire.QueueFigures, error){c.PauseQueue, c.ResumeQueue}
	for news, err := range c.Watch(ctx, client.QueueWatch{Every: 250 * time.Millisecond}) {
		if err != nil {
			t.Fatalf("%d changes were not shown: %v", len(pauses), err)
		}
		if len(news.Queues) != 1 || news.Queues[0].Figures[wire.FigurePaused] != int64(len(pauses))%2 {
			continue
		}
		if len(pauses) == 0 {
			return
		}
		if _, err := pauses[0](ctx, command); err != nil {
			t.Fatal(err)
		}
		pauses = pauses[1:]
	}
}
