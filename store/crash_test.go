package store

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"codeq/record"
	"codeq/wire"
)

// crashes takes clones of a file system before each of its operations, so
// also after each of them. One in three has a part of what was not synced.
type crashes struct {
	mu     sync.Mutex
	fs     *vfs.MemFS
	random *rand.Rand
	clones []crash
	steps  int
	off    bool
	// promised says how much is durable at this moment; nil is nothing.
	promised func() uint64
}

// crash is a file system after a power cut, and what was durable before it.
type crash struct {
	fs       *vfs.MemFS
	promised uint64
}

// steadyMem goes around a trap of MemFS: its ReuseForWrite takes one lock for
// reading twice, and hangs for ever when a clone is asked for in between.
type steadyMem struct{ *vfs.MemFS }

func (m steadyMem) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := m.Rename(from, to); err != nil {
		return nil, err
	}
	return m.OpenReadWrite(to, category)
}

func (c *crashes) wrap() vfs.FS {
	return errorfs.Wrap(steadyMem{c.fs}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.off || op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}
		c.steps++
		c.take(0)
		if c.steps%3 == 0 {
			c.take(50 * (1 + c.steps%2))
		}
		return nil
	}))
}

// take asks for the promise first: it can only grow until the power is cut.
func (c *crashes) take(percent int) {
	var promised uint64
	if c.promised != nil {
		promised = c.promised()
	}
	clone := c.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.random})
	c.clones = append(c.clones, crash{clone, promised})
}

// start begins to take clones, stop takes a last one after the last operation.
func (c *crashes) start(promised func() uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off, c.promised = false, promised
}

func (c *crashes) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
	c.take(0)
}

// survive opens every clone and hands it to see.
func (c *crashes) survive(t *testing.T, see func(s *Store, promised uint64)) {
	t.Helper()
	for i, clone := range c.clones {
		s, err := Open(optionsIn(clone.fs))
		if err != nil {
			t.Errorf("clone %d of %d: %v", i, len(c.clones), err)
			continue
		}
		see(s, clone.promised)
		mustFindNothing(t, s)
		if err := s.Close(); err != nil {
			t.Errorf("clone %d: %v", i, err)
		}
	}
}

func TestACrashWhileADirectoryIsMadeIsRepairedByTheNextOpen(t *testing.T) {
	c := &crashes{fs: vfs.NewCrashableMem(), random: rand.New(rand.NewPCG(3, 3))}
	s := openIn(t, c.wrap())
	c.stop()
	closeStore(t, s)
	if c.steps < 20 {
		t.Fatalf("only %d operations were seen", c.steps)
	}
	states := map[string]int{}
	for _, clone := range c.clones {
		states[manifestState(clone.fs)]++
	}
	if states["none"] == 0 || states[stateNew] == 0 || states[stateReady] == 0 {
		t.Errorf("not every state was crashed in: %v", states)
	}
	c.survive(t, func(s *Store, _ uint64) {
		plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
		barrier(t, s)
	})
}

func manifestState(fs vfs.FS) string {
	data, err := readFile(fs, manifestPath)
	switch {
	case err != nil:
		return "none"
	case strings.Contains(string(data), `"new"`):
		return stateNew
	}
	return stateReady
}

func TestACrashWhileADirectoryIsOpenedLosesNothing(t *testing.T) {
	c := &crashes{fs: usedDir(t), random: rand.New(rand.NewPCG(4, 4))}
	s := openIn(t, c.wrap())
	c.stop()
	want := tasksIn(t, s)
	closeStore(t, s)
	if len(want) != 12 {
		t.Fatalf("%d tasks", len(want))
	}
	c.survive(t, func(s *Store, _ uint64) {
		if got := tasksIn(t, s); len(got) != len(want) {
			t.Errorf("a clone has %d tasks", len(got))
		}
	})
}

// Whatever the moment, in a commit, a flush or a barrier: a batch that was
// said to be durable is there, and none is there in parts.
func TestACrashAtAnyMomentKeepsWhatWasDurable(t *testing.T) {
	c := &crashes{fs: vfs.NewCrashableMem(), random: rand.New(rand.NewPCG(5, 5)), off: true}
	s := openIn(t, c.wrap())
	p := plantIn(s, 0)
	c.start(func() uint64 { return s.Synced(0) })
	for n := range 24 {
		p.garden(t, record.QueueKey{Command: string(rune('a' + n)), Tenant: "t"})
		if n%2 == 0 {
			barrier(t, s)
		}
		if n%5 == 4 {
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	barrier(t, s)
	c.stop()
	most := uint64(0)
	c.survive(t, func(s *Store, promised uint64) {
		most = max(most, promised)
		if got := uint64(len(tasksIn(t, s))); got < 6*promised || got%6 != 0 {
			t.Errorf("%d tasks, %d batches of 6 were durable", got, promised)
		}
	})
	if most != 24 || c.steps < 30 {
		t.Errorf("%d operations were seen, at most %d batches durable", c.steps, most)
	}
}

func tasksIn(t *testing.T, s *Store) (ids []wire.TaskID) {
	t.Helper()
	for shard := range s.Shards() {
		v := view{reader: s.db}
		prefix := append(record.AppendSpan(nil, shard), byte(record.FamilyTask))
		if err := v.scanPrefix(prefix, func(key, _ []byte) (bool, error) {
			p, err := record.ParseKey(key)
			ids = append(ids, p.ID)
			return true, err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}
