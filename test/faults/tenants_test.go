package faults

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeq/wire"
)

// limitTenant sets the limits of the only tenant.
func (x *site) limitTenant(l *wire.TenantLimits) {
	x.t.Helper()
	if _, err := x.sdk(x.server.Addr).SetLimits(x.ctx, wire.DefaultTenant, &wire.LimitsChange{TenantLimits: *l}); err != nil {
		x.t.Fatal(err)
	}
}

// letsIn posts n tasks together, and reports whether the limits let them in.
func (x *site) letsIn(n int) bool {
	x.t.Helper()
	batch := make([]wire.EnqueueRequest, n)
	for i := range batch {
		batch[i] = wire.EnqueueRequest{Command: command, Payload: []byte("1"), MaxAttempts: wire.DefaultMaxAttempts}
	}
	_, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/batch", string(wire.AppendBatchRequest(nil, batch)))
	var refusal *wire.Error
	switch {
	case err == nil:
		return true
	case errors.As(err, &refusal) && refusal.Code == wire.CodeRateLimited && refusal.RetryAfterSeconds > 0:
	default:
		x.t.Errorf("post %d tasks: %v", n, err)
	}
	return false
}

// letsInJust posts one task after another and wants so many of them to be let in.
func (x *site) letsInJust(want int) {
	x.t.Helper()
	n := 0
	for x.letsIn(1) {
		n++
	}
	if n != want {
		x.t.Errorf("%d tasks were let in, want %d", n, want)
	}
}

// As many tasks of a tenant wait as its limit says, exactly, whoever posts at once, over
// shards, kills and changes while it is in use.
func TestP06AsManyWaitAsTheTenantMay(t *testing.T) {
	t.Run("tasks", func(t *testing.T) {
		asManyWait(t, func(n int64) *wire.TenantLimits { return &wire.TenantLimits{PendingTasks: n} })
	})
	// Each payload has one byte.
	t.Run("bytes", func(t *testing.T) {
		asManyWait(t, func(n int64) *wire.TenantLimits { return &wire.TenantLimits{PendingBytes: n} })
	})
}

func asManyWait(t *testing.T, limited func(n int64) *wire.TenantLimits) {
	t.Helper()
	const limit, producers = 60, 6
	x := newSite(t, "--shards", "4")
	if _, err := x.sdk(x.server.Addr).SetQueue(x.ctx, command, &wire.QueueSettings{Spread: true}); err != nil {
		t.Fatal(err)
	}
	x.limitTenant(limited(limit))
	var in atomic.Int64
	var posting sync.WaitGroup
	for n := range producers {
		posting.Go(func() {
			for i := range 40 {
				if size := 1 + (n+i)%5; x.letsIn(size) {
					in.Add(int64(size))
				}
			}
		})
	}
	posting.Wait()
	x.letsInJust(limit - int(in.Load()))
	for range 2 {
		x.server.Kill()
		x.server.Start()
		if f := x.figures(command); f.Ready != limit {
			t.Errorf("%d tasks wait, want %d", f.Ready, limit)
		}
		x.letsInJust(0)
	}
	x.limitTenant(limited(limit + 5))
	x.letsInJust(5)
	x.limitTenant(limited(10))
	x.letsInJust(0)
	if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/claim/batch", fmt.Sprintf(`{"commands":[%q],"count":%d}`, command, limit)); err != nil {
		t.Fatal(err)
	}
	x.eventually(patience, "room is free", func() bool { return x.letsIn(1) })
	x.letsInJust(4) // six of ten wait
	x.limitTenant(&wire.TenantLimits{})
	if !x.letsIn(200) {
		t.Error("a tenant without limits was refused")
	}
}

// A rate begins empty, when it is set and after a kill, so no time has more tasks than it
// says, and a tenant gets what it may.
func TestP07ARateOfATenantAllowsNoSecondBurst(t *testing.T) {
	const perSecond = 20
	x := newSite(t, "--shards", "4")
	// floods posts until as many as a second may have are in.
	floods := func(what string, since time.Time) {
		t.Helper()
		x.eventually(patience, what, func() bool { return x.letsIn(1) })
		for n := 1; n < perSecond; {
			if x.letsIn(1) {
				n++
			}
			if may := int(time.Since(since).Seconds()*perSecond) + 1; n > may {
				t.Fatalf("%s: %d tasks came in %v, at most %d may", what, n, time.Since(since), may)
			}
		}
	}
	began := time.Now()
	x.limitTenant(&wire.TenantLimits{DoorLimits: wire.DoorLimits{EnqueuesPerSecond: perSecond}})
	floods("after it was set", began)
	pause(x.ctx, 2*time.Second)
	x.server.Kill()
	began = time.Now()
	x.server.Start()
	floods("after a kill", began)
	if f := x.figures(command); f.Ready != 2*perSecond {
		t.Errorf("%d tasks wait, %d were let in", f.Ready, 2*perSecond)
	}
}
