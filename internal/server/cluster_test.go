package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"

	"codeq/internal/replica"
	"codeq/wire"
)

// plainLayer carries what nodes say over plain TCP.
type plainLayer struct{ net.Listener }

// Dial implements raft.StreamLayer.
func (plainLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", string(address), timeout)
}

// nodes are the sites of a cluster, nil where one is down.
type nodes struct {
	t         *testing.T
	dirs      []string
	ids       []string
	addresses []string
	sites     []*site
}

// openNodes makes a cluster of three nodes that run.
func openNodes(t *testing.T) *nodes {
	t.Helper()
	n := &nodes{t: t, sites: make([]*site, 3)}
	var first replica.Identity
	for i := range n.sites {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		n.dirs, n.addresses = append(n.dirs, t.TempDir()), append(n.addresses, l.Addr().String())
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		id := replica.Identity{}
		if i == 0 {
			first, err = replica.Init(replica.InitOptions{FS: vfs.Default, Dir: n.dirs[0], Address: n.addresses[0], Log: zerolog.Nop()})
			id = first
		} else {
			id, err = replica.Prepare(replica.PrepareOptions{FS: vfs.Default, Dir: n.dirs[i], Node: replica.NewNodeID(), CreationID: first.CreationID, Shards: first.Shards, Log: zerolog.Nop()})
		}
		if err != nil {
			t.Fatal(err)
		}
		n.ids = append(n.ids, id.Node)
		n.start(i)
	}
	lead := n.leader()
	for i := 1; i < len(n.sites); i++ {
		n.try(func() error { return lead.server.Node().AddNonvoter(t.Context(), n.ids[i], n.addresses[i]) })
		n.try(func() error {
			status, err := n.sites[i].server.Node().Status()
			added := lead.server.Node().AddVoter(t.Context(), n.ids[i], n.addresses[i], status.LastLog)
			if added != nil && !errors.Is(added, replica.ErrBehind) {
				t.Fatal(added)
			}
			return errors.Join(err, added)
		})
	}
	return n
}

func (n *nodes) start(i int) {
	n.t.Helper()
	l, err := net.Listen("tcp", n.addresses[i])
	if err != nil {
		n.t.Fatal(err)
	}
	log := zerolog.Nop()
	if testing.Verbose() {
		log = zerolog.New(zerolog.NewTestWriter(n.t)).With().Int("node", i).Logger()
	}
	s, err := Open(Options{
		DataDir: n.dirs[i], Listen: "127.0.0.1:0", Log: log, Version: "test",
		Cluster: &Cluster{Layer: plainLayer{l}, Timing: replica.Timing{Heartbeat: 200 * time.Millisecond, Election: 200 * time.Millisecond, Lease: 150 * time.Millisecond}},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.sites[i] = newSite(n.t, s)
}

func (n *nodes) try(do func() error) {
	n.t.Helper()
	var err error
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) { // real nodes elect in real time
		if err = do(); err == nil {
			return
		}
	}
	n.t.Fatal(err)
}

// leader waits until a node serves.
func (n *nodes) leader() (found *site) {
	n.t.Helper()
	n.try(func() error {
		for _, x := range n.sites {
			if x != nil && x.server.Leading() {
				found = x
				return nil
			}
		}
		return errors.New("nobody leads")
	})
	return found
}

// fail stops the leader without time for anybody, and returns the next one.
func (n *nodes) fail(x *site) *site {
	n.t.Helper()
	for i := range n.sites {
		if n.sites[i] == x {
			n.sites[i] = nil
		}
	}
	x.kill()
	return n.leader()
}

// A session goes on at the next leader with its task in hand, and the task is not delivered
// again; what was acknowledged is there.
func TestASessionOutlivesTheLeader(t *testing.T) {
	n := openNodes(t)
	x := n.leader()
	k := x.connect()
	welcome := hear[*wire.Welcome](k)
	k.say(`{"type":"subscribe","commands":["c"],"window":1,"leaseSeconds":60}`)
	posted := x.post(okTask)
	task := hear[*wire.TaskFrame](k)
	k.say(`{"type":"received","ref":1,"through":1}`)
	hear[*wire.OK](k)
	waiting := x.post(`{"command":"other","payload":{}}`)

	y := n.fail(x)
	if <-k.closed; k.code != 1012 {
		t.Errorf("the socket was closed with %d", k.code)
	}
	k = y.say(fmt.Sprintf(`{"type":"hello","resume":%q}`, welcome.Resume))
	again := hear[*wire.Welcome](k)
	held := wire.TaskRef{TaskID: posted.ID, Token: task.Token}
	if again.SessionID != welcome.SessionID || len(again.Held) != 1 || again.Held[0] != held {
		t.Fatalf("resumed as %+v, want session %v with %v", again, welcome.SessionID, held)
	}
	k.say(fmt.Sprintf(`{"type":"result","ref":2,"taskId":%q,"leaseToken":%q,"result":{}}`, held.TaskID, held.Token))
	if ok := hear[*wire.OK](k); ok.TaskID != posted.ID {
		t.Errorf("ok names %v, want %v", ok.TaskID, posted.ID)
	}
	if got := y.read(posted.ID); got.Status != wire.StatusCompleted || got.Attempts != 0 || got.Deliveries != 1 {
		t.Errorf("the task ended as %+v", got)
	}
	if got := y.read(waiting.ID); got.Status != wire.StatusPending {
		t.Errorf("the task that waited is %+v", got)
	}
}

// A request that waits at a leader is answered when that loses the majority, within the lease, and
// the node goes on as a follower.
func TestWaitingRequestsLearnThatTheLeadIsLost(t *testing.T) {
	n := openNodes(t)
	x := n.leader()
	posted := x.post(okTask)
	answers := make(chan answer, 2)
	go func() { answers <- x.ask("GET", "/v1/codeq/tasks/"+posted.ID.String()+"/result?waitSeconds=30", "") }()
	go func() { answers <- x.ask("POST", "/v1/codeq/tasks/claim", `{"commands":["none"],"waitSeconds":30}`) }()
	n.try(func() error {
		if x.server.work().lead.requests.count() < 2 {
			return errors.New("the requests do not wait yet")
		}
		return nil
	})
	for i, other := range n.sites {
		if other != x {
			other.kill()
			n.sites[i] = nil
		}
	}
	for range 2 {
		if a := <-answers; a.code() != wire.CodeNotLeader || a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") != "1" {
			t.Errorf("a waiting request: %d %s", a.status, a.body)
		}
	}
	n.try(func() error {
		if x.server.Leading() {
			return errors.New("it leads without a majority")
		}
		return nil
	})
}

// A leader that stops hands over, and nothing that it accepted is missing.
func TestALeaderThatStopsHandsOver(t *testing.T) {
	n := openNodes(t)
	x := n.leader()
	posted := x.post(okTask)
	for i := range n.sites {
		if n.sites[i] == x {
			n.sites[i] = nil
		}
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := x.server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	y := n.leader()
	t.Logf("handed over within %v", time.Since(began))
	if got := y.read(posted.ID); got.ID != posted.ID {
		t.Errorf("read %+v", got)
	}
}

// A file on the disk of one node would be missing at the next leader.
func TestAClusterWithoutS3RefusesArtifacts(t *testing.T) {
	n := openNodes(t)
	x := n.leader()
	task, token := x.claimed("")
	if a := x.upload(task, token, "out.txt", "text"); a.code() != wire.CodeStorageFull || !strings.Contains(a.body, "S3") {
		t.Errorf("an upload: %d %s", a.status, a.body)
	}
	body := fmt.Sprintf(`{"leaseToken":%q,"result":{},"artifacts":[{"name":"out.txt","contentBase64":"dGV4dA=="}]}`, token)
	if a := x.ask("POST", "/v1/codeq/tasks/"+task.ID.String()+"/result", body); a.code() != wire.CodeStorageFull {
		t.Errorf("a result with a file: %d %s", a.status, a.body)
	}
}
