package session

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"codeq/internal/auth"
	"codeq/wire"
)

// tenantAuth takes the token for the tenant.
type tenantAuth struct{}

func (tenantAuth) Authenticate(_ context.Context, credential string) (*auth.Principal, *wire.Error) {
	return &auth.Principal{Tenant: credential, Subject: "bob"}, nil
}

// only is the one session of a tenant.
func (b *bench) only(tenant string) wire.SessionFigures {
	b.t.Helper()
	synctest.Wait()
	page, more := b.registry.List(tenant, wire.SessionID{}, 10)
	if len(page) != 1 || more {
		b.t.Fatalf("tenant %s has the sessions %+v (more %t)", tenant, page, more)
	}
	return page[0]
}

func TestListSaysWhatASessionTakesAndHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		connectedAtMs := time.Now().UnixMilli()
		time.Sleep(time.Second)
		c, welcome := b.open(`{"type":"hello","workerId":"ada"}`)
		want := wire.SessionFigures{
			ID: welcome.SessionID, WorkerID: "ada", Subject: "anonymous", State: wire.SessionLive,
			ConnectedAtMs: connectedAtMs + 1000, LastSeenAtMs: connectedAtMs + 1000,
		}
		if got := b.only("default"); !reflect.DeepEqual(got, want) {
			t.Errorf("after hello %+v\nwant %+v", got, want)
		}
		time.Sleep(time.Second)
		c.say(`[{"type":"subscribe","commands":["a","b"],"window":3},{"type":"enqueue","command":"a","payload":1}]`)
		task := next[*wire.TaskFrame](c)
		want.Commands, want.Window, want.Held, want.LastSeenAtMs = []string{"a", "b"}, 3, 1, connectedAtMs+2000
		want.RoundTripMs = 1
		if got := b.only("default"); !reflect.DeepEqual(got, want) {
			t.Errorf("with a task %+v\nwant %+v", got, want)
		}
		c.send(&wire.Result{
			Ref: ref(1), TaskRef: wire.TaskRef{TaskID: task.Task.ID, Token: task.Token},
			ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)},
		})
		next[*wire.OK](c)
		time.Sleep(20 * time.Second) // a ping and its pong
		want.Held, want.LastSeenAtMs, want.Completed = 0, connectedAtMs+21_000, 1
		if got := b.only("default"); !reflect.DeepEqual(got, want) {
			t.Errorf("after a pong %+v\nwant %+v", got, want)
		}
	})
}

func TestListSaysWhoIsLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		c, _ := b.open(`{"type":"hello"}`)
		for _, step := range []struct {
			say   string
			state string
			size  int
		}{
			{`{"type":"subscribe","ref":1,"commands":["*"],"window":3}`, wire.SessionLive, 3},
			{`{"type":"window","ref":1,"size":0}`, wire.SessionLive, 0},
			{`{"type":"drain","ref":1}`, wire.SessionDraining, 0},
			{`{"type":"window","ref":1,"size":0}`, wire.SessionDraining, 0},
			{`{"type":"window","ref":1,"size":2}`, wire.SessionLive, 2},
			{`{"type":"drain","ref":1}`, wire.SessionDraining, 0},
			{`{"type":"subscribe","ref":1,"commands":["a"],"window":0}`, wire.SessionLive, 0},
			{`[{"type":"window","size":1},{"type":"enqueue","ref":1,"command":"a","payload":1}]`, wire.SessionLive, 1},
		} {
			c.say(step.say)
			for {
				if _, ok := next[wire.ServerFrame](c).(*wire.OK); ok {
					break
				}
			}
			if got := b.only("default"); got.State != step.state || got.Window != step.size {
				t.Errorf("after %s: %+v", step.say, got)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		ended := make(chan error)
		go func() { ended <- b.registry.Shutdown(ctx) }()
		if got := b.only("default"); got.State != wire.SessionDraining || got.Held != 1 {
			t.Errorf("in a server that drains: %+v", got)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := b.only("default"); got.State != wire.SessionGrace || got.Held != 1 {
			t.Errorf("after the end: %+v", got)
		}
	})
}

func TestListShowsOneTenantInPagesByID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{auth: tenantAuth{}})
		var want []wire.SessionID
		var last *client
		for range 7 {
			var welcome *wire.Welcome
			last, welcome = b.open(`{"type":"hello","token":"acme"}`)
			want = append(want, welcome.SessionID)
			b.open(`{"type":"hello","token":"other"}`)
			b.connect(true, false) // says no hello
		}
		slices.SortFunc(want, compareIDs)
		var got []wire.SessionID
		var sizes []int
		for after, more := (wire.SessionID{}), true; more; after = got[len(got)-1] {
			var page []wire.SessionFigures
			page, more = b.registry.List("acme", after, 3)
			sizes = append(sizes, len(page))
			for _, f := range page {
				got = append(got, f.ID)
			}
		}
		if !slices.Equal(got, want) || !slices.Equal(sizes, []int{3, 3, 1}) {
			t.Errorf("pages of %v with %v\nwant %v", sizes, got, want)
		}
		if page, more := b.registry.List("acme", want[6], 3); len(page) > 0 || more {
			t.Errorf("behind the last one are %+v", page)
		}
		if page, more := b.registry.List("acme", want[3], 3); len(page) != 3 || more {
			t.Errorf("the last page is %+v (more %t)", page, more)
		}
		if page, _ := b.registry.List("nobody", wire.SessionID{}, 3); len(page) > 0 {
			t.Errorf("a tenant without sessions has %+v", page)
		}
		_ = last.conn.NetConn().Close() // how a machine dies
		synctest.Wait()
		if page, _ := b.registry.List("acme", wire.SessionID{}, 10); len(page) != 6 {
			t.Errorf("with one gone there are %d", len(page))
		}
	})
}
