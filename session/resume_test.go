package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/internal/auth"
	"codeq/wire"
)

// work is a session that has two tasks in hand, confirmed, of a window of two.
func (b *bench) work(hello string) (c *client, welcome *wire.Welcome, held []wire.TaskRef) {
	b.t.Helper()
	c, welcome = b.open(hello)
	c.say(`[{"type":"subscribe","commands":["a"],"window":2,"leaseSeconds":60},` +
		`{"type":"enqueue","command":"a","payload":1},{"type":"enqueue","command":"a","payload":2}]`)
	for range 2 {
		task := next[*wire.TaskFrame](c)
		held = append(held, wire.TaskRef{TaskID: task.Task.ID, Token: task.Token})
	}
	synctest.Wait() // the pong confirms them
	return c, welcome, held
}

// sameRefs compares two lists of deliveries, in any order.
func sameRefs(a, b []wire.TaskRef) bool {
	for _, ref := range a {
		if !slices.Contains(b, ref) {
			return false
		}
	}
	return len(a) == len(b)
}

func resumeOf(welcome *wire.Welcome, more string) string {
	return fmt.Sprintf(`{"type":"hello","resume":%q%s}`, welcome.Resume, more)
}

func TestResumedSessionHasItsTasksInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		lost, welcome, held := b.work(`{"type":"hello","workerId":"ada"}`)
		waiting, _ := b.open(`{"type":"hello"}`)
		waiting.say(`{"type":"subscribe","commands":["a"],"window":5}`)
		_ = lost.conn.NetConn().Close() // how a machine dies
		time.Sleep(14 * time.Second)

		c, again := b.open(resumeOf(welcome, `,"workerId":"ada"`))
		if again.SessionID != welcome.SessionID || again.Resume != welcome.Resume {
			t.Errorf("resumed as %v by %q, was %v by %q", again.SessionID, again.Resume, welcome.SessionID, welcome.Resume)
		}
		if !sameRefs(again.Held, held) {
			t.Errorf("held are %v, want %v", again.Held, held)
		}
		// The leases run on as if nothing had been: the grace is forgotten.
		time.Sleep(30 * time.Second)
		waiting.silent()
		// Room is what the window leaves beside what is held.
		c.say(`[{"type":"subscribe","commands":["a"],"window":2},{"type":"enqueue","command":"a","payload":3,"priority":9}]`)
		if task := next[*wire.TaskFrame](waiting); string(task.Task.Payload) != "3" {
			t.Errorf("the other worker got %s", task.Task.Payload)
		}
		c.silent()
		waiting.say(`{"type":"window","size":0}`)
		c.send(&wire.Result{
			Ref: ref(1), TaskRef: held[0],
			ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(`{}`)},
		})
		if ok := next[*wire.OK](c); ok.TaskID != held[0].TaskID {
			t.Errorf("ok names %v, want %v", ok.TaskID, held[0].TaskID)
		}
		c.say(`{"type":"enqueue","command":"a","payload":4}`)
		if task := next[*wire.TaskFrame](c); task.Seq != 1 || task.Task.Attempts != 0 {
			t.Errorf("the first task of the new socket has seq %d and attempts %d", task.Seq, task.Task.Attempts)
		}
	})
}

func TestResumeClosesTheSocketThatStillLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		old, welcome, held := b.work(`{"type":"hello"}`)
		c, again := b.open(resumeOf(welcome, ""))
		if code := old.closeCode(); code != CloseReplaced {
			t.Errorf("closed with %d, want %d", code, CloseReplaced)
		}
		if !sameRefs(again.Held, held) {
			t.Errorf("held are %v, want %v", again.Held, held)
		}
		if n := b.registry.Count(); n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
		// The end of the older socket must not be taken for the end of the newer.
		time.Sleep(20 * time.Second)
		c.say(`{"type":"heartbeat","ref":1}`)
		if ok := next[*wire.OK](c); ok.LeaseUntilMs == 0 || len(ok.Lost) != 0 {
			t.Errorf("heartbeat says %+v", ok)
		}
	})
}

func TestResumeAfterTheGraceHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		lost, welcome, _ := b.work(`{"type":"hello"}`)
		_ = lost.conn.NetConn().Close() // how a machine dies
		time.Sleep(wire.ResumeGraceSeconds*time.Second + time.Second)
		c, again := b.open(resumeOf(welcome, ""))
		if len(again.Held) != 0 {
			t.Errorf("held are %v", again.Held)
		}
		c.say(`{"type":"subscribe","commands":["a"],"window":2}`)
		for range 2 {
			if task := next[*wire.TaskFrame](c); task.Task.Attempts != 1 {
				t.Errorf("attempts %d, want 1: a lost lease", task.Task.Attempts)
			}
		}
	})
}

// partyAuth takes tenant/subject for a credential.
type partyAuth struct{}

func (partyAuth) Authenticate(_ context.Context, credential string) (*auth.Principal, *wire.Error) {
	tenant, subject, _ := strings.Cut(credential, "/")
	return &auth.Principal{Tenant: tenant, Subject: subject}, nil
}

func TestResumeKeyIsGoodForItsTenantAndSubjectOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{auth: partyAuth{}})
		own, welcome, held := b.work(`{"type":"hello","token":"acme/bob"}`)
		id, seal, _ := strings.Cut(welcome.Resume, ".")
		other, _ := b.open(`{"type":"hello","token":"acme/bob"}`)
		for name, hello := range map[string]string{
			"other subject": resumeOf(welcome, `,"token":"acme/eve"`),
			"other tenant":  resumeOf(welcome, `,"token":"evil/bob"`),
			"shifted names": resumeOf(welcome, `,"token":"acm/ebob"`),
			"no seal":       fmt.Sprintf(`{"type":"hello","resume":%q,"token":"acme/bob"}`, id),
			"other seal":    fmt.Sprintf(`{"type":"hello","resume":%q,"token":"acme/bob"}`, id+"."+strings.Repeat("A", len(seal))),
			"more behind":   fmt.Sprintf(`{"type":"hello","resume":%q,"token":"acme/bob"}`, welcome.Resume+"x"),
			"no key at all": `{"type":"hello","resume":"x","token":"acme/bob"}`,
		} {
			_, got := b.open(hello)
			if got.SessionID == welcome.SessionID || len(got.Held) != 0 {
				t.Errorf("%s: got session %v with %v, want a new one", name, got.SessionID, got.Held)
			}
		}
		other.silent()
		own.say(`{"type":"heartbeat","ref":1}`)
		if ok := next[*wire.OK](own); ok.LeaseUntilMs == 0 {
			t.Errorf("the session was disturbed: %+v", ok)
		}
		if _, got := b.open(resumeOf(welcome, `,"token":"acme/bob"`)); !sameRefs(got.Held, held) {
			t.Errorf("its own key holds %v, want %v", got.Held, held)
		}
		if strings.Contains(b.log.String(), seal) {
			t.Errorf("the key is in the log:\n%s", b.log)
		}
	})
}

// Many sockets resume one session at once: one has it in the end, and no task and
// no credit is lost.
func TestManyResumesOfOneSessionLeaveOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		first, welcome, held := b.work(`{"type":"hello"}`)
		sockets := []*client{first}
		for range 20 {
			c := b.connect(false, false)
			sockets = append(sockets, c)
			hello := `[` + resumeOf(welcome, "") + `,{"type":"subscribe","commands":["a"],"window":3}]`
			go func() {
				// The server may have closed it already for a newer one.
				_ = c.conn.WriteString(hello)
			}()
		}
		synctest.Wait()
		var live []*client
		for _, c := range sockets {
			select {
			case <-c.closed:
			default:
				live = append(live, c)
			}
		}
		if len(live) != 1 || b.registry.Count() != 1 {
			t.Fatalf("%d sockets live and %d sessions, want 1", len(live), b.registry.Count())
		}
		c := live[0]
		if got := next[*wire.Welcome](c); !sameRefs(got.Held, held) {
			t.Errorf("held are %v, want %v", got.Held, held)
		}
		c.say(`[{"type":"enqueue","command":"a","payload":3},{"type":"enqueue","command":"a","payload":4}]`)
		next[*wire.TaskFrame](c)
		c.silent() // three of three
	})
}

func TestHeartbeatOverAnotherSessionTellsTheOneThatHadTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		a, _, held := b.work(`{"type":"hello","workerId":"ada"}`)
		other, _ := b.open(`{"type":"hello","workerId":"ada"}`)
		other.send(&wire.Heartbeat{Ref: ref(1), Tasks: held[:1]})
		if ok := next[*wire.OK](other); len(ok.Lost) != 0 {
			t.Errorf("heartbeat says %+v", ok)
		}
		if got := next[*wire.Revoked](a); got.TaskRef != held[0] || got.Reason != wire.RevokedSuperseded {
			t.Errorf("got %+v", got)
		}
		_ = a.conn.NetConn().Close() // how a machine dies
		time.Sleep(20 * time.Second)
		other.send(&wire.Heartbeat{Ref: ref(2), Tasks: held})
		if ok := next[*wire.OK](other); !sameRefs(ok.Lost, held[1:]) {
			t.Errorf("lost are %v, want %v", ok.Lost, held[1:])
		}
	})
}

func TestListShowsWhoMayComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, setup{})
		idle, _ := b.open(`{"type":"hello"}`)
		_ = idle.conn.NetConn().Close() // with nothing in hand
		lost, welcome, _ := b.work(`{"type":"hello","workerId":"ada"}`)
		_ = lost.conn.NetConn().Close()
		if got := b.only("default"); got.ID != welcome.SessionID || got.State != wire.SessionGrace || got.Held != 2 || got.WorkerID != "ada" {
			t.Errorf("without its socket it is listed as %+v", got)
		}
		again, _ := b.open(resumeOf(welcome, `,"workerId":"ada"`))
		if got := b.only("default"); got.State != wire.SessionLive || got.Held != 2 {
			t.Errorf("resumed it is listed as %+v", got)
		}
		_ = again.conn.NetConn().Close()
		synctest.Wait()
		time.Sleep(wire.ResumeGraceSeconds * time.Second)
		if page, _ := b.registry.List("default", wire.SessionID{}, 10); len(page) != 0 {
			t.Errorf("after the grace there are %+v", page)
		}
	})
}
