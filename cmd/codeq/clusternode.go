//go:build unix && !clientonly

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/config"
	"codeq/internal/peer"
	"codeq/internal/replica"
	"codeq/internal/server"
	"codeq/store"
)

// tokensOfInit is how many tokens "cluster init" makes: with two further nodes a cluster can
// lose one.
const tokensOfInit = 2

type clusterInitCmd struct {
	Data    string `type:"path" default:"./codeq-data" placeholder:"DIR" help:"Data directory, which keeps its tasks; no server may run over it. It is made if it is not there."`
	Address string `required:"" placeholder:"HOST:PORT" help:"Address at which the other nodes will reach this one; the port is for nodes alone."`
	From    string `type:"path" placeholder:"DIR" help:"Backup that is restored into the data directory first."`
	Shards  int    `placeholder:"N" help:"Shards of a new data directory, 4 if not given."`
	CACert  string `name:"ca-cert" type:"path" placeholder:"FILE" help:"Certificate of an authority, in PEM, that is to sign those of the nodes, in place of a new one."`
	CAKey   string `name:"ca-key" type:"path" placeholder:"FILE" help:"Its private key, in PEM."`
	ifNeeded
}

// ifNeeded is the flag with which a command that makes a node may stand before each start.
type ifNeeded struct {
	IfNeeded bool `help:"Do nothing if the data directory is that of a node already, so that the command can stand before each start of a container."`
}

// done reports whether nothing is left to do: the directory has the identity of a node and its
// certificate.
func (i ifNeeded) done(data string) (bool, error) {
	if !i.IfNeeded {
		return false, nil
	}
	_, is, err := replica.ReadIdentity(vfs.Default, data)
	if !is || err != nil {
		return false, err
	}
	return peer.IsNode(data)
}

// Help is the longer text of "codeq cluster init --help".
func (i *clusterInitCmd) Help() string {
	return `The command prints two tokens, for two further nodes, that count once and for an hour. Start the node, then on each of
the other machines:

  codeq cluster join TOKEN --data /var/lib/codeq --address 10.0.0.2:8090
  codeq serve --data /var/lib/codeq

The directory peer in the data directory has the key of the authority of the cluster: keep others from reading it.`
}

// Run makes the first node.
func (i *clusterInitCmd) Run(a *app) error {
	if done, err := i.done(i.Data); done || err != nil {
		return err
	}
	founding, err := i.founding()
	if err != nil {
		return err
	}
	if i.From != "" {
		ctx, done := a.untilStopped()
		defer done()
		if _, err := store.Restore(ctx, store.Options{Dir: i.Data, Log: zerolog.Nop()}, i.From); err != nil {
			return err
		}
	}
	id, err := replica.Init(replica.InitOptions{
		FS: vfs.Default, Dir: i.Data, Shards: i.Shards, Address: i.Address, Restored: i.From != "", Log: zerolog.Nop(),
		Before: func(node string) error {
			founding.Node = node
			return peer.Found(i.Data, founding)
		},
	})
	if err != nil {
		return err
	}
	made := clusterMade{Node: id.Node, Address: i.Address, Data: i.Data}
	for range tokensOfInit {
		token, err := peer.Invite(i.Data, time.Hour, time.Now())
		if err != nil {
			return err
		}
		made.Tokens = append(made.Tokens, token)
	}
	if a.JSON {
		return a.writeJSON(made)
	}
	a.say("%s is the first node of a cluster; start it with \"codeq serve --data %s\". Tokens for two further nodes, shown only now:", i.Data, i.Data)
	for _, token := range made.Tokens {
		if err := a.writeLine([]byte(token)); err != nil {
			return err
		}
	}
	return nil
}

// clusterMade is the answer of the commands that make a node, for programs.
type clusterMade struct {
	Node    string   `json:"node"`
	Address string   `json:"address"`
	Data    string   `json:"data"`
	Tokens  []string `json:"tokens,omitempty"`
}

// founding checks what was given, before anything is made.
func (i *clusterInitCmd) founding() (*peer.Founding, error) {
	f := &peer.Founding{Address: i.Address, Now: time.Now()}
	if problem := peer.AddressProblem(i.Address); problem != "" {
		return nil, wrong("--address %s, got %.80q", problem, i.Address)
	}
	if (i.CACert == "") != (i.CAKey == "") {
		return nil, wrong("--ca-cert and --ca-key belong together: give both, or neither for a new authority")
	}
	if i.CACert == "" {
		return f, nil
	}
	certificate, err := os.ReadFile(i.CACert)
	key, keyErr := os.ReadFile(i.CAKey)
	if err := errors.Join(err, keyErr); err != nil {
		return nil, wrong("read the authority: %w", err)
	}
	f.Authority, f.AuthorityKey = string(certificate), string(key)
	return f, f.Check()
}

type clusterJoinCmd struct {
	Token   string `arg:"" help:"Token that \"codeq cluster init\" or \"codeq cluster token\" has printed."`
	Data    string `type:"path" default:"./codeq-data" placeholder:"DIR" help:"Data directory of the node; it must not exist, or be empty."`
	Address string `required:"" placeholder:"HOST:PORT" help:"Address at which the other nodes will reach this one; the port is for nodes alone."`
	ifNeeded
}

// Help is the longer text of "codeq cluster join --help".
func (j *clusterJoinCmd) Help() string {
	return `The node that made the token must run. It gives the machine a certificate; the cluster knows of the node when that
serves for the first time. It gets all data then, and its vote together with a further node, so that the number of votes
is odd.

  codeq cluster join cqj_EXAMPLE --data /var/lib/codeq --address 10.0.0.2:8090
  codeq serve --data /var/lib/codeq`
}

// Run makes a further node.
func (j *clusterJoinCmd) Run(a *app) error {
	if done, err := j.done(j.Data); done || err != nil {
		return err
	}
	entries, err := os.ReadDir(j.Data)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the data directory: %w", err)
	}
	if len(entries) > 0 {
		return wrong("%s is not empty, it has %s: a node joins with an empty directory", j.Data, entries[0].Name())
	}
	ctx, done := a.untilStopped()
	defer done()
	node := replica.NewNodeID()
	grant, err := peer.Join(ctx, j.Token, node, j.Address)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(j.Data)), 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	if _, err := replica.Prepare(replica.PrepareOptions{
		FS: vfs.Default, Dir: j.Data, Node: node, CreationID: grant.CreationID, Shards: grant.Shards, Log: zerolog.Nop(),
	}); err != nil {
		return err
	}
	if err := grant.Write(j.Data); err != nil {
		return err
	}
	if a.JSON {
		return a.writeJSON(clusterMade{Node: node, Address: j.Address, Data: j.Data})
	}
	a.say("%s is the node %s; start it with \"codeq serve --data %s\"", j.Data, node, j.Data)
	return nil
}

// cluster is what the server of a node of a cluster needs; nil for a server alone.
func (s *serveCmd) cluster(settings *config.Resolved) (*server.Cluster, error) {
	_, is, err := replica.ReadIdentity(vfs.Default, s.Data)
	if err != nil {
		return nil, err
	}
	if is && s.ArtifactsDir != "" && !s.ArtifactsShared {
		return nil, wrong("artifacts-dir (%s) is on this node alone, and another one that leads would not have the files: use artifacts-s3, or set artifacts-shared if all nodes have the directory",
			settings.Origin("artifacts-dir"))
	}
	if is {
		return &server.Cluster{Listen: s.PeerListen}, nil
	}
	if s.ArtifactsShared {
		return nil, wrong("artifacts-shared (%s) is for a node of a cluster, and %s is no directory of one", settings.Origin("artifacts-shared"), s.Data)
	}
	for name, value := range map[string]string{"peer-listen": s.PeerListen, "node-url": s.NodeURL} {
		if value != "" {
			return nil, wrong("%s (%s) is for a node of a cluster, and %s is no directory of one: make it one with \"codeq cluster init\" or \"codeq cluster join\", or leave the setting out",
				name, settings.Origin(name), s.Data)
		}
	}
	return nil, nil
}
