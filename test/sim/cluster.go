package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rs/zerolog"

	"codeq/internal/replica"
	"codeq/store"
)

// Worlds of three nodes. The simulator is the log between them: it decides which entries are
// committed, how far each node has applied them, which of them an old leader never hears of or
// sends too late, and when a node has no leader, no power, or a log that begins behind what
// another one has. What is committed is for ever; so the model stays as it is.

// nodesOf is how many nodes a cluster has.
const nodesOf = 3

// cluster is the log and the nodes of a world.
type cluster struct {
	world *world
	nodes []*node
	// log are the entries from index base on, all of them committed.
	log  [][]byte
	base uint64
	// late are entries of leaders that lead no more, which may still come into the log.
	late [][]byte
	// lease is that of the newest leader, at its node; secret is that of the first database.
	lease  *lease
	secret []byte
	// latestMs is the latest time of an entry, sentMs that of one which may still come late: the
	// clock of the next leader may be behind that.
	latestMs, sentMs int64
	// aheadMs is how far the clock of the leader is ahead of the time that it is.
	aheadMs int64
}

// node is a node of the cluster. down: it has no power.
type node struct {
	*machine
	down  bool
	name  string
	store *store.Store
	copy  *replica.Copy
	// first and last are the entries that its own log has.
	first, last uint64
	// freeBytes is what its disk has left, aheadMs how far its clock is ahead of the time that it is.
	freeBytes, aheadMs int64
}

// lease is one time of a node as the leader. It implements store.Replicator.
type lease struct {
	*node
	cluster *cluster
	epoch   uint64
	// ends: its entries are counted. heard more are committed and it hears of them, unheard
	// more are committed and it does not, all others do not come into the log, or late.
	ends           bool
	heard, unheard int
	// over are the shards whose last round was made when it had ended.
	over []bool
	// landed are the shards whose last batch, which nobody heard of, is committed.
	landed []bool
}

// clustered makes the world one of three nodes.
func (s *shape) clustered() {
	s.adds(operation{name: "lead", weight: 30, do: (*world).leadMoves})
	s.adds(operation{name: "follow", weight: 150, do: (*world).followSome})
	s.adds(operation{name: "snapshot", weight: 40, do: (*world).snapshotSome})
	s.adds(operation{name: "node", weight: 15, do: (*world).nodeFails})
	s.adds(operation{name: "clock", weight: 15, do: (*world).clockIsSet})
}

// found makes a cluster of three: the first node from nothing, the others from its snapshot.
func (w *world) found() {
	c := &cluster{world: w, base: 2}
	w.cluster = c
	var id replica.Identity
	for i := range nodesOf {
		n := &node{machine: &machine{disk: w.newDisk()}, name: fmt.Sprintf("node%d", i), freeBytes: diskBytes}
		var err error
		if i == 0 {
			n.first, n.last = c.base, c.base-1
			id, err = replica.Init(replica.InitOptions{FS: n.files(), Dir: dataDir, Shards: w.shape.shards, Address: n.name, Log: zerolog.Nop()})
			n.name = id.Node
		} else {
			_, err = replica.Prepare(replica.PrepareOptions{
				FS: n.files(), Dir: dataDir, Node: n.name, CreationID: id.CreationID, Shards: id.Shards, Log: zerolog.Nop(),
			})
		}
		if err != nil {
			violate("a cluster is made", "%v", err)
		}
		c.nodes = append(c.nodes, n)
		c.open(n)
		if i > 0 {
			c.send(c.nodes[0], n, false)
		}
	}
	c.secret = c.nodes[0].store.Secret()
	c.lead(c.nodes[0])
}

// end is the index of the last entry.
func (c *cluster) end() uint64 { return c.base + uint64(len(c.log)) - 1 }

// open starts the process of a node.
func (c *cluster) open(n *node) {
	w := c.world
	o := w.storeOptions(n.machine)
	o.CountFree = func(ownBytes int64) int64 { return c.countFree(n, ownBytes) }
	o.Node, o.LevelChanged = n.name, func(level store.Level) {
		if w.server != nil && w.server.machine == n.machine {
			w.server.gates.SpaceChanged(level)
		}
	}
	opened, err := store.Open(o)
	if err != nil {
		violate("the store opens after every crash", "%v", err)
	}
	n.store = opened
	n.copy, err = replica.OpenCopy(&replica.Options{Store: opened, FS: o.FS, Dir: dataDir, Node: n.name, Log: zerolog.Nop(), Fatal: n.fatal})
	if err != nil {
		violate("a node opens after every crash", "%v", err)
	}
	if at := n.copy.Index(); at+1 < n.first || at > n.last {
		violate("what the database has not is in the log", "%s is at %d, its log has %d to %d", n.name, at, n.first, n.last)
	}
	n.down = false
	n.nextLog.Store(false)
	n.flushedAt = opened.Guard().FreeBytes()
}

// append commits an entry: all nodes with power have it.
func (c *cluster) append(entry []byte) {
	c.log = append(c.log, entry)
	for _, n := range c.nodes {
		if !n.down {
			n.last = c.end()
		}
	}
}

// apply has a node apply some entries, and a few that it has already, and says what each came to.
func (c *cluster) apply(n *node, most, again int) []uint64 {
	from := n.copy.Index() + 1
	to := min(n.last, from+uint64(most)-1)
	from = max(n.first, from-min(from, uint64(again)))
	if from > to {
		return nil
	}
	came := n.copy.Apply(from, c.log[from-c.base:to+1-c.base])
	if n.copy.Index() < to {
		violate("a node applies what the log says", "%s is at %d of %d", n.name, n.copy.Index(), to)
	}
	c.mayFlush(n)
	return came
}

// mayFlush writes tables before Pebble itself does.
func (c *cluster) mayFlush(n *node) {
	if n.flushedAt-n.store.Guard().FreeBytes() < flushBytes && !n.nextLog.Load() {
		return
	}
	if err := n.store.Flush(); err != nil {
		violate("tables can be written", "%v", err)
	}
	n.nextLog.Store(false)
	n.flushedAt = n.store.Guard().FreeBytes()
	if n.tables++; n.tables < tablesMost {
		return
	}
	n.tables = 0
	if err := n.store.Compact(context.Background()); err != nil {
		violate("tables can be merged", "%v", err)
	}
}

// Replicate implements store.Replicator.
func (l *lease) Replicate(shard int, number uint64, batch []byte) error {
	c := l.cluster
	w := c.world
	l.waits()
	if w.chance.oneIn(16) {
		w.nowMs += int64(w.chance.IntN(40)) // on its way
	}
	entry, sentMs := l.copy.Entry(l.epoch, w.nowMs, shard, number, batch), w.nowMs
	c.sentMs = max(c.sentMs, sentMs)
	switch {
	case !l.leads() && l.unheard == 0:
		c.late = append(c.late, entry)
		return store.ErrNotLeader
	case !l.leads():
		l.unheard--
		l.landed[shard] = true
		c.append(entry)
		c.latestMs = max(c.latestMs, sentMs)
		c.apply(l.node, len(c.log), 0) // the model looks at it
		return store.ErrNotLeader
	case l.ends:
		l.heard--
	}
	c.append(entry)
	c.latestMs = max(c.latestMs, sentMs)
	if came := c.apply(l.node, len(c.log), 0); came[len(came)-1] != 1 {
		violate("what the leader commits is written", "batch %d of shard %d: %v", number, shard, came)
	}
	w.server.durable[shard] = number
	if w.chance.oneIn(32) {
		c.append(entry) // it was sent twice
		c.apply(l.node, 1, w.chance.IntN(3))
	}
	if l.waits(); !l.leads() {
		l.landed[shard] = true
		return store.ErrNotLeader
	}
	return nil
}

func (l *lease) leads() bool { return !l.ends || l.heard > 0 }

// StillLeads implements store.Replicator.
func (l *lease) StillLeads() error {
	l.waits()
	if !l.leads() {
		return store.ErrNotLeader
	}
	return nil
}

// LatestMs implements store.Replicator.
func (l *lease) LatestMs() int64 { return l.copy.LatestMs() }

// lead has a node lead: it has the whole log, and opens an epoch behind it.
func (c *cluster) lead(n *node) {
	w := c.world
	c.apply(n, len(c.log), 0)
	c.append(n.copy.Opening())
	l := &lease{node: n, cluster: c, epoch: c.apply(n, 1, 0)[0], landed: make([]bool, w.shape.shards), over: make([]bool, w.shape.shards)}
	c.lateCome()
	c.apply(n, len(c.log), 0)
	c.lease = l
	s := w.newServer(n.machine)
	s.lease = l
	opened, err := n.store.Lead(l, s.synced)
	if err != nil {
		violate("the store opens after every crash", "%v", err)
	}
	if !bytes.Equal(opened.Secret(), c.secret) {
		violate("a session can resume at every node", "%s has another secret", n.name)
	}
	w.trace.say("  %s leads from entry %d on", n.name, l.epoch)
	w.serve(s, opened)
}

// lateCome puts entries of earlier leaders into the log.
func (c *cluster) lateCome() {
	for len(c.late) > 0 && c.world.chance.oneIn(2) {
		i := c.world.chance.IntN(len(c.late))
		c.append(c.late[i])
		c.late = slices.Delete(c.late, i, i+1)
	}
	if len(c.late) > 8 {
		c.late = c.late[len(c.late)-8:]
	}
}

// leadMoves takes the lead from a node while its shards run, and gives it to one that has all.
func (w *world) leadMoves() {
	c := w.cluster
	l := c.lease
	w.fly()
	l.ends, l.heard, l.unheard = true, w.chance.IntN(4), w.chance.IntN(3)
	w.trace.say("  the lead is lost after %d entries, and %d that are not heard of", l.heard, l.unheard)
	for range 1 + w.chance.IntN(2*w.shape.shards) {
		w.goOn(w.chance.IntN(w.shape.shards))
	}
	if w.chance.oneIn(2) {
		w.letOutSome()
	}
	c.returns()
	c.moveTo(c.elected())
}

// moveTo ends the time of the leader, and begins that of a node.
func (c *cluster) moveTo(n *node) {
	c.ends()
	c.lead(n)
	c.world.lifeBegins()
}

// ends is the end of a time as the leader.
func (c *cluster) ends() {
	w := c.world
	w.crashes++
	c.lease.ends, c.lease.heard = true, 0
	w.land(func(shard int) { w.goOn(shard) })
	w.server.silent = true
	w.model.durable() // what was seen of rounds is in the log
	if err := w.server.store.Close(); err != nil {
		violate("a store closes", "%v", err)
	}
	w.lifeEnds()
}

// crash takes the power from the leader, or from all nodes.
func (c *cluster) crash(left bool) {
	w := c.world
	w.fly()
	c.lease.unheard = w.chance.IntN(3)
	c.returns()
	c.ends()
	was, all := c.lease.node, w.chance.oneIn(3)
	for _, n := range c.nodes {
		if all || n == was {
			c.powerOff(n, left)
		}
	}
	if all {
		for _, n := range c.nodes {
			c.open(n)
		}
	}
	c.lead(c.elected())
	w.lifeBegins()
}

// followSome has a node apply some of what it has not yet.
func (w *world) followSome() {
	c := w.cluster
	n := pick(w.chance, c.nodes)
	if n.down {
		if w.chance.oneIn(3) {
			c.returns()
		}
		return
	}
	if w.chance.oneIn(8) {
		c.lateCome()
	}
	c.apply(n, pick(w.chance, []int{1, 3, 40, len(c.log)}), w.chance.IntN(3))
}

// snapshotSome has a node take a snapshot and cut its log.
func (w *world) snapshotSome() {
	n := pick(w.chance, w.cluster.nodes)
	if n.down {
		return
	}
	w.trace.say("  %s takes a snapshot at %d", n.name, n.copy.Index())
	if err := n.copy.Snapshot(); err != nil {
		violate("a snapshot can be taken", "%v", err)
	}
	trailing := w.chance.IntN(4)
	n.first = max(n.first, n.copy.Index()+1-min(n.copy.Index(), uint64(trailing)))
	w.cluster.cut()
}

// cut forgets the entries that no node has in its log.
func (c *cluster) cut() {
	first := c.end() + 1
	for _, n := range c.nodes {
		first = min(first, n.first)
	}
	c.log = c.log[first-c.base:]
	c.base = first
}

// nodeFails takes the power from a node that does not lead.
func (w *world) nodeFails() {
	c := w.cluster
	c.returns()
	n := pick(w.chance, c.nodes)
	if n != c.lease.node {
		c.powerOff(n, w.chance.oneIn(2))
	}
}

// powerOff is the end of a process and of what of its disk was not synced.
func (c *cluster) powerOff(n *node, left bool) {
	c.world.trace.say("  %s has no power (unsynced data kept: %v)", n.name, left)
	disk := c.world.afterCut(n.disk, n.freeBytes, left)
	n.dead.Store(true)
	if err := n.store.Close(); err != nil {
		violate("a store closes", "%v", err)
	}
	n.down, n.machine = true, &machine{disk: disk, tables: n.tables}
}

// returns gives power to the nodes that have none, and from the leader the log that they miss or
// a snapshot.
func (c *cluster) returns() {
	leader := c.lease.node
	for _, n := range c.nodes {
		if !n.down {
			continue
		}
		c.world.trace.say("  %s is back", n.name)
		c.open(n)
		if n.last+1 < leader.first {
			c.world.trace.say("  it misses entries, the log of %s begins at %d", leader.name, leader.first)
			c.send(leader, n, c.world.chance.oneIn(3))
		}
		n.last = c.end()
	}
}

// send gives a node the newest snapshot of another one; lost: the power goes before it has taken
// it over.
func (c *cluster) send(from, to *node, lost bool) {
	c.world.trace.say("  %s sends a snapshot to %s", from.name, to.name)
	err := to.copy.Receive(from.copy)
	if to.first = from.first; err == nil && lost {
		c.powerOff(to, c.world.chance.oneIn(2))
		to.last = c.end()
		c.open(to)
		return
	}
	if err == nil {
		err = to.copy.TakeOver()
	}
	if err != nil || to.copy.Index()+1 < to.first {
		violate("a node takes a snapshot over", "it is at %d, the log begins at %d: %v", to.copy.Index(), to.first, err)
	}
}

// close ends all processes.
func (c *cluster) close() (err error) {
	if c == nil {
		return nil
	}
	for _, n := range c.nodes {
		if n.dead.Store(true); !n.down && n.store != nil {
			err = errors.Join(err, n.store.Close())
		}
	}
	return err
}

// everyNodeHasAll has each node lead: what it has is what was acknowledged.
func (w *world) everyNodeHasAll() {
	if w.cluster == nil {
		return
	}
	c := w.cluster
	c.returns()
	for _, n := range c.nodes {
		n.aheadMs = 0
	}
	for _, n := range c.nodes {
		c.moveTo(n)
		w.compareAll(1)
	}
	for _, n := range c.nodes {
		c.apply(n, len(c.log), 0)
		if n.copy.Digest() != c.nodes[0].copy.Digest() {
			violate("all nodes have the same", "%s differs from %s at %d", n.name, c.nodes[0].name, c.end())
		}
	}
}
