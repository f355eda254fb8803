package sim

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/internal/peer"
	"codeq/store"
)

// What the nodes of a cluster must know of one another: whose clock is wrong, and whose disk is
// full. Each node knows the clocks of all, also of those that have no power just now.

const (
	// rightMs is how far a right clock may be off, apartMs how far the clock of a leader may be
	// from the middle one.
	rightMs, apartMs = 4_000, 10_000
	hourMs           = 3600_000
)

// clockIsSet sets the clock of a node, mostly wrong, and those of the others right. A leader whose
// clock is wrong hands over.
func (w *world) clockIsSet() {
	c := w.cluster
	for _, n := range c.nodes {
		n.aheadMs = int64(w.chance.IntN(2*rightMs+1) - rightMs)
	}
	n := pick(w.chance, c.nodes)
	n.aheadMs = pick(w.chance, []int64{n.aheadMs, -hourMs, -30_000, 30_000, 90_000, hourMs})
	w.trace.say("  the clock of %s is set, it is %d ms ahead", n.name, n.aheadMs)
	if !c.mayLead(c.lease.node) {
		w.leadMoves()
	}
}

// mayLead asks a node whether its clock is that of the others.
func (c *cluster) mayLead(n *node) bool {
	var ahead []time.Duration
	for _, other := range c.nodes {
		ahead = append(ahead, time.Duration(other.aheadMs-n.aheadMs)*time.Millisecond)
	}
	return peer.ClockAgrees(ahead) == nil
}

// elected is a node that has power and does not refuse to lead.
func (c *cluster) elected() *node {
	var may []*node
	for _, n := range c.nodes {
		if !n.down && c.mayLead(n) {
			may = append(may, n)
		}
	}
	if len(may) == 0 {
		violate("a node with a right clock may lead", "%d ms, %d ms and %d ms ahead", c.nodes[0].aheadMs, c.nodes[1].aheadMs, c.nodes[2].aheadMs)
	}
	return pick(c.world.chance, may)
}

// startClock begins the time of a leader: that of its clock, but not before what leaders have said.
// One clock is wrong at most.
func (c *cluster) startClock(n *node, latestMs int64) {
	isMs := c.world.nowMs - c.aheadMs
	c.world.nowMs = max(isMs+n.aheadMs, latestMs)
	if c.aheadMs = c.world.nowMs - isMs; max(c.aheadMs, -c.aheadMs) > apartMs+rightMs {
		violate("the clock of a leader is that of the others", "%s leads %d ms ahead of the time", n.name, c.aheadMs)
	}
}

// setFree says how much the disk has left.
func (m *machine) setFree(bytes int64) {
	m.disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: uint64(bytes), TotalBytes: diskBytes})
}

func (n *node) setFree(bytes int64) {
	n.freeBytes = bytes
	n.machine.setFree(bytes)
}

// diskFills fills or empties the disks of some nodes, and lets the guard of the leader look.
func (c *cluster) diskFills() {
	for _, n := range c.nodes {
		if c.world.chance.oneIn(2) {
			n.setFree(pick(c.world.chance, spaces))
		}
		c.world.trace.say("  %d KiB are free at %s", n.freeBytes>>10, n.name)
	}
	c.world.tick()
}

// countFree is what the disk guard of a node counts with: while it leads with the disks of all, and
// one without power has none.
func (c *cluster) countFree(n *node, ownBytes int64) int64 {
	if c.lease == nil || c.lease.node != n {
		return ownBytes
	}
	free := []int64{ownBytes}
	for _, other := range c.nodes {
		switch {
		case other.down:
			free = append(free, 0)
		case other != n:
			free = append(free, other.freeBytes)
		}
	}
	return peer.CountFree(free)
}

// countsDisks says that a full disk stops the work of its own node, and two stop that of all.
func (c *cluster) countsDisks() {
	if c == nil {
		return
	}
	want := store.Ok
	for level, below := range map[store.Level]int64{store.NoEnqueue: diskBytes / 2, store.NoGrant: diskBytes / 4, store.OnlyDelete: diskBytes / 8} {
		short := 0
		for _, n := range c.nodes {
			if n.down || n.freeBytes < below {
				short++
			}
		}
		if short > 1 || level == store.OnlyDelete && c.lease.freeBytes < below {
			want = max(want, level)
		}
	}
	if is := c.world.server.store.Guard().Level(); is != want {
		violate("one full disk of a cluster stops nobody else, and two stop all", "%v, want %v, of %s free are %d, %d and %d", is, want,
			c.lease.name, c.nodes[0].freeBytes, c.nodes[1].freeBytes, c.nodes[2].freeBytes)
	}
}
