package replica

import (
	"errors"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/store"
)

// What a leader acknowledged is on the next one, and on a node that was away.
func TestFailoverLosesNothing(t *testing.T) {
	hosts := newHosts(t, 3)
	first := leader(t, hosts...)
	w := first.writer(first.lead())
	w.mustPut(1, 50)
	mustAgree(t, 50, hosts...)
	w.close()
	first.stop()

	second := leader(t, hosts...)
	v := second.writer(second.lead())
	v.mustPut(51, 100)
	first.start()
	mustAgree(t, 100, hosts...)
	v.close()
	if a, b := hosts[0].node.machine.latest.Load(), hosts[1].node.machine.latest.Load(); a.digest != b.digest && a.index == b.index {
		t.Errorf("digests differ at entry %d: %x and %x", a.index, a.digest, b.digest)
	}
}

// Shards write at the same time, and their batches share entries.
func TestShardsShareEntries(t *testing.T) {
	hosts := newHosts(t, 3)
	first := leader(t, hosts...)
	w := first.writer(first.lead())
	defer w.close()
	before := first.node.machine.applied.Load()
	var writers sync.WaitGroup
	for shard := range shards {
		writers.Go(func() {
			for n := 2 + shard; n <= 401; n += shards {
				if err := w.put(n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	w.mustPut(1, 1)
	mustAgree(t, 401, hosts...)
	if entries := first.node.machine.applied.Load() - before; entries > 401 {
		t.Errorf("401 batches made %d entries", entries)
	}
}

// A leader that lost its lease cannot write, whatever raft thinks of it.
func TestAnEarlierLeaseWritesNothing(t *testing.T) {
	hosts := newHosts(t, 3)
	first := leader(t, hosts...)
	lease := first.lead()
	w := first.writer(lease)
	w.mustPut(1, 2)
	// The next lease of the same leader in the same term: what the first one still sends comes
	// behind the entry that opened the second one.
	second := first.lead()
	if err := w.put(3); !errors.Is(err, store.ErrNotLeader) {
		t.Errorf("a batch of an earlier epoch: %v", err)
	}
	<-lease.Lost()
	w.close()
	v := first.writer(second)
	defer v.close()
	v.mustPut(4, 5)
	if _, has := dump(t, first.store); has[3] || !has[4] {
		t.Errorf("the database has %v", has)
	}
}

// A node that was away for longer than the log reaches gets a snapshot.
func TestANodeThatIsFarBehindGetsASnapshot(t *testing.T) {
	hosts := newHosts(t, 3)
	first := leader(t, hosts...)
	w := first.writer(first.lead())
	defer w.close()
	w.mustPut(1, 10)
	mustAgree(t, 10, hosts...)
	away := hosts[0]
	if away == first {
		away = hosts[1]
	}
	away.stop()
	w.mustPut(11, 60)
	c := first.node.raft.ReloadableConfig()
	c.TrailingLogs = 1
	if err := errors.Join(first.node.raft.ReloadConfig(c), first.node.Snapshot()); err != nil {
		t.Fatal(err)
	}
	w.mustPut(61, 70)
	away.start()
	mustAgree(t, 70, hosts...)
	if s, err := away.node.Status(); err != nil || s.SnapshotIndex < 60 {
		t.Errorf("the node has the snapshot at entry %d (%v)", s.SnapshotIndex, err)
	}
	away.stop()
	away.start()
	w.mustPut(71, 72)
	mustAgree(t, 72, hosts...)
}

// A node alone in its cluster leads, and one that is cut off from the majority does not.
func TestALeaderWithoutAMajorityIsNone(t *testing.T) {
	hosts := newHosts(t, 3)
	first := leader(t, hosts...)
	lease := first.lead()
	w := first.writer(lease)
	w.mustPut(1, 1)
	if err := first.node.VerifyLeader(t.Context()); err != nil {
		t.Error(err)
	}
	for _, h := range hosts {
		if h != first {
			h.stop()
		}
	}
	if err := w.put(2); !errors.Is(err, store.ErrNotLeader) {
		t.Errorf("a batch without a majority: %v", err)
	}
	<-lease.Lost()
	if err := first.node.VerifyLeader(t.Context()); !errors.Is(err, store.ErrNotLeader) {
		t.Errorf("a leader without a majority: %v", err)
	}
	w.close()
}

// A node that does not know all members yet has no vote: it would give none to those it does not
// know, and without it there may be no majority.
func TestANodeVotesOnceItKnowsAllMembers(t *testing.T) {
	hosts := newHosts(t, 1)
	h := hosts[0]
	other := newHost(t, vfs.NewMem(), "data")
	if err := h.node.AddNonvoter(t.Context(), "other", other.address); err != nil {
		t.Fatal(err)
	}
	if err := h.node.AddVoter(t.Context(), "other", other.address, h.node.machine.members.Load()-1); !errors.Is(err, ErrBehind) {
		t.Errorf("a node without the list of members: %v", err)
	}
}

// A restored database gets another creation id, and a directory is that of a node only when all
// that a node needs is there.
func TestInitIsDoneAtItsEnd(t *testing.T) {
	fs := vfs.NewMem()
	s, err := store.Open(store.Options{FS: fs, Dir: "data", Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	was, secret := s.CreationID(), s.Secret()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o := InitOptions{FS: fs, Dir: "data", Address: "a:1", Log: zerolog.Nop(), Before: func(string) error { return errors.New("no space") }}
	if _, err := Init(o); err == nil || err.Error() != "no space" {
		t.Fatal(err)
	}
	if id, is, err := ReadIdentity(fs, "data"); err != nil || is || id.CreationID != was {
		t.Fatalf("after an error %+v, %v, %v", id, is, err)
	}
	var told string
	o.Restored, o.Before = true, func(node string) error { told = node; return nil }
	id, err := Init(o)
	if err != nil || id.Node != told || id.CreationID == was {
		t.Fatalf("%+v, told %s, was %s: %v", id, told, was, err)
	}
	again, is, err := ReadIdentity(fs, "data")
	if err != nil || !is || again != id {
		t.Fatalf("%+v, want %+v: %v", again, id, err)
	}
	opened, n := openMachine(t, fs)
	if opened.CreationID() != id.CreationID || string(opened.Secret()) != string(secret) {
		t.Errorf("the database is of %s", opened.CreationID())
	}
	closeMachine(t, opened, n)
}
