package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fingerprint is everything that can be told of a directory from outside: names,
// rights, sizes, times and contents of all that is in it.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %d %v", path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if !entry.IsDir() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(data))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// onDisk puts a directory on the disk of the machine.
func onDisk(t *testing.T, from vfs.FS) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := vfs.Clone(from, vfs.Default, "data", dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// backedUp is a backup of a directory with as many tasks as killedDir.
func backedUp(t *testing.T) vfs.FS {
	t.Helper()
	s := openIn(t, killedDir(t))
	c, err := s.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	copied := vfs.NewMem()
	unpack(t, c, copied, "data")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return copied
}

func TestN22ToLookAtADirectoryChangesNothing(t *testing.T) {
	const all = (1 + logged) * 6
	empty, odd, half := vfs.NewMem(), vfs.NewMem(), usedDir(t)
	rewriteManifest(t, half, `"ready"`, `"new"`)
	for _, of := range []*vfs.MemFS{empty, odd} {
		if err := of.MkdirAll("data/some", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	overwrite(t, odd, "data/spare", "mine")
	overwrite(t, odd, "data/ballast", "mine")
	damaged := killedDir(t)
	log, _ := newest(t, damaged)
	overwrite(t, damaged, log, "")
	for name, c := range map[string]struct {
		from  vfs.FS
		tasks int
		says  string
	}{
		"stopped":      {usedDir(t), 12, ""},
		"killed":       {killedDir(t), all, ""},
		"a backup":     {backedUp(t), all, ""},
		"empty":        {empty, 0, "holds no data of codeq"},
		"another's":    {odd, 0, "holds no data of codeq"},
		"half-made":    {half, 0, "still being made"},
		"with a loss":  {damaged, 0, "are lost"},
		"with a spare": {withRest(t, killedDir(t)), all, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := onDisk(t, c.from)
			before := fingerprint(t, dir)
			o := optionsIn(nil, func(o *Options) { o.Dir, o.Shards = dir, 0 })
			s, err := OpenReadOnly(o)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %q", err, c.says)
			}
			if err == nil {
				mustFindNothing(t, s)
				if got := len(tasksIn(t, s)); got != c.tasks {
					t.Errorf("%d tasks, want %d", got, c.tasks)
				}
				closeStore(t, s)
			}
			if after := fingerprint(t, dir); after != before {
				t.Errorf("it was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

// withRest adds what a server leaves behind that is killed.
func withRest(t *testing.T, fs *vfs.MemFS) *vfs.MemFS {
	t.Helper()
	for _, name := range []string{"data/ballast", "data/db/spare", "data/db/000099.dbtmp", "data/codeq.json.tmp"} {
		overwrite(t, fs, name, "rest")
	}
	if err := fs.MkdirAll("data/checkpoint/db", 0o755); err != nil {
		t.Fatal(err)
	}
	return fs
}

func TestN22WhatIsOpenToBeReadCannotBeChanged(t *testing.T) {
	fs := killedDir(t)
	before := listing(t, fs, "data")
	s, err := OpenReadOnly(optionsIn(fs))
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	if _, err := s.Checkpoint(); !errors.Is(err, errReadOnly) {
		t.Errorf("a checkpoint: %v", err)
	}
	if _, err := Open(optionsIn(fs)); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a server beside it: %v", err)
	}
	r := s.options.FS
	for name, err := range map[string]error{
		"link": r.Link("data/codeq.json", "data/x"), "remove": r.Remove("data/codeq.json"),
		"rename": r.Rename("data/codeq.json", "data/x"), "mkdir": r.MkdirAll("data/x", 0o700), "remove all": r.RemoveAll("data"),
		"create": second(r.Create("data/x", "")), "open": second(r.OpenReadWrite("data/codeq.json", "")),
		"reuse": second(r.ReuseForWrite("data/codeq.json", "data/x", "")),
	} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := listing(t, fs, "data"); withoutLocks(after) != withoutLocks(before) {
		t.Error("it has changed")
	}
}

func second(_ vfs.File, err error) error { return err }

// A damaged table names itself, the last key before the damage and the remedy.
func TestX2ADamagedTableIsNamed(t *testing.T) {
	fs := killedDir(t)
	for _, file := range filesOf(t, fs) {
		if !strings.HasSuffix(file, ".sst") {
			continue
		}
		damaged := crashable(t, fs)
		data := wholeFile(t, damaged, file)
		data[len(data)/4] ^= 1
		overwrite(t, damaged, file, string(data))
		_, said := looked(t, damaged, OpenReadOnly)
		if !strings.HasPrefix(said, file+": the file is damaged") || !strings.Contains(said, "restore the directory from a backup") {
			t.Errorf("%s: %q", file, said)
		}
		overwrite(t, damaged, file, string(data[:len(data)-9]))
		if _, said = looked(t, damaged, OpenReadOnly); !strings.Contains(said, "restore the directory from a backup") {
			t.Errorf("%s, cut short: %q", file, said)
		}
	}
}
