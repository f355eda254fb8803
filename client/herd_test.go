package client

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// All workers lose their server at one moment, because it was told to stop or
// because it was killed, and find it again when it is back. They do not come
// together, and none is away for longer than its tasks wait for it.
func TestA26WorkersDoNotComeBackTogether(t *testing.T) {
	for _, c := range []struct {
		name    string
		goodbye bool
		downFor time.Duration
	}{
		{"told to stop, back at once", true, 0},
		{"told to stop", true, time.Second},
		{"killed", false, time.Second},
		{"killed, back after long", false, 8 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const workers = 100
				s := newStage(t)
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				peers := make([]*peer, workers)
				for i := range peers {
					w, err := s.client.NewWorker(WorkerOptions{
						Commands: []string{"hash"}, Handler: func(context.Context, Delivery) Outcome { return Release() },
					})
					if err != nil {
						t.Fatal(err)
					}
					running.Go(func() { _ = w.Run(ctx) }) // it ends with the test
					peers[i] = s.greeted("", "key", 1)
					peers[i].subscribed()
				}
				synctest.Wait()
				s.unreachable.Store(c.downFor > 0)
				for _, p := range peers {
					if c.goodbye {
						p.send(&wire.Draining{Reason: "shutdown", GraceSeconds: 10})
					}
					_ = p.conn.NetConn().Close() // as by a crash; it may have ended
				}
				synctest.Wait()
				time.Sleep(c.downFor) // the clock of the bubble
				s.unreachable.Store(false)
				back := time.Now()
				var came []time.Duration
				for i := range peers {
					peers[i] = s.greeted("key", "key", 1)
					peers[i].subscribed()
					came = append(came, time.Since(back))
				}
				judgeSpread(t, came)
				stop()
				running.Wait()
			})
		})
	}
}

// judgeSpread looks at how long after the return of the server each worker came;
// they are sorted, because the server takes one after the other.
func judgeSpread(t *testing.T, came []time.Duration) {
	t.Helper()
	const together = 250 * time.Millisecond
	// Where the server was away for half of the time over which the workers come
	// back, only the other half is left for most of them.
	const least = drainSpread / 4
	most := 0
	for i := range came {
		behind, _ := slices.BinarySearch(came, came[i]+together)
		most = max(most, behind-i)
	}
	first, last := came[0], came[len(came)-1]
	t.Logf("they came %v to %v after the server, at most %d of %d within %v", first, last, most, len(came), together)
	if last-first < least {
		t.Errorf("all came within %v, want at least %v", last-first, least)
	}
	if most > len(came)*2/3 {
		t.Errorf("%d of %d came within %v", most, len(came), together)
	}
	if last > wire.ResumeGraceSeconds*time.Second {
		t.Errorf("the last came after %v, its tasks wait for %d s", last, wire.ResumeGraceSeconds)
	}
}
