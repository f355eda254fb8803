package crash

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

var killsFlag = flag.Int("crash.kills", 0, "how often the leader of a cluster is killed under many clients")

func serveThree(t *testing.T) place {
	t.Helper()
	c := blackbox.ServeCluster(t, "--ping-seconds", "1")
	return place{c.Addr, c, func() {}, true}
}

// What clients see of tasks by way of all nodes, and across kills of the one that leads, can be
// explained one task at a time: what was acknowledged stays, and nothing is completed twice.
func TestLostLeadersLoseNothing(t *testing.T) {
	if *killsFlag == 0 {
		t.Skip("it takes half a minute and more") // make cluster-crash runs it
	}
	// What was with a worker over HTTP waits fifteen seconds at the end of a history.
	const atOnce = 20
	for n := 0; n < *killsFlag && !t.Failed(); n += atOnce {
		much := min(atOnce, *killsFlag-n)
		t.Run(fmt.Sprint(n+much), func(t *testing.T) {
			makeHistory(t, serveThree(t), uint64(time.Now().UnixNano()), size{tasks: int64(100 * (much + 1)), kills: much, undoctored: true})
		})
	}
}

// A session goes on at the next leader with its tasks in hand; they are not delivered again. What
// was posted before the kill is delivered after it.
func TestSessionsGoOnAtTheNextLeader(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers and their elections") // the long tests run it
	}
	const sessions = 8
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := blackbox.ServeCluster(t)
	api := blackbox.NewAPI(c.Addr)
	defer api.Close()
	post := func(command string) *wire.Task {
		task, err := api.Post(ctx, `{"command":"`+command+`","payload":1}`)
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	var peers []*blackbox.Peer
	var held []wire.TaskRef
	for range sessions {
		p, err := blackbox.Dial(ctx, c.Addr, &wire.Hello{})
		if err == nil {
			err = p.Subscribe(ctx, "held", 1, 60)
		}
		if err != nil {
			t.Fatal(err)
		}
		post("held")
		p, task := holds(ctx, t, c.Addr, p)
		defer p.Close()
		held, peers = append(held, task), append(peers, p)
	}
	waiting := post("waiting")
	began := time.Now()
	c.Kill()
	for i, p := range peers {
		mustBeGone(ctx, t, p)
		peers[i] = dialAgain(ctx, t, c.Addr, p.Welcome.Resume)
		defer peers[i].Close()
		if got := peers[i].Welcome.Held; len(got) != 1 || got[0] != held[i] {
			t.Fatalf("session %d has %v in hand, want %v", i, got, held[i])
		}
		if i == 0 {
			t.Logf("the first session goes on after %v", time.Since(began).Round(time.Millisecond))
			if err := p.Subscribe(ctx, "waiting", 1, 60); err == nil {
				t.Error("a session that has ended takes a subscription")
			}
		}
	}
	t.Logf("%d sessions go on after %v", sessions, time.Since(began).Round(time.Millisecond))
	if err := peers[0].Subscribe(ctx, "waiting", 2, 60); err != nil {
		t.Fatal(err)
	}
	var got wire.TaskRef
	if peers[0], got = holds(ctx, t, c.Addr, peers[0]); got.TaskID != waiting.ID {
		t.Errorf("task %v is delivered, want %v", got.TaskID, waiting.ID)
	}
	defer peers[0].Close()
	for i, p := range peers {
		if err := p.Complete(ctx, held[i], `{}`); err != nil {
			t.Error(err)
		}
		task, err := api.Read(ctx, held[i].TaskID)
		if err != nil || task.Status != wire.StatusCompleted || task.Deliveries != 1 || task.Attempts != 0 {
			told, _ := json.Marshal(task) // for people
			t.Errorf("task %d ended as %s: %v", i, told, err)
		}
	}
}

// mustBeGone waits until a session learns that its leader is lost.
func mustBeGone(ctx context.Context, t *testing.T, p *blackbox.Peer) {
	t.Helper()
	select {
	case <-p.Gone():
	case <-ctx.Done():
		t.Fatal("a session does not learn that its leader is lost")
	}
}

// holds waits until a session has a task in hand. A leader on a full machine may lose the lead at any
// time: then the session goes on at the next one, and has it there.
func holds(ctx context.Context, t *testing.T, addr string, p *blackbox.Peer) (*blackbox.Peer, wire.TaskRef) {
	t.Helper()
	for {
		select {
		case f := <-p.Tasks:
			return p, blackbox.RefOf(f)
		case <-p.Gone():
			if len(p.Tasks) > 0 {
				continue
			}
			p.Close()
			p = dialAgain(ctx, t, addr, p.Welcome.Resume)
			if n := len(p.Welcome.Held); n > 0 {
				return p, p.Welcome.Held[n-1]
			}
		case <-ctx.Done():
			t.Fatal("a session gets no task")
		}
	}
}

// dialAgain resumes a session, however long nobody leads.
func dialAgain(ctx context.Context, t *testing.T, addr, key string) *blackbox.Peer {
	t.Helper()
	for {
		p, err := blackbox.Dial(ctx, addr, &wire.Hello{Resume: key})
		if err == nil {
			return p
		}
		if ctx.Err() != nil {
			t.Fatalf("the session is not resumed: %v", err)
		}
		time.Sleep(redialAfter) // the pause of a client that found no server
	}
}
