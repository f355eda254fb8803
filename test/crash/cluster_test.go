package crash

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

func serveThree(t *testing.T) place {
	t.Helper()
	c := blackbox.ServeCluster(t, "--ping-seconds", "1")
	return place{c.Addr, c}
}

// What clients see of tasks by way of all nodes, and across kills of the one that leads, can be
// explained one task at a time: what was acknowledged stays, and nothing is completed twice.
func TestLostLeadersLoseNothing(t *testing.T) {
	if *forFlag == 0 {
		t.Skip("it takes half a minute and more") // make cluster-crash runs it
	}
	seed := uint64(time.Now().UnixNano())
	for until := time.Now().Add(*forFlag); time.Now().Before(until) && !t.Failed(); seed++ {
		makeHistory(t, serveThree(t), seed, size{tasks: 1500, kills: 10, undoctored: true})
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
	var held []*wire.TaskFrame
	for range sessions {
		p, err := blackbox.Dial(ctx, c.Addr, &wire.Hello{})
		if err == nil {
			err = p.Subscribe(ctx, "held", 1, 60)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		post("held")
		held, peers = append(held, <-p.Tasks), append(peers, p)
	}
	waiting := post("waiting")
	began := time.Now()
	c.Kill()
	for i, p := range peers {
		<-p.Gone()
		peers[i] = dialAgain(ctx, t, c.Addr, p.Welcome.Resume)
		defer peers[i].Close()
		if got := peers[i].Welcome.Held; len(got) != 1 || got[0] != blackbox.RefOf(held[i]) {
			t.Fatalf("session %d has %v in hand, want %v", i, got, blackbox.RefOf(held[i]))
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
	if got := <-peers[0].Tasks; got.Task.ID != waiting.ID {
		t.Errorf("task %v is delivered, want %v", got.Task.ID, waiting.ID)
	}
	for i, p := range peers {
		if err := p.Complete(ctx, blackbox.RefOf(held[i]), `{}`); err != nil {
			t.Error(err)
		}
		task, err := api.Read(ctx, held[i].Task.ID)
		if err != nil || task.Status != wire.StatusCompleted || task.Deliveries != 1 || task.Attempts != 0 {
			told, _ := json.Marshal(task) // for people
			t.Errorf("task %d ended as %s: %v", i, told, err)
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
