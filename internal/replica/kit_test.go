package replica

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"codeq/store"
	"codeq/wire"
)

// patience is how long a test waits for something that must come.
const patience = 20 * time.Second

const shards = 2

var quick = Timing{Heartbeat: 150 * time.Millisecond, Election: 150 * time.Millisecond, Lease: 100 * time.Millisecond}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tcpLayer carries what nodes say over plain TCP.
type tcpLayer struct{ net.Listener }

// Dial implements raft.StreamLayer.
func (tcpLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", string(address), timeout)
}

// host is a node that can be stopped and started again over the same files.
type host struct {
	t       *testing.T
	fs      vfs.FS
	dir     string
	id      Identity
	address string
	store   *store.Store
	node    *Node
	up      bool
}

func fatal(err error) { panic("fatal: " + err.Error()) }

// newHosts makes a cluster of so many nodes that run.
func newHosts(t *testing.T, count int) []*host {
	t.Helper()
	disks := make([]vfs.FS, count)
	for i := range disks {
		disks[i] = vfs.NewMem()
	}
	return newHostsOn(t, disks)
}

// newHostsOn makes a cluster of a node for each disk.
func newHostsOn(t *testing.T, disks []vfs.FS) []*host {
	t.Helper()
	hosts := make([]*host, len(disks))
	for i := range hosts {
		hosts[i] = newHost(t, disks[i], "data")
	}
	first := hosts[0]
	var err error
	if first.id, err = Init(InitOptions{FS: first.fs, Dir: first.dir, Shards: shards, Address: first.address, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	first.start()
	for _, h := range hosts[1:] {
		h.id, err = Prepare(PrepareOptions{FS: h.fs, Dir: h.dir, Node: NewNodeID(), CreationID: first.id.CreationID, Shards: shards, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		h.start()
	}
	lease := first.lead()
	defer lease.End()
	for _, h := range hosts[1:] {
		first.join(h)
	}
	return hosts
}

func newHost(t *testing.T, fs vfs.FS, dir string) *host {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, fs: fs, dir: dir, address: l.Addr().String()}
	t.Cleanup(h.stop)
	return h
}

func (h *host) start() {
	h.t.Helper()
	s, err := store.Open(store.Options{
		FS: h.fs, Dir: h.dir, Node: h.id.Node, MemTableBytes: 1 << 20, CacheBytes: 1 << 20, Fatal: fatal,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	l, err := net.Listen("tcp", h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.store = s
	h.node, err = Open(Options{Store: s, FS: h.fs, Dir: h.dir, Node: h.id.Node, Layer: tcpLayer{l}, Log: testLog(h), Fatal: fatal, Timing: quick})
	if err != nil {
		h.t.Fatal(err)
	}
	h.up = true
}

// testLog is quiet unless a test is looked into.
func testLog(h *host) zerolog.Logger {
	if !testing.Verbose() {
		return zerolog.Nop()
	}
	return zerolog.New(zerolog.NewTestWriter(h.t)).With().Str("node", h.id.Node[:4]).Logger()
}

func (h *host) stop() {
	if !h.up {
		return
	}
	h.up = false
	if err := errors.Join(h.node.Close(), h.store.Close()); err != nil {
		h.t.Error(err)
	}
}

// lead waits until the host leads.
func (h *host) lead() *Lease {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	lease, err := h.node.Lead(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return lease
}

// join makes another host a voter.
func (h *host) join(other *host) {
	h.t.Helper()
	if err := h.node.AddNonvoter(h.t.Context(), other.id.Node, other.address); err != nil {
		h.t.Fatal(err)
	}
	h.eventually(func() error {
		return h.node.AddVoter(h.t.Context(), other.id.Node, other.address, other.node.raft.LastIndex())
	})
}

// eventually repeats what may fail for a while.
func (h *host) eventually(try func() error) {
	h.t.Helper()
	var err error
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(5 * time.Millisecond) { // real nodes elect in real time
		if err = try(); err == nil {
			return
		}
	}
	h.t.Fatal(err)
}

// writer writes numbered payloads at a leader.
type writer struct {
	t     *testing.T
	store *store.Store
	lease *Lease
}

func (h *host) writer(lease *Lease) *writer {
	h.t.Helper()
	s, err := h.store.Lead(lease, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return &writer{t: h.t, store: s, lease: lease}
}

func (w *writer) close() {
	w.lease.End()
	if err := w.store.Close(); err != nil {
		w.t.Error(err)
	}
}

func idOf(n int) (id wire.TaskID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// put writes payload n on its shard.
func (w *writer) put(n int) error {
	span := w.store.Span(n % shards)
	span.Batch().PutPayload(idOf(n), fmt.Appendf(nil, "payload %d", n))
	_, err := span.Apply()
	return err
}

// mustPut writes payloads from, to included.
func (w *writer) mustPut(from, to int) {
	w.t.Helper()
	for n := from; n <= to; n++ {
		if err := w.put(n); err != nil {
			w.t.Fatal(err)
		}
	}
}

// dump is everything in a database but the position, and which payloads it has.
func dump(t *testing.T, s *store.Store) (text string, payloads map[int]bool) {
	t.Helper()
	var b strings.Builder
	payloads = make(map[int]bool)
	err := s.EachKey(func(key, value []byte) {
		if strings.HasPrefix(string(key), "codeq/meta/position") {
			return
		}
		fmt.Fprintf(&b, "%x=%x\n", key, value)
		var n int
		if _, err := fmt.Sscanf(string(value), "payload %d", &n); err == nil {
			payloads[n] = true
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), payloads
}

// mustAgree waits until all hosts that run have the same database with all payloads up to n.
func mustAgree(t *testing.T, n int, hosts ...*host) {
	t.Helper()
	var first string
	for _, h := range hosts {
		if !h.up {
			continue
		}
		var text string
		h.eventually(func() error {
			var has map[int]bool
			text, has = dump(t, h.store)
			for i := 1; i <= n; i++ {
				if !has[i] {
					return fmt.Errorf("node %s has not payload %d", h.id.Node, i)
				}
			}
			if first != "" && text != first {
				return fmt.Errorf("node %s has another database", h.id.Node)
			}
			return nil
		})
		first = text
	}
}

// leads waits for the lease of whoever leads. One that is elected may lose the lead before it has
// opened its epoch, and then another one has it.
func leads(t *testing.T, hosts ...*host) *Lease {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		lease, err := leader(t, hosts...).node.Lead(ctx)
		cancel()
		if err == nil {
			return lease
		}
	}
	t.Fatal("nobody leads")
	return nil
}

// leader waits until one of the hosts leads.
func leader(t *testing.T, hosts ...*host) *host {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(5 * time.Millisecond) { // real nodes elect in real time
		for _, h := range hosts {
			if h.up && h.node.IsLeader() {
				return h
			}
		}
	}
	t.Fatal("nobody leads")
	return nil
}
