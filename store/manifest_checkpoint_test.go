package store

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
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
		return errors.Join(err, WriteFile(fs, fs.PathJoin(dir, name), data))
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestACheckpointHoldsWhatWasDurableAndWholeBatches(t *testing.T) {
	s := openIn(t, vfs.NewMem())
	p := plantIn(s, 0)
	before := p.garden(t, record.QueueKey{Command: "before", Tenant: "t"})
	barrier(t, s)
	var writing sync.WaitGroup
	var stop atomic.Bool
	writing.Go(func() {
		busy := plantIn(s, 1)
		for n := 0; !stop.Load(); n++ {
			busy.garden(t, record.QueueKey{Command: fmt.Sprint("during", n), Tenant: "t"})
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
	plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
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

// failsAt is a file system of which one step in a checkpoint fails, the at-th from 1.
type failsAt struct {
	vfs.FS
	at, steps int
	failed    string
}

var errStep = errors.New("this step fails")

func (f *failsAt) step(what, name string) error {
	if !strings.Contains(name, checkpointName) {
		return nil
	}
	if f.steps++; f.steps != f.at {
		return nil
	}
	f.failed = what + " " + name
	return errStep
}

func (f *failsAt) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.step("create", name); err != nil {
		return nil, err
	}
	return f.FS.Create(name, c)
}

func (f *failsAt) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	if err := f.step("open", name); err != nil {
		return nil, err
	}
	return f.FS.Open(name, o...)
}

func (f *failsAt) List(dir string) ([]string, error) {
	if err := f.step("list", dir); err != nil {
		return nil, err
	}
	return f.FS.List(dir)
}

func (f *failsAt) MkdirAll(dir string, perm os.FileMode) error {
	return errors.Join(f.step("make", dir), f.FS.MkdirAll(dir, perm))
}

func (f *failsAt) Rename(from, to string) error {
	if err := f.step("rename", to); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *failsAt) RemoveAll(dir string) error {
	if err := f.step("remove", dir); err != nil {
		return err
	}
	return f.FS.RemoveAll(dir)
}

// Whatever step of a checkpoint fails, that one ends with the reason, leaves nothing,
// and is not in the way of the next.
func TestACheckpointThatFailsIsNotInTheWayOfTheNext(t *testing.T) {
	fs := &failsAt{FS: vfs.NewMem()}
	s := openIn(t, fs)
	plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	barrier(t, s)
	flush(t, s)
	failed := make(map[string]bool)
	for at := 1; ; at++ {
		fs.at, fs.steps, fs.failed = at, 0, ""
		c, err := s.Checkpoint()
		if fs.failed == "" {
			if err != nil {
				t.Fatalf("nothing failed, and %v", err)
			}
			fs.at = 0
			copied := vfs.NewMem()
			unpack(t, c, copied, "data")
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if got, said := looked(t, copied, OpenReadOnly); got != 6 || said != "" {
				t.Errorf("the last one has %d tasks, and %q is said", got, said)
			}
			break
		}
		what, _, _ := strings.Cut(fs.failed, " ")
		failed[what] = true
		if err == nil {
			err = c.Close()
		}
		if !errors.Is(err, errStep) {
			t.Errorf("%s fails: %v", fs.failed, err)
		}
		if left, err := exists(fs, s.path(checkpointName)); err != nil || left && what != "remove" {
			t.Errorf("%s fails: the directory is left: %t, %v", fs.failed, left, err)
		}
	}
	if len(failed) != 6 {
		t.Errorf("only these steps have failed: %v", failed)
	}
}
