package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"codeq/client"
	"codeq/wire"
)

type clusterCmd struct {
	Init     clusterInitCmd     `cmd:"" without:"url,token,tenant,ca,client-cert" eg:"codeq cluster init --data /var/lib/codeq --address 10.0.0.1:8090" help:"Make a data directory that of the first node of a cluster."`
	Token    clusterTokenCmd    `cmd:"" without:"tenant" eg:"codeq cluster token" help:"Make a token with which a machine becomes a node; it counts once."`
	Join     clusterJoinCmd     `cmd:"" without:"url,token,tenant,ca,client-cert" help:"Make an empty data directory that of a further node."`
	Status   clusterStatusCmd   `cmd:"" without:"tenant" eg:"codeq cluster status" help:"Show the nodes of the cluster, and how many it may lose."`
	Transfer clusterTransferCmd `cmd:"" without:"tenant" eg:"codeq cluster transfer" help:"Hand the lead over to another node."`
	Remove   clusterRemoveCmd   `cmd:"" without:"tenant" eg:"codeq cluster remove 10.0.0.2:8090" help:"Take a node out of the cluster."`
}

type clusterTokenCmd struct {
	ExpiresIn time.Duration `default:"1h" least:"1s" most:"24h" help:"How long the token counts, if it is not used."`
}

// Run has the leader make a token.
func (t *clusterTokenCmd) Run(a *app) error {
	return show(a, func(ctx context.Context, c *client.Client) (string, error) { return c.JoinToken(ctx, t.ExpiresIn) },
		func(token string) error { return a.writeLine([]byte(token)) })
}

type clusterStatusCmd struct{ times }

// Run shows the nodes.
func (s *clusterStatusCmd) Run(a *app) error {
	return show(a, func(ctx context.Context, c *client.Client) (*wire.ClusterStatus, error) { return c.Cluster(ctx) }, a.clusterTable)
}

func (a *app) clusterTable(s *wire.ClusterStatus) error {
	t := a.table(
		column{name: "NODE"}, column{name: "ADDRESS"}, column{name: "STATE", state: true}, column{name: "VOTE"}, column{name: "BEHIND"},
		column{name: "CONTACT", spare: 2}, column{name: "CLOCK"}, column{name: "FREE", spare: 5}, column{name: "SNAPSHOT", spare: 3}, column{name: "VERSION", spare: 1}, column{name: "URL", least: 12, spare: 4},
	)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		state, contact, clock, free := n.Role, "", "", ""
		if !n.Reachable {
			state = "away"
		} else if n.Role != "leader" {
			contact = (time.Duration(n.LastContactMs) * time.Millisecond).String()
		}
		vote := "yes"
		if !n.Voter {
			vote = "not yet"
		}
		if n.ClockAheadMs != 0 {
			clock = fmt.Sprintf("%+.1fs", float64(n.ClockAheadMs)/1000)
		}
		if n.FreeBytes != 0 {
			free = fmt.Sprintf("%.1fGiB", float64(n.FreeBytes)/(1<<30))
		}
		t.row(n.Node[:min(len(n.Node), shownOfNode)], n.Address, state, vote, n.Behind, contact, clock, free, n.SnapshotAt, n.Version, n.URL)
	}
	if err := t.write(); err != nil {
		return err
	}
	if a.Quiet {
		return nil
	}
	return a.writeLine([]byte(clusterSentence(s)))
}

// shownOfNode is how much of the id of a node a table shows.
const shownOfNode = 12

// clusterSentence says how many nodes may be lost.
func clusterSentence(s *wire.ClusterStatus) string {
	switch {
	case s.Voters == 1:
		return "one node votes: if it is lost, the cluster stops; join two further nodes"
	case s.MayLose == 0:
		return fmt.Sprintf("%d of %d voters answer: if one more is lost, the cluster stops until it is back", s.Reachable, s.Voters)
	}
	return fmt.Sprintf("%d of %d voters answer: %d may be lost", s.Reachable, s.Voters, s.MayLose)
}

type clusterTransferCmd struct {
	Node *string `arg:"" optional:"" help:"Node that is to lead: the begin of its id, or its address. Without it the cluster chooses."`
}

// errNoNode refuses an empty argument, as of a variable of a script that is not set.
var errNoNode = wrong("the node must not be empty: give the begin of its id, or its address")

// transferFor is how long "cluster transfer" waits until another node leads.
const transferFor = 10 * time.Second

// Run hands the lead over and waits until another node leads.
func (t *clusterTransferCmd) Run(a *app) error {
	var node string
	if t.Node != nil {
		if node = *t.Node; node == "" {
			return errNoNode
		}
	}
	return show(a, func(ctx context.Context, c *client.Client) (*wire.ClusterStatus, error) {
		before, err := c.Cluster(ctx)
		if err != nil {
			return nil, err
		}
		if err := c.TransferLead(ctx, node); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, transferFor)
		defer cancel()
		for {
			now, err := c.Cluster(ctx)
			if err == nil && (now.Leader != before.Leader || leads(before, node)) {
				return now, nil
			}
			select {
			case <-time.After(transferFor / 100):
			case <-ctx.Done():
				return nil, tryAgain("no other node leads after %v: \"codeq cluster status\" says which does", transferFor)
			}
		}
	}, func(s *wire.ClusterStatus) error {
		a.say("the node %s leads", s.Leader)
		return nil
	})
}

// leads reports whether a named node led already.
func leads(s *wire.ClusterStatus, named string) bool {
	for _, n := range s.Nodes {
		if n.Node == s.Leader {
			return named != "" && (n.Address == named || strings.HasPrefix(n.Node, named))
		}
	}
	return false
}

type clusterRemoveCmd struct {
	Node string `arg:"" help:"The begin of the id of the node, or its address."`
}

// Help is the longer text of "codeq cluster remove --help".
func (r *clusterRemoveCmd) Help() string {
	return `The node is refused by the others from then on, for ever: to have the machine back, empty its data directory and join
with a new token. The command is refused if the other nodes could not decide without it, or would be two with a vote.`
}

// Run takes a node out.
func (r *clusterRemoveCmd) Run(a *app) error {
	if r.Node == "" {
		return errNoNode
	}
	return a.ask(func(ctx context.Context, c *client.Client) error {
		// A read may leave an address that does not answer for the next one, a removal may not.
		if _, err := c.Cluster(ctx); err != nil {
			return err
		}
		if err := c.RemoveNode(ctx, r.Node); err != nil {
			return err
		}
		if a.JSON {
			return a.writeJSON(struct {
				Node string `json:"node"`
			}{r.Node})
		}
		a.say("the node %s is no member of the cluster any more; stop it", r.Node)
		return nil
	})
}
