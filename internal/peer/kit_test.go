package peer

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const wait = 10 * time.Second

// log is the replicated log of all nodes of a test: one configuration, one leader.
type log struct {
	mu      sync.Mutex
	members []Member
	lastLog uint64
	leader  Member
	changes []chan struct{}
	// ahead is how far the clocks of the nodes are ahead that are opened next.
	ahead time.Duration
	// open is whether the next node that is opened asks for no credentials.
	open bool
}

func (l *log) Leader() (node, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leader.Node, l.leader.Address
}

func (l *log) Changes() (<-chan struct{}, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changes := make(chan struct{}, 1)
	l.changes = append(l.changes, changes)
	return changes, func() {}
}

func (l *log) Members() []Member {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.members)
}

func (l *log) LastLog() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastLog
}

func (l *log) HasNearlyAll(lastLog uint64) bool { return lastLog+200 >= l.LastLog() }

func (l *log) AddNonvoter(_ context.Context, m Member) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members = append(l.members, m)
	return nil
}

func (l *log) AddVoter(_ context.Context, m Member, _ uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.members {
		if l.members[i].Node == m.Node {
			l.members[i].Voter = true
		}
	}
	l.tell()
	return nil
}

func (l *log) Remove(_ context.Context, node string) error {
	l.remove(node)
	return nil
}

func (l *log) Transfer(_ context.Context, node string) error {
	was, _ := l.Leader()
	for _, m := range l.Members() {
		if m.Node == node || node == "" && m.Node != was {
			l.lead(m)
			return nil
		}
	}
	return errors.New("there is no such node")
}

func (l *log) About() About { return About{Role: "follower", Version: "test", Term: 3, Applied: 7} }

func (l *log) remove(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members = slices.DeleteFunc(l.members, func(m Member) bool { return m.Node == node })
}

// lead makes a node the leader.
func (l *log) lead(m Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leader = m
	l.tell()
}

func (l *log) tell() {
	for _, c := range l.changes {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// port takes a free port of loopback.
func port(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() }) // it may be closed already
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// first makes and opens the first node of a cluster, which leads.
func first(t *testing.T, l *log, h http.Handler) (*Peers, string) {
	t.Helper()
	on, dir := port(t), t.TempDir()
	f := &Founding{Node: "00000000000000000000000000000001", Address: on.Addr().String(), Now: time.Now()}
	must(t, Found(dir, f))
	l.members = []Member{{f.Node, f.Address, true}}
	l.lead(l.members[0])
	return open(t, dir, on, l, h), dir
}

// open opens a node, and serves unless l is nil.
func open(t *testing.T, dir string, on net.Listener, l *log, h http.Handler) *Peers {
	t.Helper()
	ahead, open := time.Duration(0), false
	if l != nil {
		ahead, open = l.ahead, l.open
	}
	p, err := Open(Options{
		DataDir: dir, Listener: on, Log: zerolog.New(zerolog.NewTestWriter(t)), Refusals: zerolog.Nop(),
		Data: func() Data { return Data{CreationID: "a-creation", Shards: 4} }, NowMs: func() int64 { return time.Now().Add(ahead).UnixMilli() }, Open: open,
	})
	must(t, err)
	stop := func(context.Context) error { return nil }
	if l != nil {
		stop = p.Serve(h, l)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = stop(ctx) // sockets of the test may be open
		must(t, p.Close())
	})
	return p
}

// drawn is an id for a node.
func drawn() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it ends the process rather than fail
	return hex.EncodeToString(id[:])
}

// join makes and opens a further node by a token of p.
func join(t *testing.T, p *Peers, l *log, h http.Handler) (*Peers, string) {
	t.Helper()
	token, err := p.Invite(time.Minute)
	must(t, err)
	on, dir := port(t), t.TempDir()
	got, err := Join(t.Context(), token, drawn(), on.Addr().String())
	must(t, err)
	must(t, got.Write(dir))
	return open(t, dir, on, l, h), dir
}

// until waits until something is true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(wait); !is(); {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// knowsLeader waits until a node passes requests to another.
func knowsLeader(t *testing.T, p, leader *Peers) {
	t.Helper()
	until(t, "the leader is known", func() bool { return p.leader.Load().node == leader.Self().Node })
}
