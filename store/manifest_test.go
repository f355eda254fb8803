package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
	"codeq/wire"
)

func TestAnEmptyDirectoryIsMadeAndFoundAgain(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := openIn(t, fs, func(o *Options) { o.Dir, o.Shards = "some/where/data", 3 })
	if !s.Created() || s.Shards() != 3 || s.options.Dir != "some/where/data" {
		t.Errorf("created %v, %d shards in %s", s.Created(), s.Shards(), s.options.Dir)
	}
	plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	mustFindNothing(t, s)
	closeStore(t, s)
	s = openIn(t, fs.CrashClone(vfs.CrashCloneCfg{}), func(o *Options) { o.Dir, o.Shards = "some/where/data", 0 })
	if s.Created() || s.Shards() != 3 {
		t.Errorf("created %v, %d shards", s.Created(), s.Shards())
	}
	mustFindNothing(t, s)
}

func TestANewDirectoryHasFourShardsUnlessToldOtherwise(t *testing.T) {
	if s := openIn(t, vfs.NewMem(), func(o *Options) { o.Shards = 0 }); s.Shards() != DefaultShards {
		t.Errorf("got %d", s.Shards())
	}
}

func TestANewFileSystemIsAnEmptyDirectory(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("data/lost+found", 0o755); err != nil {
		t.Fatal(err)
	}
	if s := openIn(t, fs); !s.Created() {
		t.Error("not created")
	}
}

// usedDir is the files of a data directory that holds tasks, closed.
func usedDir(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	s := openIn(t, fs)
	plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	plantIn(s, 1).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
	barrier(t, s)
	closeStore(t, s)
	return fs
}

func overwrite(t *testing.T, fs vfs.FS, name, content string) {
	t.Helper()
	if err := WriteFile(fs, name, []byte(content)); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, fs vfs.FS, name string) string {
	t.Helper()
	data, err := readFile(fs, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func remove(t *testing.T, fs vfs.FS, name string) {
	t.Helper()
	if err := fs.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
}

// removeBySuffix removes files of the database.
func removeBySuffix(t *testing.T, fs vfs.FS, suffix string) {
	t.Helper()
	names, err := fs.List("data/db")
	if err != nil {
		t.Fatal(err)
	}
	removed := false
	for _, name := range names {
		if strings.Contains(name, suffix) {
			remove(t, fs, "data/db/"+name)
			removed = true
		}
	}
	if !removed {
		t.Fatalf("no file %s in %v", suffix, names)
	}
}

const manifestPath = "data/codeq.json"

// refusals are the ways a directory that holds tasks can be wrong.
var refusals = []struct {
	name   string
	change func(t *testing.T, fs vfs.FS)
	shards int
	file   string
	says   string
	// opened: only the opened database tells, and opening tidies its files.
	opened bool
}{
	{"manifest deleted", func(t *testing.T, fs vfs.FS) { remove(t, fs, manifestPath) }, 0, manifestPath, "missing", false},
	{"manifest empty", func(t *testing.T, fs vfs.FS) { overwrite(t, fs, manifestPath, "") }, 0, manifestPath, "damaged", false},
	{"manifest zero-filled", func(t *testing.T, fs vfs.FS) {
		overwrite(t, fs, manifestPath, strings.Repeat("\x00", len(content(t, fs, manifestPath))))
	}, 0, manifestPath, "damaged", false},
	{"manifest truncated", func(t *testing.T, fs vfs.FS) {
		overwrite(t, fs, manifestPath, content(t, fs, manifestPath)[:40])
	}, 0, manifestPath, "damaged", false},
	{"manifest not an object", func(t *testing.T, fs vfs.FS) { overwrite(t, fs, manifestPath, "[1]") }, 0, manifestPath, "damaged", false},
	{"manifest without content", func(t *testing.T, fs vfs.FS) {
		overwrite(t, fs, manifestPath, `{"version":5}`)
	}, 0, manifestPath, "damaged", false},
	{"unknown state", func(t *testing.T, fs vfs.FS) { rewriteManifest(t, fs, `"ready"`, `"old"`) }, 0, manifestPath, "damaged", false},
	{"unknown version", func(t *testing.T, fs vfs.FS) {
		rewriteManifest(t, fs, `"version":5`, `"version":6`)
	}, 0, manifestPath, "version 6", false},
	{"version before keys and records were short", func(t *testing.T, fs vfs.FS) {
		rewriteManifest(t, fs, `"version":5`, `"version":4`)
	}, 0, manifestPath, "keys and records have another form since then; let the program that made the directory", false},
	{"other shard count asked for", func(*testing.T, vfs.FS) {}, 3, manifestPath, "made with 2 shards", false},
	{"other shard count in manifest", func(t *testing.T, fs vfs.FS) {
		rewriteManifest(t, fs, `"shards":2`, `"shards":4`)
	}, 0, manifestPath, "made with 2", true},
	{"impossible shard count", func(t *testing.T, fs vfs.FS) {
		rewriteManifest(t, fs, `"shards":2`, `"shards":33`)
	}, 0, manifestPath, "damaged", false},
	{"state new over tasks", func(t *testing.T, fs vfs.FS) {
		rewriteManifest(t, fs, `"ready"`, `"new"`)
	}, 0, manifestPath, "holds tasks", false},
	{"database deleted", func(t *testing.T, fs vfs.FS) { remove(t, fs, "data/db") }, 0, "data/db", "missing", false},
	{"database emptied", func(t *testing.T, fs vfs.FS) { removeBySuffix(t, fs, "") }, 0, "data/db", "write-ahead log", false},
	{"log deleted", func(t *testing.T, fs vfs.FS) { removeBySuffix(t, fs, ".log") }, 0, "data/db", "write-ahead log", false},
	{"marker deleted", func(t *testing.T, fs vfs.FS) { removeBySuffix(t, fs, "marker.manifest") }, 0, "data/db", "backup", false},
	{"version marker deleted", func(t *testing.T, fs vfs.FS) {
		removeBySuffix(t, fs, "marker.format-version")
	}, 0, "data/db", "backup", false},
	{"Pebble's manifest deleted", func(t *testing.T, fs vfs.FS) { removeBySuffix(t, fs, "MANIFEST-") }, 0, "data/db", "missing", false},
	{"table deleted", func(t *testing.T, fs vfs.FS) { removeBySuffix(t, fs, ".sst") }, 0, "data/db", "missing", false},
	{"database of another directory", func(t *testing.T, fs vfs.FS) {
		remove(t, fs, "data/db")
		closeStore(t, openIn(t, fs, func(o *Options) { o.Dir = "other" }))
		if err := fs.Rename("other/db", "data/db"); err != nil {
			t.Fatal(err)
		}
	}, 0, "data/db", "not made together", true},
}

func rewriteManifest(t *testing.T, fs vfs.FS, old, replacement string) {
	t.Helper()
	text := content(t, fs, manifestPath)
	changed := strings.Replace(text, old, replacement, 1)
	if changed == text {
		t.Fatalf("no %s in %s", old, text)
	}
	overwrite(t, fs, manifestPath, changed)
}

func TestAWrongDirectoryIsRefusedAndNotTouched(t *testing.T) {
	used := usedDir(t)
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			fs := used.CrashClone(vfs.CrashCloneCfg{})
			c.change(t, fs)
			before := listing(t, fs, "data")
			s, err := Open(optionsIn(fs, func(o *Options) { o.Shards = c.shards }))
			if err == nil {
				closeStore(t, s)
				t.Fatal("it was opened")
			}
			var refused *RefusedError
			if !errors.As(err, &refused) {
				t.Fatalf("got %T: %v", err, err)
			}
			if refused.File != c.file || !strings.Contains(refused.Sentence, c.says) {
				t.Errorf("refused %v, want %s: …%s…", refused, c.file, c.says)
			}
			if after := listing(t, fs, "data"); !c.opened && withoutLocks(after) != withoutLocks(before) {
				t.Errorf("files have changed from\n%.600s\nto\n%.600s", before, after)
			}
		})
	}
}

// withoutLocks leaves out the lock files: taking a lock makes them.
func withoutLocks(listing string) string {
	var b strings.Builder
	for line := range strings.Lines(listing) {
		if !strings.Contains(line, "LOCK") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestARefusedDirectoryOpensOnceItIsRepaired(t *testing.T) {
	used := usedDir(t)
	fs := used.CrashClone(vfs.CrashCloneCfg{})
	whole := content(t, fs, manifestPath)
	remove(t, fs, manifestPath)
	if _, err := Open(optionsIn(fs)); err == nil {
		t.Fatal("it was opened")
	}
	overwrite(t, fs, manifestPath, whole)
	mustFindNothing(t, openIn(t, fs))
}

func TestANumberOfShardsOutOfRangeIsRefused(t *testing.T) {
	for _, shards := range []int{-1, record.MaxShards + 1} {
		fs := vfs.NewMem()
		_, err := Open(optionsIn(fs, func(o *Options) { o.Shards = shards }))
		var refused *RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("%d shards: %v", shards, err)
		}
		if names, _ := fs.List("/"); len(names) != 0 {
			t.Errorf("%d shards left %v", shards, names)
		}
	}
}

func TestADirectoryInUseIsRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"memory": optionsIn(vfs.NewMem()),
		"disk":   optionsIn(vfs.Default, func(o *Options) { o.Dir = t.TempDir() }),
	} {
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(o)
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Sentence, "in use") {
			t.Errorf("%s: got %v", name, err)
		}
		closeStore(t, s)
		s, err = Open(o)
		if err != nil {
			t.Fatalf("%s: the lock was not given up: %v", name, err)
		}
		closeStore(t, s)
	}
}

func TestTheManifestKeepsItsForm(t *testing.T) {
	fs := vfs.NewMem()
	openIn(t, fs, func(o *Options) { o.Random = bytes.NewReader(make([]byte, 10+secretBytes)) })
	var m manifest
	text := content(t, fs, manifestPath)
	if _, err := fmt.Sscanf(text, `{"version":5,"shards":2,"creationId":%40q,"state":"ready","createdAt":%24q}`,
		&m.CreationID, &m.CreatedAt); err != nil {
		t.Errorf("%v in %s", err, text)
	}
	if _, ok := wire.ParseTaskID(m.CreationID); !ok {
		t.Errorf("creation id %q", m.CreationID)
	}
}

func TestWithoutChanceNoDirectoryIsMade(t *testing.T) {
	fs := vfs.NewMem()
	_, err := Open(optionsIn(fs, func(o *Options) { o.Random = bytes.NewReader(nil) }))
	if !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	openIn(t, fs) // and nothing is in the way of the next try
}

// A log file is made ahead of its use, so a crash can leave it empty, full of
// zeros, or with zeros behind its end.
func TestATornLogIsNoReasonNotToStart(t *testing.T) {
	drained := vfs.NewCrashableMem()
	closeStore(t, openIn(t, drained))
	for name, tear := range map[string]func(data string) string{
		"empty":         func(string) string { return "" },
		"zero-filled":   func(data string) string { return strings.Repeat("\x00", len(data)+4096) },
		"zeros behind":  func(data string) string { return data + strings.Repeat("\x00", 8192) },
		"last cut off":  func(data string) string { return data[:len(data)*3/4] },
		"one byte left": func(data string) string { return data[:min(1, len(data))] },
	} {
		fs := drained.CrashClone(vfs.CrashCloneCfg{})
		names, err := fs.List("data/db")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range names {
			if strings.HasSuffix(file, ".log") {
				overwrite(t, fs, "data/db/"+file, tear(content(t, fs, "data/db/"+file)))
			}
		}
		s, err := Open(optionsIn(fs))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})
		barrier(t, s)
		mustFindNothing(t, s)
		closeStore(t, s)
	}
}
