package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
)

// backUp unpacks a checkpoint of a store with a garden into a directory.
func backUp(t *testing.T, fs vfs.FS, dir string) (s *Store, g garden) {
	t.Helper()
	s = openIn(t, vfs.NewMem())
	g = plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	barrier(t, s)
	c, err := s.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	unpack(t, c, fs, dir)
	if err := errors.Join(c.Delivered(), c.Close()); err != nil {
		t.Fatal(err)
	}
	return s, g
}

// contents are the bytes of every file of a backup by name.
func contents(t *testing.T, fs vfs.FS, dir string) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	for _, at := range []string{dir, fs.PathJoin(dir, databaseName)} {
		names, err := fs.List(at)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if name == databaseName {
				continue
			}
			data, err := readAll(fs, fs.PathJoin(at, name))
			if err != nil {
				t.Fatal(err)
			}
			all[fs.PathJoin(at, name)] = data
		}
	}
	return all
}

func readAll(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

func refusedWith(t *testing.T, err error, parts ...string) {
	t.Helper()
	var refused *RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	for _, part := range parts {
		if !strings.Contains(refused.Error(), part) {
			t.Errorf("the refusal is %q, want %q in it", refused, part)
		}
	}
}

func TestU12NoServerStartsOverABackupAndItStaysWhatItIs(t *testing.T) {
	fs := vfs.NewMem()
	backUp(t, fs, "monday")
	before := contents(t, fs, "monday")
	o := optionsIn(fs)
	o.Dir = "monday"
	_, err := Open(o)
	refusedWith(t, err, "is a backup of", "codeq restore monday DIR")
	looking, err := OpenReadOnly(o)
	if err != nil {
		t.Fatalf("a backup cannot be examined: %v", err)
	}
	mustFindNothing(t, looking)
	closeStore(t, looking)
	after := contents(t, fs, "monday")
	if len(after) != len(before) {
		t.Errorf("the backup has %d files, it had %d", len(after), len(before))
	}
	for name, data := range before {
		if !bytes.Equal(after[name], data) {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestU12ARestoredDirectoryHoldsWhatTheBackupHolds(t *testing.T) {
	for _, there := range []bool{false, true} {
		fs := vfs.NewMem()
		_, g := backUp(t, fs, "monday")
		before := contents(t, fs, "monday")
		if there {
			if err := fs.MkdirAll("data", 0o700); err != nil {
				t.Fatal(err)
			}
		}
		files, err := Restore(t.Context(), optionsIn(fs), "monday")
		if err != nil || files != len(before) {
			t.Fatalf("restored %d of %d files: %v", files, len(before), err)
		}
		restored := openIn(t, fs, func(o *Options) { o.MustExist = true })
		mustFindNothing(t, restored)
		if task, err := restored.ReadTask("t", g.pending.ID); err != nil || task == nil {
			t.Errorf("a task of the backup is not there: %v, %v", task, err)
		}
		if restored.LastBackup().IsZero() {
			t.Error("the restored data has no backup")
		}
		for name, data := range contents(t, fs, "monday") {
			if !bytes.Equal(before[name], data) {
				t.Errorf("%s of the backup was changed", name)
			}
		}
	}
}

func TestU12RestoreRefusesWhatIsNoBackupAndWhatIsInUse(t *testing.T) {
	fs := vfs.NewMem()
	backUp(t, fs, "monday")
	closeStore(t, openIn(t, fs))
	elsewhere := optionsIn(fs)
	elsewhere.Dir = "elsewhere"
	_, err := Restore(t.Context(), elsewhere, "data")
	refusedWith(t, err, "is no backup")
	_, err = Restore(t.Context(), elsewhere, "nowhere")
	refusedWith(t, err, "the directory is not there; name one that \"codeq backup\" has made")
	if err := fs.MkdirAll("empty", 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = Restore(t.Context(), elsewhere, "empty")
	refusedWith(t, err, "holds no data of codeq: it has no codeq.json; name one that \"codeq backup\" has made")
	_, err = Restore(t.Context(), optionsIn(fs), "monday")
	refusedWith(t, err, "is not empty: there is \"")
	if found, err := exists(fs, "elsewhere"); found || err != nil {
		t.Errorf("a refused restore has made its directory: %v", err)
	}
	openIn(t, fs, func(o *Options) { o.MustExist = true })
}

func TestU12ABackupThatLostAPartIsNotRestored(t *testing.T) {
	fs := vfs.NewMem()
	backUp(t, fs, "monday")
	cut := 0
	for name, data := range contents(t, fs, "monday") {
		if strings.HasSuffix(name, ".log") && len(data) > 0 {
			cut++
			if err := WriteFile(fs, name, data[:len(data)/2]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if cut == 0 {
		t.Fatal("the backup has no log to cut")
	}
	_, err := Restore(t.Context(), optionsIn(fs), "monday")
	refusedWith(t, err, "synced")
	if found, err := exists(fs, "data"); found || err != nil {
		t.Errorf("a refused restore has made its directory: %v", err)
	}
}

// What is left says nothing of a log that is missing when the notes are lost, too.
func TestU12ABackupWithoutItsNotesIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	backUp(t, fs, "monday")
	if err := fs.Remove("monday/" + databaseName + "/" + syncedName); err != nil {
		t.Fatal(err)
	}
	_, err := Restore(t.Context(), optionsIn(fs), "monday")
	refusedWith(t, err, syncedName, "take another backup")
}

// A restore that is stopped, or cut by a power loss at any moment, leaves nothing or
// what no server starts over, unless it is whole.
func TestU12ARestoreIsWholeOrRefused(t *testing.T) {
	fs := vfs.NewCrashableMem()
	_, g := backUp(t, fs, "monday")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Restore(ctx, optionsIn(fs), "monday"); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped: %v", err)
	}
	if found, err := exists(fs, "data"); found || err != nil {
		t.Errorf("a stopped restore has left its directory: %v", err)
	}
	refused, whole := 0, 0
	crashing := &crashAt{FS: fs}
	if _, err := Restore(t.Context(), optionsIn(crashing), "monday"); err != nil {
		t.Fatal(err)
	}
	crashing.clones = append(crashing.clones, fs.CrashClone(vfs.CrashCloneCfg{}))
	for _, clone := range crashing.clones {
		var refusal *RefusedError
		s, err := Open(optionsIn(clone, func(o *Options) { o.MustExist = true }))
		if errors.As(err, &refusal) {
			refused++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		whole++
		mustFindNothing(t, s)
		if task, err := s.ReadTask("t", g.pending.ID); err != nil || task == nil {
			t.Errorf("a server started without a task of the backup: %v, %v", task, err)
		}
		closeStore(t, s)
	}
	if refused == 0 || whole == 0 {
		t.Errorf("%d moments were refused and %d whole, want some of each", refused, whole)
	}
}

// crashAt takes what a power cut and what the end of the process would leave, at
// each new file and rename.
type crashAt struct {
	vfs.FS
	clones []*vfs.MemFS
}

func (c *crashAt) note() {
	for _, kept := range []int{0, 100} {
		c.clones = append(c.clones, c.FS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{
			UnsyncedDataPercent: kept, RNG: rand.New(rand.NewPCG(1, 2)),
		}))
	}
}

func (c *crashAt) Rename(from, to string) error {
	c.note()
	err := c.FS.Rename(from, to)
	c.note()
	return err
}

func (c *crashAt) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	c.note()
	return c.FS.Create(name, category)
}

// A table that is damaged ends a backup: it would look whole, and take the place of one that is.
func TestABackupTakesNoDamagedTable(t *testing.T) {
	fs := vfs.NewMem()
	s := openIn(t, fs)
	for _, file := range filesOf(t, fs) {
		if !strings.HasSuffix(file, ".sst") {
			continue
		}
		whole := content(t, fs, file)
		bad := []byte(whole)
		bad[len(bad)/2] ^= 1
		overwrite(t, fs, file, string(bad))
		c, err := s.Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		var refused *RefusedError
		err = c.Each(func(_ string, _ int64, content io.Reader) error { _, err := io.Copy(io.Discard, content); return err })
		if !errors.As(err, &refused) || !strings.HasSuffix(refused.File, fs.PathBase(file)) {
			t.Errorf("a backup with a damaged %s ends with: %v", file, err)
		}
		overwrite(t, fs, file, whole)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	t.Error("the database has no table")
}

func TestU12TheMomentOfTheNewestBackupIsKept(t *testing.T) {
	fs := vfs.NewMem()
	s := openIn(t, fs)
	if at := s.LastBackup(); !at.IsZero() {
		t.Errorf("before the first: %v", at)
	}
	c, err := s.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if at := s.LastBackup(); !at.IsZero() {
		t.Errorf("a copy that nobody got counts: %v", at)
	}
	before := time.Now().Add(-2 * time.Second)
	if c, err = s.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Delivered(), c.Close()); err != nil {
		t.Fatal(err)
	}
	now := s.LastBackup()
	if now.Before(before) || now.After(time.Now().Add(time.Second)) {
		t.Errorf("the newest backup is of %v", now)
	}
	closeStore(t, s)
	if at := openIn(t, fs).LastBackup(); at.Unix() != now.Unix() {
		t.Errorf("after a restart %v, want %v", at, now)
	}
}
