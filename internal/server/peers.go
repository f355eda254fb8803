package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/raft"

	"codeq/internal/httpapi"
	"codeq/internal/meter"
	"codeq/internal/peer"
	"codeq/internal/replica"
)

// openPeers opens the port of the nodes, so that the node can join its cluster.
func (s *Server) openPeers(id replica.Identity) error {
	o := peer.Options{
		DataDir: s.o.DataDir, Log: s.o.Log, Refusals: s.refusedLog,
		NowMs: s.o.Time.orMachine().wallMs, Form: replica.NewestForm, Open: s.o.Tokens == nil && s.o.Providers == nil, MostPassed: s.files.connections,
		Data: func() peer.Data { return peer.Data{CreationID: id.CreationID, Shards: id.Shards} },
	}
	if s.o.Cluster.Listen != "" {
		l, err := listen(s.o.Cluster.Listen)
		if err != nil {
			return fmt.Errorf("the port of the nodes: %w", err)
		}
		o.Listener = l
	}
	p, err := peer.Open(o)
	if err != nil {
		return err
	}
	if p.Self().Node != id.Node {
		return errors.Join(fmt.Errorf("%s: peer/node.json is that of the node %s, and the database that of %s: "+
			"one of them was copied from elsewhere; empty the directory and join with a new token", s.o.DataDir, p.Self().Node, id.Node), p.Close())
	}
	s.peers = p
	return nil
}

// closePeers closes the port of the nodes, if there is one.
func (s *Server) closePeers() error {
	if s.peers == nil {
		return nil
	}
	return s.peers.Close()
}

// raftLayer carries the log over the port of the nodes.
type raftLayer struct{ peer.Raft }

// Dial implements raft.StreamLayer.
func (l raftLayer) Dial(at raft.ServerAddress, within time.Duration) (net.Conn, error) {
	return l.Raft.Dial(string(at), within)
}

// newFollower makes the handler of requests for the leader of another node.
func (s *Server) newFollower(d *door) http.Handler {
	return httpapi.NewFollower(&httpapi.FollowerOptions{
		Log: s.o.Log, Version: s.o.Version, Guard: s.guard, Pages: s.pages, Pass: d.pass, Ready: s.peers.KnowsLeader, WriteMetrics: s.writeFollower,
		Auth: s.auth, Store: s.cluster.store, Age: s.node.Age,
	})
}

// servePeers serves other nodes until stop.
func (s *Server) servePeers(node *replica.Node) (stop func(context.Context) error) {
	return s.peers.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.front.ServeHTTP(w, httpapi.Passed(r))
	}), &logNode{node, s})
}

// logNode is the log as the port of the nodes needs it.
type logNode struct {
	*replica.Node
	server *Server
}

// Members implements peer.Node.
func (n *logNode) Members() (members []peer.Member) {
	all, err := n.Node.Members()
	if err != nil {
		return nil // the log is closed
	}
	for _, m := range all {
		members = append(members, peer.Member{Node: m.ID, Address: m.Address, Voter: m.Voter})
	}
	return members
}

// LastLog implements peer.Node.
func (n *logNode) LastLog() uint64 { return n.status().LastLog }

func (n *logNode) status() replica.Status {
	s, err := n.Status()
	if err != nil {
		n.server.o.Log.Warn().Err(err).Msg("the newest snapshot of the log cannot be read")
	}
	return s
}

// About implements peer.Node.
func (n *logNode) About() peer.About {
	s := n.status()
	return peer.About{
		URL: n.server.o.NodeURL, Role: s.Role, Version: n.server.o.Version, Term: s.Term, Applied: s.Applied,
		LastContactMs: max(0, s.LastContact.Milliseconds()), SnapshotAt: s.SnapshotAt, FreeBytes: n.server.database().Guard().OwnFreeBytes(),
	}
}

// AddNonvoter implements peer.Node.
func (n *logNode) AddNonvoter(ctx context.Context, m peer.Member) error {
	return n.Node.AddNonvoter(ctx, m.Node, m.Address)
}

// AddVoter implements peer.Node.
func (n *logNode) AddVoter(ctx context.Context, m peer.Member, lastLog uint64) error {
	return n.Node.AddVoter(ctx, m.Node, m.Address, lastLog)
}

// Transfer implements peer.Node.
func (n *logNode) Transfer(ctx context.Context, node string) error {
	return n.server.cluster.transfer(ctx, node)
}

// writeClusterMetrics adds what this node knows of its cluster to a page; nothing for a server
// alone.
func (s *Server) writeClusterMetrics(p *meter.Page) {
	if s.peers == nil {
		return
	}
	s.node.WriteMetrics(p)
	status := (&logNode{s.node, s}).status()
	p.One("codeq_cluster_leader", meter.Gauge, "1 if this node leads its cluster.", meter.OneIf(status.Role == "leader"))
	p.One("codeq_cluster_leader_known", meter.Gauge, "1 if this node knows a leader, and so passes requests.", meter.OneIf(status.Leader != ""))
	p.One("codeq_cluster_term", meter.Gauge, "The term of the log: it grows with each election.", float64(status.Term))
	p.One("codeq_cluster_committed_index", meter.Gauge, "The last entry of the log that a majority has, as far as this node knows.", float64(status.Committed))
	p.One("codeq_cluster_applied_index", meter.Gauge, "The last entry of the log that the database of this node has.", float64(status.Applied))
	if status.LastContact >= 0 {
		p.One("codeq_cluster_last_contact_seconds", meter.Gauge, "Time since this node heard of the leader; 0 at the leader.", status.LastContact.Seconds())
	}
	if !status.SnapshotAt.IsZero() {
		p.One("codeq_cluster_snapshot_timestamp_seconds", meter.Gauge, "When the newest snapshot of this node was made.", float64(status.SnapshotAt.Unix()))
	}
	p.One("codeq_cluster_since_snapshot_bytes", meter.Gauge, "Bytes of the log that were applied since the newest snapshot of this node.", float64(status.SinceBytes))
	voters := 0
	for _, m := range status.Members {
		if m.Voter {
			voters++
		}
	}
	p.One("codeq_cluster_voters", meter.Gauge, "Nodes that vote.", float64(voters))
	if status.Role == "leader" {
		reachable, apart := s.peers.Glance()
		p.One("codeq_cluster_clock_difference_seconds", meter.Gauge, "Largest difference between the clocks of the leader and another node; 0 below a second. Shown by the leader alone.", apart.Seconds())
		p.One("codeq_cluster_voters_reachable", meter.Gauge, "Nodes that vote and answer the leader; shown by the leader alone.", float64(reachable))
	}
}

// clusterOf is what the API does to the cluster; nil for a server alone.
func (s *Server) clusterOf() httpapi.Cluster {
	if s.peers == nil {
		return nil
	}
	return s.peers
}
