package replica

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"

	"codeq/store"
)

// openMachine opens the machine of a node over files.
func openMachine(t *testing.T, fs vfs.FS) (*store.Store, *Node) {
	t.Helper()
	s, n, err := tryMachine(fs)
	if err != nil {
		t.Fatal(err)
	}
	return s, n
}

func tryMachine(fs vfs.FS) (*store.Store, *Node, error) {
	id, _, err := ReadIdentity(fs, "data")
	if err != nil {
		return nil, nil, err
	}
	s, err := store.Open(store.Options{FS: fs, Dir: "data", Node: id.Node, MemTableBytes: 1 << 20, CacheBytes: 1 << 20, Fatal: fatal})
	if err != nil {
		return nil, nil, err
	}
	n := &Node{id: id.Node}
	err = n.openState(&Options{Store: s, FS: fs, Dir: "data", Node: id.Node, Log: zerolog.Nop(), Fatal: fatal})
	return s, n, err
}

func found1(t *testing.T, fs vfs.FS) {
	t.Helper()
	if _, err := Init(InitOptions{FS: fs, Dir: "data", Shards: shards, Address: "a:1", Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
}

// payload is a batch that puts payload n.
func payload(t *testing.T, n int) []byte {
	t.Helper()
	var b pebble.Batch
	if err := b.Set(fmt.Appendf(nil, "\x00\x00\x02%016d", n), fmt.Appendf(nil, "payload %d", n), nil); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(b.Repr())
}

func opens(index uint64) *raft.Log {
	return &raft.Log{Index: index, Term: 1, Type: raft.LogCommand, Data: makeEntry(&head{kind: kindOpen}, nil, NewestForm)}
}

// holds is an entry of batches: shard, number and payload of each.
func holds(t *testing.T, index, epoch uint64, batches ...[3]int) *raft.Log {
	t.Helper()
	var parts []*waiting
	for _, b := range batches {
		parts = append(parts, &waiting{part: part{shard: b[0], number: uint64(b[1]), bytes: payload(t, b[2])}})
	}
	h := head{kind: kindBatches, epoch: epoch, nowMs: int64(index)}
	return &raft.Log{Index: index, Term: 1, Type: raft.LogCommand, Data: makeEntry(&h, parts, NewestForm)}
}

// has is which payloads a database has, in order.
func has(t *testing.T, s *store.Store) (list []int) {
	t.Helper()
	_, payloads := dump(t, s)
	for n := range payloads {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// What follows on what the database has is written once; what comes from an earlier epoch, or
// behind a batch that is missing, is not.
func TestOnlyWhatFollowsIsWritten(t *testing.T) {
	fs := vfs.NewMem()
	found1(t, fs)
	s, n := openMachine(t, fs)
	answers := n.machine.ApplyBatch([]*raft.Log{
		opens(2),
		holds(t, 3, 2, [3]int{0, 1, 1}, [3]int{1, 1, 2}),
		holds(t, 4, 2, [3]int{0, 2, 3}, [3]int{1, 3, 4}), // of shard 1 the second is missing
		holds(t, 5, 2, [3]int{1, 2, 5}),
		{Index: 6, Type: raft.LogConfiguration, Data: []byte("members")},
		opens(7),
		holds(t, 8, 2, [3]int{0, 3, 6}), // of the leader before
		holds(t, 9, 7, [3]int{0, 1, 7}),
		holds(t, 10, 2, [3]int{0, 2, 8}), // the same, where a number follows
	})
	want := "[2 [true true] [true false] [true] <nil> 7 [false] [true] [false]]"
	if got := fmt.Sprint(answers); got != want {
		t.Errorf("answers %s, want %s", got, want)
	}
	if got := fmt.Sprint(has(t, s)); got != "[1 2 3 5 7]" {
		t.Errorf("the database has %s", got)
	}
	at := n.machine.at
	// What it has is skipped, as after a restart.
	if again := n.machine.ApplyBatch([]*raft.Log{holds(t, 9, 7, [3]int{0, 2, 9})}); again[0] != nil || n.machine.at != at {
		t.Errorf("entry 9 was written again: %v", again)
	}
	if at.nowMs != 10 || at.epoch != 7 {
		t.Errorf("position %+v", at)
	}
	closeMachine(t, s, n)
	s, n = openMachine(t, fs)
	if n.machine.at != at {
		t.Errorf("after a restart %+v, want %+v", n.machine.at, at)
	}
	closeMachine(t, s, n)
}

func closeMachine(t *testing.T, s *store.Store, n *Node) {
	t.Helper()
	if err := n.logs.db.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A leader packs entries once all nodes have announced that they read such, or have to, because one
// is in the log.
func TestEntriesArePackedOnceAllReadIt(t *testing.T) {
	fs := vfs.NewMem()
	found1(t, fs)
	s, n := openMachine(t, fs)
	defer closeMachine(t, s, n)
	announced := formPlain
	n.machine.announced = func() int { return announced }
	n.machine.ApplyBatch([]*raft.Log{opens(2)})
	var b pebble.Batch
	if err := b.Set([]byte("\x00\x00\x02a"), make([]byte, packFromBytes), nil); err != nil {
		t.Fatal(err)
	}
	made := func() []byte {
		return n.machine.entry(2, 0, []*waiting{{part: part{number: 1, bytes: b.Repr()}}})
	}
	if data := made(); data[0] != kindBatches {
		t.Errorf("a node reads the first form alone, and the entry is of kind %d", data[0])
	}
	announced = formPacked
	packed := made()
	if packed[0] != kindPacked {
		t.Errorf("all nodes read packed entries, and this one is of kind %d", packed[0])
	}
	announced = formPlain
	n.machine.ApplyBatch([]*raft.Log{{Index: 3, Term: 1, Type: raft.LogCommand, Data: packed}})
	if data := made(); data[0] != kindPacked {
		t.Errorf("a packed entry is in the log, and the next one is of kind %d", data[0])
	}
}

// An entry with one wrong bit, of a newer program, or of a leader whose database differs ends
// the process.
func TestWhatCannotBeWrittenEndsTheProcess(t *testing.T) {
	fs := vfs.NewMem()
	found1(t, fs)
	s, n := openMachine(t, fs)
	defer closeMachine(t, s, n)
	n.machine.ApplyBatch([]*raft.Log{opens(2), holds(t, 3, 2, [3]int{0, 1, 1})})
	good := holds(t, 4, 2, [3]int{0, 2, 2})
	for bit := range len(good.Data) * 8 {
		bad := &raft.Log{Index: 4, Type: raft.LogCommand, Data: slices.Clone(good.Data)}
		bad.Data[bit/8] ^= 1 << (bit % 8)
		mustDie(t, n.machine, bad, "")
	}
	newer := &raft.Log{Index: 4, Type: raft.LogCommand, Data: makeEntry(&head{kind: 9}, nil, NewestForm)}
	mustDie(t, n.machine, newer, "a newer one wrote it")
	other := &raft.Log{Index: 4, Type: raft.LogCommand, Data: makeEntry(&head{kind: kindOpen, checked: 3, digest: 1}, nil, NewestForm)}
	mustDie(t, n.machine, other, "differs from that of the leader")
	if got := fmt.Sprint(has(t, s)); got != "[1]" {
		t.Errorf("the database has %s", got)
	}
}

func mustDie(t *testing.T, m *machine, l *raft.Log, why string) {
	t.Helper()
	defer func() {
		if cause := recover(); cause == nil || !strings.Contains(fmt.Sprint(cause), why) {
			t.Errorf("entry %x ended with %v", l.Data[:16], cause)
		}
	}()
	m.ApplyBatch([]*raft.Log{l})
}

// cuts takes clones of a file system after a power cut, before each of its operations.
type cuts struct {
	mu     sync.Mutex
	fs     *vfs.MemFS
	random *rand.Rand
	clones []cut
	on     bool
	steps  int
	// stored is the last entry that is durable in the log.
	stored uint64
}

type cut struct {
	fs     *vfs.MemFS
	stored uint64
}

// steadyMem goes around a trap of MemFS, see store.
type steadyMem struct{ *vfs.MemFS }

// ReuseForWrite implements vfs.FS.
func (m steadyMem) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := m.Rename(from, to); err != nil {
		return nil, err
	}
	return m.OpenReadWrite(to, category)
}

func (c *cuts) wrap() vfs.FS {
	return errorfs.Wrap(steadyMem{c.fs}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.on || op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}
		c.steps++
		percent := 0
		if c.steps%3 == 0 {
			percent = 50 * (1 + c.steps%2)
		}
		c.clones = append(c.clones, cut{c.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.random}), c.stored})
		return nil
	}))
}

func (c *cuts) set(on bool, stored uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on, c.stored = on, stored
}

// A power cut at any step of a flush, a checkpoint, its publication and the cut of the log
// loses no entry that the log held.
func TestAPowerCutWhileASnapshotIsTakenLosesNoEntry(t *testing.T) {
	c := &cuts{fs: vfs.NewCrashableMem(), random: rand.New(rand.NewPCG(1, 2))}
	fs := c.wrap()
	found1(t, fs)
	s, n := openMachine(t, fs)
	index := uint64(1)
	write := func(logs ...*raft.Log) {
		for _, l := range logs {
			if err := n.logs.StoreLog(l); err != nil {
				t.Fatal(err)
			}
			index = l.Index
			c.set(c.on, index)
			n.machine.ApplyBatch([]*raft.Log{l})
		}
	}
	write(opens(2))
	for i := 1; i <= 20; i++ {
		write(holds(t, index+1, 2, [3]int{0, i, i}))
	}
	c.set(true, index)
	for round := range 3 {
		if round == 1 {
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		snapshotHere(t, n, index)
		for i := range 3 {
			number := int(index)
			write(holds(t, index+1, 2, [3]int{0, number - 1, number - 1}))
			_ = i
		}
	}
	c.set(false, index)
	closeMachine(t, s, n)
	t.Logf("%d power cuts", len(c.clones))
	for i, cut := range c.clones {
		mustReplay(t, i, cut)
	}
}

// snapshotHere does what raft does for a snapshot.
func snapshotHere(t *testing.T, n *Node, index uint64) {
	t.Helper()
	made, err := n.machine.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer made.Release()
	into, err := n.snapshots.Create(raft.SnapshotVersionMax, index, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Persist(into); err != nil {
		t.Fatal(err)
	}
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	first := n.logs.first.Load()
	if err := n.logs.DeleteRange(first, index-1); err != nil {
		t.Fatal(err)
	}
}

// mustReplay opens what a power cut has left and applies the log behind the newest snapshot, as
// raft does.
func mustReplay(t *testing.T, i int, cut cut) {
	t.Helper()
	s, n, err := tryMachine(cut.fs)
	if err != nil {
		t.Fatalf("power cut %d: %v", i, err)
	}
	defer closeMachine(t, s, n)
	newest, err := n.snapshots.newest()
	if err != nil {
		t.Fatal(err)
	}
	for index := newest.Index + 1; index <= n.logs.last.Load(); index++ {
		var l raft.Log
		if err := n.logs.GetLog(index, &l); err != nil {
			t.Fatalf("power cut %d: entry %d behind the snapshot at %d: %v", i, index, newest.Index, err)
		}
		n.machine.ApplyBatch([]*raft.Log{&l})
	}
	got, want := has(t, s), int(cut.stored)-2
	if len(got) < want || want > 0 && got[want-1] != want {
		t.Fatalf("power cut %d: %d entries were in the log, the database has %v", i, cut.stored, got)
	}
}
