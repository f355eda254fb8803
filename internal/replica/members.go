package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"codeq/store"
)

// changeFor is how long a change of the members may wait for its turn.
const changeFor = 10 * time.Second

// behindBy is how many entries a node may be behind when it becomes a voter.
const behindBy = 200

// Status is what a node knows of itself and its cluster.
type Status struct {
	Node, Leader, LeaderAddress string
	// Role is "leader", "follower", "candidate" or "stopped".
	Role string
	// Applied is the last entry that the database has, Committed the last that a majority
	// has, LastLog the last in the log here; as far as this node knows.
	Term, Applied, Committed, LastLog uint64
	// LastContact is the time since the leader was heard of; 0 at the leader, negative if it
	// never was.
	LastContact time.Duration
	// SnapshotIndex is 0 before the first snapshot.
	SnapshotIndex uint64
	SnapshotAt    time.Time
	// SinceBytes is how much was applied since that snapshot, or since the start.
	SinceBytes int64
	Members    []Member
}

// Member is a node of the cluster.
type Member struct {
	ID, Address string
	Voter       bool
}

// Age is how old what the database here has may be: the time since the leader was heard of, and, if a
// majority has more, that since the leader wrote the last entry here, by its clock.
func (n *Node) Age() time.Duration {
	age := time.Duration(-1)
	if at := n.raft.LastContact(); !at.IsZero() {
		age = time.Since(at)
	}
	if age < 0 || n.raft.CommitIndex() > max(n.machine.applied.Load(), n.machine.members.Load()) {
		age = max(age, time.Since(time.UnixMilli(n.machine.latest.Load().nowMs)))
	}
	return max(0, age)
}

// Status asks nobody else. The members are those that this node knows.
func (n *Node) Status() (Status, error) {
	s := Status{
		Node: n.id, Role: role(n.raft.State()), Term: n.raft.CurrentTerm(), Applied: n.machine.applied.Load(),
		Committed: n.raft.CommitIndex(), LastLog: n.raft.LastIndex(), LastContact: -1, SinceBytes: n.machine.since.Load(),
	}
	s.Leader, s.LeaderAddress = n.Leader()
	if at := n.raft.LastContact(); n.IsLeader() {
		s.LastContact = 0
	} else if !at.IsZero() {
		s.LastContact = time.Since(at)
	}
	newest, err := n.snapshots.newest()
	if err != nil {
		return s, err
	}
	if newest != nil {
		s.SnapshotIndex, s.SnapshotAt = newest.Index, newest.At
	}
	s.Members, err = n.Members()
	return s, err
}

func role(s raft.RaftState) string {
	switch s {
	case raft.Leader:
		return "leader"
	case raft.Candidate:
		return "candidate"
	case raft.Shutdown:
		return "stopped"
	}
	return "follower"
}

// Members are the nodes of the cluster.
func (n *Node) Members() (members []Member, err error) {
	future := n.raft.GetConfiguration()
	if err := future.Error(); err != nil {
		return nil, asked(err)
	}
	for _, s := range future.Configuration().Servers {
		members = append(members, Member{ID: string(s.ID), Address: string(s.Address), Voter: s.Suffrage == raft.Voter})
	}
	return members, nil
}

// asked turns an error of raft into the one that sends the caller to the leader.
func asked(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("%w: %w", store.ErrNotLeader, err)
	}
	return err
}

// AddNonvoter adds a node that gets the log and has no vote. Of a leader only.
func (n *Node) AddNonvoter(ctx context.Context, id, address string) error {
	if err := n.mayAdd(ctx, id, address); err != nil {
		return err
	}
	return asked(n.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(address), 0, changeFor).Error())
}

// ErrBehind is what AddVoter answers while the node has not caught up.
var ErrBehind = errors.New("the node has not caught up with the log yet")

// AddVoter gives a node a vote that says what its Status has as LastLog. It must know of all
// members: a node gives its vote to none that it does not know. Of a leader only.
func (n *Node) AddVoter(ctx context.Context, id, address string, lastLog uint64) error {
	if err := n.mayAdd(ctx, id, address); err != nil {
		return err
	}
	if !n.HasNearlyAll(lastLog) {
		return fmt.Errorf("%w: it has %d of %d entries", ErrBehind, lastLog, n.raft.LastIndex())
	}
	return asked(n.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(address), 0, changeFor).Error())
}

// HasNearlyAll reports whether a node may vote whose Status has that as LastLog.
func (n *Node) HasNearlyAll(lastLog uint64) bool {
	return lastLog >= n.machine.members.Load() && lastLog+behindBy >= n.raft.LastIndex()
}

// mayAdd refuses the address of another member.
func (n *Node) mayAdd(ctx context.Context, id, address string) error {
	if err := n.VerifyLeader(ctx); err != nil {
		return err
	}
	members, err := n.Members()
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Address == address && m.ID != id {
			return fmt.Errorf("node %s has the address %s: remove it first", m.ID, address)
		}
	}
	return nil
}

// Remove takes a node out of the cluster. Of a leader only.
func (n *Node) Remove(ctx context.Context, id string) error {
	if err := n.VerifyLeader(ctx); err != nil {
		return err
	}
	return asked(n.raft.RemoveServer(raft.ServerID(id), 0, changeFor).Error())
}

// Transfer makes another voter the leader, the one that has most of the log if id is empty. It
// returns when that node was told; Changes says when it leads. Of a leader only.
func (n *Node) Transfer(ctx context.Context, id string) error {
	if err := n.VerifyLeader(ctx); err != nil {
		return err
	}
	if id == "" {
		return asked(n.raft.LeadershipTransfer().Error())
	}
	members, err := n.Members()
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.ID == id {
			return asked(n.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(m.Address)).Error())
		}
	}
	return fmt.Errorf("the cluster has no node %s", id)
}
