package store

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/wire"
)

// unpack copies a checkpoint into a directory of its own.
func unpack(t *testing.T, c *Checkpoint, fs vfs.FS, dir string) (names []string) {
	t.Helper()
	if err := fs.MkdirAll(fs.PathJoin(dir, databaseName), 0o700); err != nil {
		t.Fatal(err)
	}
	err := c.Each(func(name string, sizeBytes int64, content io.Reader) error {
		names = append(names, name)
		data, err := io.ReadAll(content)
		if err == nil && int64(len(data)) != sizeBytes {
			t.Errorf("%s has %d bytes, %d were promised", name, len(data), sizeBytes)
		}
		return errors.Join(err, writeFile(fs, fs.PathJoin(dir, name), data))
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestACheckpointHoldsWhatWasDurableAndWholeBatches(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	p := plantIn(s, 0)
	before := p.garden(t, QueueKey{"before", "t"})
	barrier(t, s)
	var writing sync.WaitGroup
	var stop atomic.Bool
	writing.Go(func() {
		busy := plantIn(s, 1)
		for n := 0; !stop.Load(); n++ {
			busy.garden(t, QueueKey{fmt.Sprint("during", n), "t"})
		}
	})
	for range 5 {
		c, err := s.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		copied := vfs.NewMem()
		names := unpack(t, c, copied, "data")
		if last := names[len(names)-1]; last != manifestName {
			t.Errorf("the last file is %s, want the manifest", last)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		restored, err := OpenReadOnly(optionsIn(copied))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeStore(t, restored) })
		mustFindNothing(t, restored)
		if task, err := restored.ReadTask("t", before.pending.ID); err != nil || task == nil {
			t.Errorf("a durable task is not in the checkpoint: %v, %v", task, err)
		}
	}
	stop.Store(true)
	writing.Wait()
}

func TestThereIsOneCheckpointAtATime(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	c, err := s.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Checkpoint(); !errors.Is(err, ErrCheckpointBusy) {
		t.Errorf("a second checkpoint: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c, err = s.Checkpoint()
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWhatACrashLeftOfACheckpointIsRemoved(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := openIn(t, fs)
	plantIn(s, 0).garden(t, QueueKey{"c", "t"})
	barrier(t, s)
	c, err := s.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	again := openIn(t, crashed)
	mustFindNothing(t, again)
	if found, err := exists(crashed, again.path(checkpointName)); found || err != nil {
		t.Errorf("the checkpoint is still there: %v, %v", found, err)
	}
}

func TestADirectoryThatMustExistIsNotMade(t *testing.T) {
	fs := vfs.NewMem()
	_, err := Open(optionsIn(fs, func(o *Options) { o.MustExist = true }))
	var refused *RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if names := listing(t, fs, ""); names != "" {
		t.Errorf("it left %q", names)
	}
}

func TestRebuiltCountersAreTheOnesThatWereThere(t *testing.T) {
	used := usedDir(t)
	_, g := gardenOf(t)
	rebuilt := 0
	for _, c := range sabotages {
		if c.kind != findCounters && c.kind != findFloor && c.name != "damaged counters" {
			continue
		}
		rebuilt++
		t.Run(c.name, func(t *testing.T) {
			s := openIn(t, used.CrashClone(vfs.CrashCloneCfg{}))
			c.wreck(t, s, g)
			if n, err := s.RebuildCounters(); err != nil || n == 0 {
				t.Fatalf("corrected %d, %v", n, err)
			}
			mustFindNothing(t, s)
			if n, err := s.RebuildCounters(); err != nil || n != 0 {
				t.Errorf("a second time it corrected %d, %v", n, err)
			}
		})
	}
	if rebuilt < 3 {
		t.Errorf("only %d ways to break counters were tried", rebuilt)
	}
}

func TestRebuildingCountersLeavesTheRestAlone(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	g := plantIn(s, 0).garden(t, QueueKey{"c", "t"})
	tamper(t, s, spanKey(parsedKey{Family: familyPayload, ID: wire.TaskID(g.done.ID)}), "{}")
	before, err := s.Check()
	if err != nil || len(before) == 0 {
		t.Fatalf("nothing to find: %v", err)
	}
	if n, err := s.RebuildCounters(); err != nil || n != 0 {
		t.Fatalf("corrected %d, %v", n, err)
	}
	after, err := s.Check()
	if err != nil || len(after) != len(before) {
		t.Errorf("found %v, %v; before %v", after, err, before)
	}
}
