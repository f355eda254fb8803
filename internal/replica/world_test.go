package replica

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"

	"codeq/store"
)

// logWorld is three nodes of which the test itself is the log: what it holds is committed.
type logWorld struct {
	t      *testing.T
	random *rand.Rand
	log    []*raft.Log
	nodes  []*logNode
	// leaders are all there were; each may go on as if it still led.
	leaders []*logLeader
	// want are the payloads that belong into the database, made how many there were.
	want map[int]bool
	made int
}

type logNode struct {
	fs    *vfs.MemFS
	store *store.Store
	*Node
}

// logLeader is a time as the leader. next are the numbers of its next batches, stored how many of
// each shard are in the log without a gap.
type logLeader struct {
	epoch        uint64
	next, stored [shards]int
}

func (w *logWorld) open(fs *vfs.MemFS) *logNode {
	w.t.Helper()
	s, n := openMachine(w.t, steadyMem{fs})
	return &logNode{fs, s, n}
}

func (w *logWorld) append(l *raft.Log) {
	l.Index, l.Term = uint64(len(w.log))+2, 1
	w.log = append(w.log, l)
}

// elect opens an epoch.
func (w *logWorld) elect() {
	w.append(opens(0))
	l := &logLeader{epoch: uint64(len(w.log)) + 1}
	for i := range l.next {
		l.next[i], l.stored[i] = 1, 0
	}
	w.leaders = append(w.leaders, l)
}

// write has the leader, or an earlier one, make an entry, which is committed or lost.
func (w *logWorld) write() {
	l := w.leaders[len(w.leaders)-1]
	if w.random.IntN(4) == 0 {
		l = w.leaders[w.random.IntN(len(w.leaders))]
	}
	lost := w.random.IntN(6) == 0
	var batches [][3]int
	for range 1 + w.random.IntN(3) {
		shard := w.random.IntN(shards)
		w.made++
		batches = append(batches, [3]int{shard, l.next[shard], w.made})
		follows := l == w.leaders[len(w.leaders)-1] && l.stored[shard] == l.next[shard]-1
		if follows && !lost {
			w.want[w.made] = true
			l.stored[shard]++
		}
		l.next[shard]++
	}
	if !lost {
		w.append(holds(w.t, 0, l.epoch, batches...))
	}
}

// apply has a node apply some of the log.
func (w *logWorld) apply(n *logNode, most int) {
	from := int(n.machine.at.index) - 1
	to := min(len(w.log), from+most)
	if from = max(0, from-w.random.IntN(3)); from < to { // raft may begin again before what the database has
		n.machine.ApplyBatch(w.log[from:to])
	}
}

// cut has a node lose power: of what was not synced nothing is left.
func (w *logWorld) cut(i int) {
	w.t.Helper()
	n := w.nodes[i]
	clone := n.fs.CrashClone(vfs.CrashCloneCfg{})
	closeMachine(w.t, n.store, n.Node)
	w.nodes[i] = w.open(clone)
}

// send has a node take a snapshot, which another one takes over if it is behind.
func (w *logWorld) send(from, to *logNode) {
	w.t.Helper()
	index := from.machine.at.index
	if from == to || index <= to.machine.at.index {
		return
	}
	made, err := from.machine.Snapshot()
	if err != nil {
		w.t.Fatal(err)
	}
	defer made.Release()
	own := sinkOf(w.t, from.Node, &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: index, Term: 1})
	if err := made.Persist(own); err != nil {
		w.t.Fatal(err)
	}
	meta, stream, err := from.snapshots.Open(own.ID())
	if err != nil {
		w.t.Fatal(err)
	}
	into := sinkOf(w.t, to.Node, meta)
	if _, err := io.Copy(into, stream); err != nil {
		w.t.Fatal(err)
	}
	if err := stream.Close(); err != nil {
		w.t.Error(err)
	}
	if err := into.Close(); err != nil {
		w.t.Fatal(err)
	}
	if w.random.IntN(4) == 0 {
		w.cut(slices.Index(w.nodes, to)) // before it takes it over: the start does
		return
	}
	_, received, err := to.snapshots.Open(into.ID())
	if err != nil {
		w.t.Fatal(err)
	}
	if err := to.machine.Restore(counted{received}); err != nil {
		w.t.Fatal(err)
	}
	if err := received.Close(); err != nil {
		w.t.Error(err)
	}
}

// Whatever nodes lose and whoever leads, all of them have what was committed by the leader of its
// time and follows on what that leader wrote before, and nothing else.
func TestAllNodesHaveWhatTheLogSays(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runLog(t, uint64(seed)) })
	}
}

func runLog(t *testing.T, seed uint64) {
	w := &logWorld{t: t, random: rand.New(rand.NewPCG(seed, 7)), want: make(map[int]bool)}
	first := vfs.NewCrashableMem()
	found1(t, steadyMem{first})
	w.nodes = append(w.nodes, w.open(first))
	for range 2 {
		fs := vfs.NewCrashableMem()
		if _, err := Prepare(PrepareOptions{
			FS: steadyMem{fs}, Dir: "data", Node: NewNodeID(), CreationID: w.nodes[0].store.CreationID(), Shards: shards, Log: zerolog.Nop(),
		}); err != nil {
			t.Fatal(err)
		}
		w.nodes = append(w.nodes, w.open(fs))
		w.send(w.nodes[0], w.nodes[len(w.nodes)-1])
	}
	w.elect()
	for range 150 {
		i := w.random.IntN(len(w.nodes))
		switch draw := w.random.IntN(20); {
		case draw == 0:
			w.elect()
		case draw == 1:
			w.cut(i)
		case draw == 2:
			w.send(w.nodes[i], w.nodes[w.random.IntN(len(w.nodes))])
		case draw < 8:
			w.apply(w.nodes[i], 1+w.random.IntN(8))
		default:
			w.write()
		}
	}
	want := slices.Sorted(maps.Keys(w.want))
	for i, n := range w.nodes {
		w.apply(n, len(w.log))
		if got := has(t, n.store); !slices.Equal(got, want) {
			t.Errorf("node %d has %v, want %v", i, got, want)
		}
		if at, one := n.machine.at, w.nodes[0].machine.at; at != one {
			t.Errorf("node %d is at %+v, node 0 at %+v", i, at, one)
		}
		closeMachine(t, n.store, n.Node)
	}
}
