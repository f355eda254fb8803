package server

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/internal/peer"
	"codeq/internal/replica"
	"codeq/wire"
)

// skewed are real nodes with ports of their own, each with a clock that is ahead by so much.
type skewed struct {
	nodes
	ahead []time.Duration
}

func (n *skewed) free() string {
	n.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return l.Addr().String()
}

// add makes a node, the first one or one that joins it, and starts it.
func (n *skewed) add(ahead time.Duration) {
	n.t.Helper()
	dir, address, id := n.t.TempDir(), n.free(), replica.NewNodeID()
	var err error
	if len(n.sites) == 0 {
		_, err = replica.Init(replica.InitOptions{
			FS: vfs.Default, Dir: dir, Address: address, Log: zerolog.Nop(),
			Before: func(node string) error {
				id = node
				return peer.Found(dir, &peer.Founding{Node: node, Address: address, Now: time.Now()})
			},
		})
	} else {
		err = n.join(dir, address, id)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	s, err := Open(Options{
		DataDir: dir, Listen: "127.0.0.1:0", Log: zerolog.Nop(), Version: "test",
		Time: TimeSource{WallNs: func() int64 { return time.Now().Add(ahead).UnixNano() }},
		Others: Others{Cluster: &Cluster{
			Timing: replica.Timing{Heartbeat: 200 * time.Millisecond, Election: 200 * time.Millisecond, Lease: 150 * time.Millisecond},
		}},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.dirs, n.addresses, n.ids, n.sites, n.ahead = append(n.dirs, dir), append(n.addresses, address), append(n.ids, id), append(n.sites, newSite(n.t, s)), append(n.ahead, ahead)
}

func (n *skewed) join(dir, address, id string) error {
	token, err := n.sites[0].server.peers.Invite(time.Minute)
	if err != nil {
		return err
	}
	grant, err := peer.Join(n.t.Context(), token, id, address)
	if err != nil {
		return err
	}
	if _, err := replica.Prepare(replica.PrepareOptions{
		FS: vfs.Default, Dir: dir, Node: id, CreationID: grant.CreationID, Shards: grant.Shards, Log: zerolog.Nop(),
	}); err != nil {
		return err
	}
	return grant.Write(dir)
}

// A node whose clock is ahead by an hour shows that, and never leads: handed the lead it hands it on,
// and when the leader is lost the other node leads.
func TestANodeWhoseClockIsOffByAnHourDoesNotLead(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for elections of real nodes") // runs without -short
	}
	n := &skewed{nodes: nodes{t: t}}
	for _, ahead := range []time.Duration{0, 0, time.Hour} {
		n.add(ahead)
	}
	lead := n.leader()
	n.try(func() error {
		s := lead.server.peers.Status(t.Context())
		ahead := func(one wire.ClusterNode) bool { return one.Node == n.ids[2] && one.ClockAheadMs > 3_500_000 }
		if s.Voters != 3 || s.Reachable != 3 || !slices.ContainsFunc(s.Nodes, ahead) {
			return fmt.Errorf("not three voters, one ahead by an hour: %+v", s)
		}
		return nil
	})
	off := n.sites[2]
	if err := lead.server.Node().Transfer(t.Context(), n.ids[2]); err != nil {
		t.Fatal(err)
	}
	// It may be elected more than once before another one is.
	n.try(func() error {
		if off.server.Leading() {
			t.Fatal("the node with the wrong clock leads")
		}
		if node, _ := off.server.Node().Leader(); node == "" || node == n.ids[2] {
			return errors.New("no other node leads")
		}
		return nil
	})
	lead = n.leader()
	lead.post(okTask)
	if next := n.fail(lead); next == off {
		t.Fatal("the node with the wrong clock leads when the leader is lost")
	}
	if off.server.Leading() {
		t.Error("two nodes lead")
	}
}
