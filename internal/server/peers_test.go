package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"codeq/client"
	"codeq/internal/httpapi"
	"codeq/internal/peer"
	"codeq/internal/replica"
	"codeq/wire"
)

// cohort is a log whose leader is the first of its members.
type cohort struct {
	mu  sync.Mutex
	all []peer.Member
}

func (m *cohort) Members() []peer.Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}

func (m *cohort) add(one peer.Member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one.Voter = true
	m.all = append(m.all, one)
}

func (m *cohort) Leader() (node, address string) {
	leader := m.Members()[0]
	return leader.Node, leader.Address
}
func (m *cohort) Changes() (<-chan struct{}, func())                  { return nil, func() {} }
func (m *cohort) LastLog() uint64                                     { return 1 }
func (m *cohort) HasNearlyAll(uint64) bool                            { return true }
func (m *cohort) About() peer.About                                   { return peer.About{} }
func (m *cohort) AddNonvoter(context.Context, peer.Member) error      { return nil }
func (m *cohort) AddVoter(context.Context, peer.Member, uint64) error { return nil }
func (m *cohort) Remove(context.Context, string) error                { return nil }
func (m *cohort) Transfer(context.Context, string) error              { return nil }

// openPeers opens the port of a node, whose directory make makes.
func openPeers(t *testing.T, make func(dir, address string) error) *peer.Peers {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := make(dir, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	p, err := peer.Open(peer.Options{
		DataDir: dir, Listener: l, Log: zerolog.Nop(), Refusals: zerolog.Nop(), Data: func() peer.Data { return peer.Data{CreationID: "c", Shards: 4} },
		NowMs: TimeSource{}.orMachine().wallMs,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// serve serves until the test ends.
func serve(t *testing.T, p *peer.Peers, h http.Handler, m *cohort) {
	t.Helper()
	stop := p.Serve(h, m)
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = stop(now) // sockets of the test may be open
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

// behind puts a node in front of a site, which leads, and is the site by way of it.
func behind(t *testing.T, x *site) *site {
	t.Helper()
	token, now := "", time.Now()
	leader := openPeers(t, func(dir, address string) error {
		err := peer.Found(dir, &peer.Founding{Node: strings.Repeat("ab", 16), Address: address, Now: now})
		if err == nil {
			token, err = peer.Invite(dir, time.Minute, now)
		}
		return err
	})
	all := &cohort{}
	all.add(leader.Self())
	serve(t, leader, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.server.front.ServeHTTP(w, httpapi.Passed(r))
	}), all)
	follower := openPeers(t, func(dir, address string) error {
		grant, err := peer.Join(t.Context(), token, replica.NewNodeID(), address)
		if err == nil {
			err = grant.Write(dir)
		}
		return err
	})
	all.add(follower.Self())
	guard, err := httpapi.NewGuard(&httpapi.GuardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h := httpapi.NewFollower(&httpapi.FollowerOptions{
		Log: zerolog.Nop(), Version: "test", Guard: guard, Pages: x.server.pages, Pass: (&door{known: follower.LeaderKnown, send: follower.Pass}).pass, Ready: follower.KnowsLeader,
		WriteMetrics: x.server.writeFollower, Auth: x.server.auth, Store: x.server.store, Age: func() time.Duration { return 1500 * time.Millisecond },
	})
	serve(t, follower, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, httpapi.Passed(r)) }), all)
	front := httptest.NewServer(h)
	t.Cleanup(front.Close)
	y := *x
	y.via, y.t = front.Listener.Addr().String(), t
	await(t, "the leader is known", func() bool { return y.ask("GET", "/readyz", "").status == http.StatusOK })
	return &y
}

// openLeader opens a server that tells where it is.
func openLeader(t *testing.T, listen, url string) *site {
	t.Helper()
	s, err := Open(Options{DataDir: t.TempDir(), Listen: listen, Log: zerolog.Nop(), Version: "test", Names: Names{NodeURL: url}})
	if err != nil {
		t.Fatal(err)
	}
	return newSite(t, s)
}

// A node that follows takes every request, and its clients see what they would see at the leader.
func TestANodeThatFollowsTakesEveryRequest(t *testing.T) {
	x := openLeader(t, "127.0.0.1:0", "http://leader.example:8080")
	y := behind(t, x)
	made := y.post(okTask)
	if got := x.read(made.ID); string(got.Payload) != string(made.Payload) {
		t.Errorf("the leader has %s, the client of the other node %s", got.Payload, made.Payload)
	}
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/codeq/tasks/" + made.ID.String(), ""},
		{"HEAD", "/v1/codeq/tasks/" + made.ID.String(), ""},
		{"GET", "/v1/codeq/admin/queues", ""},
		{"GET", "/v1/codeq/tasks//x", ""},
		{"GET", "/v1/codeq/nothing?a=%zz", ""},
		{"DELETE", "/v1/codeq/tasks/claim", ""},
		{"POST", "/v1/codeq/tasks", "no JSON"},
		{"POST", "/v1/codeq/tasks/claim", `{"commands":["none"],"waitSeconds":0}`},
		{"GET", "/ui/", ""},
	} {
		at, by := x.ask(c.method, c.path, c.body), y.ask(c.method, c.path, c.body)
		for _, h := range []http.Header{at.header, by.header} {
			h.Del("Date")
			h.Del("X-Request-Id")
		}
		if c.path == "/ui/" { // the node answers it by itself
			at.header.Del("Codeq-Leader")
		}
		same := len(at.header) == len(by.header)
		for name, values := range at.header {
			same = same && strings.Join(values, "|") == strings.Join(by.header[name], "|")
		}
		if at.status != by.status || at.body != by.body || !same {
			t.Errorf("%s %s: the leader says %v, the other node %v", c.method, c.path, at, by)
		}
	}
	if got := y.ask("GET", "/v1/codeq/admin/queues", "").header.Get("Codeq-Leader"); got != "http://leader.example:8080" {
		t.Errorf("the leader is told as %q", got)
	}
}

// With Codeq-Read: stale a node that follows answers what it has, without the leader, and says how old
// that may be. What the leader alone knows is left out, or passed on.
func TestANodeThatFollowsAnswersStaleReads(t *testing.T) {
	f := newTokenFile(t)
	one, two := f.addAll("one"), f.addAll("two")
	x := openGuarded(f, io.Discard).as(one)
	y := behind(t, x)
	y.stale = true
	done, ready := x.post(okTask), x.post(`{"command":"d","payload":2}`)
	if a := x.ask("POST", "/v1/codeq/tasks/"+done.ID.String()+"/cancel", ""); a.status != http.StatusOK {
		t.Fatalf("cancel: %v", a)
	}
	for _, path := range []string{
		"/tasks/" + done.ID.String(), "/tasks/" + done.ID.String() + "/result", "/tasks/" + ready.ID.String() + "/result?waitSeconds=60", "/admin/queues",
		"/admin/queues/c/tasks?state=done", "/admin/queues/c/tasks?state=ready&limit=1", "/admin/queues/c/dlq/reasons",
	} {
		path = "/v1/codeq" + path
		at, by := x.ask("GET", strings.TrimSuffix(path, "?waitSeconds=60"), ""), y.ask("GET", path, "")
		if at.status != by.status || at.body != by.body || by.header.Get("Codeq-Read-Age") != "1500" || at.header.Get("Codeq-Read-Age") != "" {
			t.Errorf("%s: the leader says %v, the other node %v", path, at, by)
		}
		if head := y.ask("HEAD", path, ""); head.status != by.status || head.body != "" {
			t.Errorf("HEAD %s: %v", path, head)
		}
		if a := y.as(two).ask("GET", path, ""); strings.Contains(a.body, `"command":`) {
			t.Errorf("%s: another tenant is told %v", path, a)
		}
		if a := y.as("cq_no").ask("GET", path, ""); a.status != http.StatusUnauthorized {
			t.Errorf("%s: anybody is told %v", path, a)
		}
	}
	for path, less := range map[string]string{"/tasks/" + ready.ID.String(): `,"waiting":`, "/admin/queues/d": `,"effective":`} {
		at, by := x.ask("GET", "/v1/codeq"+path, ""), y.ask("GET", "/v1/codeq"+path, "")
		if short, _, has := strings.Cut(at.body, less); !has || !strings.HasPrefix(by.body, short) || strings.Contains(by.body, less) {
			t.Errorf("%s: the leader says %v, the other node %v", path, at, by)
		}
	}
	// The leader answers what no other node can, and every change.
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/admin/sessions", ""}, {"GET", "/admin/tasks?command=c", ""}, {"POST", "/tasks", okTask}, {"POST", "/tasks/" + done.ID.String() + "/result", `{"status":"COMPLETED"}`},
	} {
		if a := y.ask(c.method, "/v1/codeq"+c.path, c.body); a.header.Get("Codeq-Read-Age") != "" || a.status >= http.StatusInternalServerError {
			t.Errorf("%s %s: %v", c.method, c.path, a)
		}
	}
}

func TestANodeThatFollowsAnswersForItself(t *testing.T) {
	y := behind(t, openLeader(t, "127.0.0.1:0", "http://leader.example:8080"))
	if a := y.ask("GET", "/readyz?leader", ""); a.status != http.StatusServiceUnavailable || a.code() != wire.CodeNotLeader || a.header.Get("Retry-After") != "1" {
		t.Errorf("?leader: %v", a)
	}
	if a := y.ask("GET", "/metrics", ""); a.status != http.StatusOK || !strings.Contains(a.body, "codeq_ready 1\n") || strings.Contains(a.body, "codeq_sync_seconds") {
		t.Errorf("metrics: %v", a)
	} else {
		// What may be wrong with its machine, whoever leads.
		for _, name := range []string{
			"codeq_disk_free_bytes", "codeq_disk_reserve_bytes", "codeq_disk_guard_level", "codeq_pebble_l0_sublevels",
			"codeq_connections", "codeq_connections_limit", "codeq_connections_refused_total",
		} {
			if !strings.Contains(a.body, "\n"+name+" ") {
				t.Errorf("the metrics of a follower have no %s", name)
			}
		}
	}
	for _, path := range []string{"/healthz", "/version"} {
		if a := y.ask("GET", path, ""); a.status != http.StatusOK || a.header.Get("Codeq-Leader") != "" {
			t.Errorf("%s: %v", path, a)
		}
	}
	// Its own guard checks, and the leader believes it: the Host is that of a client.
	for host, want := range map[string]int{"evil.example": http.StatusForbidden, "localhost": http.StatusOK} {
		r, err := http.NewRequest("GET", "http://"+y.via+"/v1/codeq/admin/queues", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		response, err := y.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != want {
			t.Errorf("Host %s: %d, %v", host, response.StatusCode, err)
		}
	}
}

func TestSessionsOverANodeThatFollows(t *testing.T) {
	x := openLeader(t, "127.0.0.1:0", "http://leader.example:8080")
	y := behind(t, x)
	k := y.say(`{"type":"hello"}`)
	if welcome := hear[*wire.Welcome](k); welcome.Leader != "http://leader.example:8080" {
		t.Errorf("the leader is told as %q", welcome.Leader)
	}
	k.say(`{"type":"subscribe","ref":1,"commands":["c"],"window":1}`)
	hear[*wire.OK](k)
	made := x.post(okTask)
	if got := hear[*wire.TaskFrame](k); got.Task.ID != made.ID {
		t.Errorf("got the task %v, want %v", got.Task.ID, made.ID)
	}
	// The leader that stops says so itself, with its own close code.
	x.kill()
	if code := k.closeCode(); code != 1012 {
		t.Errorf("closed with %d", code)
	}
}

func TestTheClientGoesToTheLeaderAndStaysWhereItGetsThrough(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	leads := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	y := behind(t, openLeader(t, leads, "http://"+leads))
	for name, open := range map[string]bool{"the leader": true, "the other node": false} {
		t.Run(name, func(t *testing.T) {
			var dialled sync.Map
			c, err := client.New(y.via+","+leads, client.WithNotices(func(string) {}), client.WithDial(func(ctx context.Context, network, address string) (net.Conn, error) {
				if n, _ := dialled.LoadOrStore(address, new(atomic.Int64)); n.(*atomic.Int64).Add(1) > 0 && !open && address == leads {
					return nil, syscall.ECONNREFUSED
				}
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, err := c.Dial(t.Context(), client.SessionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for range 3 {
				if _, err := s.Enqueue(t.Context(), "c", 1); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Enqueue(t.Context(), "c", 1); err != nil {
					t.Fatal(err)
				}
			}
			want := map[bool]string{true: leads, false: y.via}[open]
			if c.URL() != "http://"+want {
				t.Errorf("it asks %s, want %s", c.URL(), want)
			}
			if n, _ := dialled.Load(leads); !open && n.(*atomic.Int64).Load() > 1 {
				t.Errorf("the leader that does not answer was dialled %d times", n.(*atomic.Int64).Load())
			}
		})
	}
}
