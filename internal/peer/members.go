package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"codeq/wire"
)

const (
	// statusFor is how long a node may take to say how it is.
	statusFor = 2 * time.Second
	// waitingFor is for how long a node that asked for its vote counts as one that waits.
	waitingFor = 5 * time.Second
	// shownApart is the least difference between two clocks that is shown.
	shownApart = time.Second
)

// member is the request of a node to be one.
type member struct {
	Address string `json:"address"`
	LastLog uint64 `json:"lastLog"`
}

// addMember makes the node that asks a member, and a voter when it has caught up and the number
// of voters becomes odd by it.
func (p *Peers) addMember(ctx context.Context, node string, asked *member) error {
	if AddressProblem(asked.Address) != "" {
		return errors.New("the request to be a member is not in its form")
	}
	if leader, at := p.node.Leader(); leader != p.directory.self.Node {
		return &refusedError{refused{Error: "this node does not lead", Leader: at}}
	}
	p.changing.Lock()
	defer p.changing.Unlock()
	p.mu.Lock()
	members, gone := p.roster(), p.seen[node]
	p.mu.Unlock()
	known := false
	for _, m := range members {
		switch {
		case m.Node == node && m.Voter:
			return nil
		case m.Node == node:
			known = true
		case m.Address == asked.Address:
			return errors.New(taken(m))
		}
	}
	if gone && !known {
		return fmt.Errorf("the node %s was removed from the cluster: empty its directory and join with a new token", node)
	}
	ctx, cancel := context.WithTimeout(ctx, addFor)
	defer cancel()
	m := Member{Node: node, Address: asked.Address}
	if !known {
		return errors.Join(p.node.AddNonvoter(ctx, m), errCatchesUp)
	}
	if !p.node.HasNearlyAll(asked.LastLog) {
		return errCatchesUp
	}
	p.waiting[node] = time.Now()
	if voters := countVoters(members); voters%2 == 1 && !p.othersWait(node) {
		return fmt.Errorf("%d voters can lose no more nodes than %d can: this node has all data and gets its vote together with a further one, or when a voter is removed",
			voters+1, voters)
	}
	if err := p.node.AddVoter(ctx, m, asked.LastLog); err != nil {
		return err
	}
	delete(p.waiting, node)
	p.log.Info().Str("node", node).Str("address", asked.Address).Msg("a node votes in the cluster now")
	return nil
}

var errCatchesUp = errors.New("this node is a member and gets its vote when it has all data")

// othersWait reports whether a node beside this one waits for its vote. p.changing is held.
func (p *Peers) othersWait(node string) bool {
	for other, asked := range p.waiting {
		if other != node && time.Since(asked) < waitingFor {
			return true
		}
	}
	return false
}

func countVoters(members []Member) (n int) {
	for _, m := range members {
		if m.Voter {
			n++
		}
	}
	return n
}

// Status asks every member how it is.
func (p *Peers) Status(ctx context.Context) *wire.ClusterStatus {
	members := p.members()
	s := &wire.ClusterStatus{Leader: p.directory.self.Node, Nodes: make([]wire.ClusterNode, len(members))}
	self := p.node.About()
	s.Term = self.Term
	ctx, cancel := context.WithTimeout(ctx, statusFor)
	defer cancel()
	var asked sync.WaitGroup
	for i, m := range members {
		asked.Go(func() {
			said, ahead, err := &self, time.Duration(0), error(nil)
			if m.Node != s.Leader {
				said, ahead, err = p.about(ctx, m)
			}
			s.Nodes[i] = said.of(m, err == nil, self.Applied)
			if err == nil && ahead.Abs() > shownApart {
				s.Nodes[i].ClockAheadMs = ahead.Milliseconds()
			}
		})
	}
	asked.Wait()
	for _, n := range s.Nodes {
		if n.Voter {
			s.Voters++
		}
		if n.Voter && n.Reachable {
			s.Reachable++
		}
	}
	s.MayLose = max(0, s.Reachable-majority(s.Voters))
	return s
}

// majority is how many of so many voters decide.
func majority(voters int) int { return voters/2 + 1 }

// About is what a node says of itself.
type About struct {
	URL           string    `json:"url"`
	Role          string    `json:"role"`
	Version       string    `json:"version"`
	Term          uint64    `json:"term"`
	Applied       uint64    `json:"applied"`
	LastContactMs int64     `json:"lastContactMs"`
	SnapshotAt    time.Time `json:"snapshotAt"`
	// NowMs is its system clock, in Unix milliseconds, FreeBytes the space on its disk, 0 if the
	// system does not tell it.
	NowMs     int64 `json:"nowMs"`
	FreeBytes int64 `json:"freeBytes"`
	// Form is the newest form of entries of the log that it reads; a node of 0.1.0 does not tell it.
	Form int `json:"form"`
	// Asks says that it asks clients for credentials.
	Asks bool `json:"asks"`
}

func (a *About) of(m Member, reachable bool, leaderHas uint64) wire.ClusterNode {
	n := wire.ClusterNode{Node: m.Node, Address: m.Address, Voter: m.Voter, Reachable: reachable}
	if !reachable {
		return n
	}
	n.URL, n.Role, n.Version, n.Applied, n.LastContactMs = a.URL, a.Role, a.Version, a.Applied, a.LastContactMs
	n.FreeBytes = a.FreeBytes
	n.Behind = leaderHas - min(leaderHas, a.Applied)
	if !a.SnapshotAt.IsZero() {
		n.SnapshotAt = a.SnapshotAt.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return n
}

// find is the node of a status that a person names by its id, the begin of it or its address.
func find(s *wire.ClusterStatus, named string) (*wire.ClusterNode, *wire.Error) {
	var found []*wire.ClusterNode
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Address == named || named != "" && strings.HasPrefix(n.Node, named) {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 0:
		return nil, wire.Refuse(wire.CodeNotFound, fmt.Sprintf("the cluster has no node %.80q: \"codeq cluster status\" lists them", named))
	case 1:
		return found[0], nil
	}
	return nil, wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf("several nodes begin with %.80q: give more of the id", named))
}

// Remove takes a node out of the cluster, if the others can decide without it.
func (p *Peers) Remove(ctx context.Context, named string) *wire.Error {
	p.changing.Lock()
	defer p.changing.Unlock()
	s := p.Status(ctx)
	n, refusal := find(s, named)
	if refusal != nil {
		return refusal
	}
	if refusal := p.mayRemove(s, n); refusal != nil {
		return refusal
	}
	if err := p.node.Remove(ctx, n.Node); err != nil {
		return p.changeFailed(err)
	}
	delete(p.waiting, n.Node)
	p.log.Info().Str("node", n.Node).Str("address", n.Address).Msg("a node was removed from the cluster")
	p.Cut(n.Node)
	return nil
}

func (p *Peers) mayRemove(s *wire.ClusterStatus, n *wire.ClusterNode) *wire.Error {
	refuse := func(format string, args ...any) *wire.Error {
		return wire.Refuse(wire.CodeClusterRefused, fmt.Sprintf(format, args...))
	}
	left, alive := s.Voters-1, s.Reachable
	if n.Reachable {
		alive--
	}
	switch {
	case n.Node == s.Leader:
		return refuse("this node leads: hand the lead over first (codeq cluster transfer), then remove it")
	case !n.Voter:
		return nil
	case alive < majority(left):
		return refuse("only %d of the other %d voters answer, and %d are needed to decide anything: start them first", alive, left, majority(left))
	case left%2 == 0 && n.Reachable && !p.othersWait(""):
		return refuse("%d voters can lose no more nodes than %d can: join a node first, which waits until this one is removed; or stop this node, if it is to be replaced by one at its address",
			left, left-1)
	}
	return nil
}

// Transfer hands the lead over to a node, to the one that has most of the log if none is named.
func (p *Peers) Transfer(ctx context.Context, named string) *wire.Error {
	p.changing.Lock()
	defer p.changing.Unlock()
	s, to := p.Status(ctx), ""
	if named != "" {
		n, refusal := find(s, named)
		if refusal != nil {
			return refusal
		}
		switch to = n.Node; {
		case n.Node == s.Leader:
			return nil
		case !n.Voter:
			return wire.Refuse(wire.CodeClusterRefused, "this node has no vote yet, so it cannot lead: \"codeq cluster status\" says how far behind it is")
		case !n.Reachable:
			return wire.Refuse(wire.CodeClusterRefused, "this node does not answer: start it first")
		}
	} else if s.Reachable < 2 {
		return wire.Refuse(wire.CodeClusterRefused, "no other voter answers: the lead stays here")
	}
	if err := p.node.Transfer(ctx, to); err != nil {
		return p.changeFailed(err)
	}
	return nil
}

// changeFailed is the refusal of a change that the log did not take.
func (p *Peers) changeFailed(err error) *wire.Error {
	p.log.Warn().Err(err).Msg("a change of the cluster failed")
	return wire.Refuse(wire.CodeNotLeader, "the change was not decided, or this node leads no more: look with \"codeq cluster status\" whether it is done")
}

// client asks one node.
func (p *Peers) client(node string) *http.Client {
	return over(func(ctx context.Context, at string) (net.Conn, error) { return p.dial(ctx, overNodes, at, node) })
}
