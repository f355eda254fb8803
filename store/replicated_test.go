package store

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The database of a node has no log: what a crash takes away is in the log of the cluster, and a
// stop in order leaves nothing to apply again. Its backup is one of a server alone, which has a log
// from its first start on.
func TestTheDatabaseOfANodeHasNoLog(t *testing.T) {
	fs := vfs.NewCrashableMem()
	node := func(o *Options) { o.Node = "0123456789abcdef0123456789abcdef" }
	at := func(s *Store) string {
		position, err := s.Position()
		if err != nil {
			t.Fatal(err)
		}
		return string(position)
	}
	commit := func(s *Store, position, value string) {
		b := s.db.NewBatch()
		if err := b.Set([]byte("payload/"+position), []byte(value), nil); err != nil {
			t.Fatal(err)
		}
		if err := s.CommitReplicated([]byte(position), [][]byte{b.Repr()}); err != nil {
			t.Fatal(err)
		}
	}
	s := openIn(t, fs, node)
	s.StartSyncer()
	commit(s, "1", "a")
	c, err := s.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	backup := vfs.NewMem()
	unpack(t, c, backup, "backup")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	commit(s, "2", "b")
	crashed := openIn(t, fs.CrashClone(vfs.CrashCloneCfg{}), node)
	if got := at(crashed); got != "1" {
		t.Errorf("after a power cut the database is at %q, want what the backup has flushed", got)
	}
	closeStore(t, s)
	if got := at(openIn(t, fs, node)); got != "2" {
		t.Errorf("after a stop in order the database is at %q", got)
	}

	o := optionsIn(backup)
	if _, err := Restore(t.Context(), o, "backup"); err != nil {
		t.Fatal(err)
	}
	alone := openIn(t, backup)
	if got := at(alone); got != "1" {
		t.Errorf("the backup is at %q", got)
	}
	if err := alone.db.Set([]byte("payload/3"), []byte("c"), pebble.Sync); err != nil {
		t.Error(err)
	}
	closeStore(t, alone)
	closeStore(t, openIn(t, backup))
	names, err := backup.List("data/db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			if err := backup.Remove("data/db/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Open(o); err == nil {
		t.Error("a server alone starts without the log that it has lost")
	}
}
