package replica

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"
)

// sender is a node with a snapshot of so many payloads, and an open stream of it.
func sender(t *testing.T, payloads int) (meta *raft.SnapshotMeta, stream io.ReadCloser, creationID string) {
	t.Helper()
	fs := vfs.NewMem()
	found1(t, fs)
	s, n := openMachine(t, fs)
	n.machine.ApplyBatch([]*raft.Log{opens(2)})
	for i := 1; i <= payloads; i++ {
		n.machine.ApplyBatch([]*raft.Log{holds(t, uint64(i)+2, 2, [3]int{0, i, i})})
	}
	if err := n.logs.StoreLog(opens(2)); err != nil {
		t.Fatal(err)
	}
	snapshotHere(t, n, uint64(payloads)+2)
	list, err := n.snapshots.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("%d snapshots, %v", len(list), err)
	}
	meta, stream, err = n.snapshots.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeMachine(t, s, n) })
	return meta, stream, s.CreationID()
}

func sinkOf(t *testing.T, n *Node, meta *raft.SnapshotMeta) raft.SnapshotSink {
	t.Helper()
	into, err := n.snapshots.Create(meta.Version, meta.Index, meta.Term, meta.Configuration, meta.ConfigurationIndex, nil)
	if err != nil {
		t.Fatal(err)
	}
	return into
}

// A power cut while a snapshot is received and taken over leaves the old database or the new
// one, and the new one if the snapshot is there: raft begins behind it.
func TestAPowerCutWhileASnapshotIsReceived(t *testing.T) {
	meta, stream, creationID := sender(t, 12)
	c := &cuts{fs: vfs.NewCrashableMem(), random: rand.New(rand.NewPCG(3, 4))}
	fs := c.wrap()
	if _, err := Prepare(PrepareOptions{FS: fs, Dir: "data", Node: NewNodeID(), CreationID: creationID, Shards: shards, Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	s, n := openMachine(t, fs)
	n.machine.ApplyBatch([]*raft.Log{opens(2), holds(t, 3, 2, [3]int{1, 1, 100})})
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	c.set(true, 0)
	into := sinkOf(t, n, meta)
	if _, err := io.Copy(into, stream); err != nil {
		t.Fatal(err)
	}
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	_, own, err := n.snapshots.Open(meta.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.machine.Restore(counted{own}); err != nil {
		t.Fatal(err)
	}
	c.set(false, 0)
	if err := own.Close(); err != nil {
		t.Error(err)
	}
	closeMachine(t, s, n)
	const older, newer = "[100]", "[1 2 3 4 5 6 7 8 9 10 11 12]"
	seen := make(map[string]int)
	for i, cut := range c.clones {
		s, n, err := tryMachine(cut.fs)
		if err != nil {
			t.Fatalf("power cut %d: %v", i, err)
		}
		newest, err := n.snapshots.newest()
		if err != nil {
			t.Fatal(err)
		}
		want := older
		if newest != nil {
			want = newer
		}
		got := fmt.Sprint(has(t, s))
		if seen[got]++; got != want {
			t.Errorf("power cut %d: there is a snapshot: %t, and the database has %s", i, newest != nil, got)
		}
		closeMachine(t, s, n)
	}
	t.Logf("%d power cuts: %v", len(c.clones), seen)
	if seen[older] == 0 || seen[newer] == 0 {
		t.Error("one of the two was never seen")
	}
}

// What was damaged on its way is not taken.
func TestADamagedSnapshotIsRefused(t *testing.T) {
	meta, stream, _ := sender(t, 3)
	data, err := io.ReadAll(stream)
	if err != nil || int64(len(data)) != meta.Size {
		t.Fatalf("the stream has %d bytes, and %d were announced (%v)", len(data), meta.Size, err)
	}
	fs := vfs.NewMem()
	found1(t, fs)
	s, n := openMachine(t, fs)
	defer closeMachine(t, s, n)
	for at := 0; at < len(data); at += 97 {
		bad := slices.Clone(data)
		bad[at] ^= 4
		into := sinkOf(t, n, meta)
		_, err := into.Write(bad)
		if err == nil {
			err = into.Close()
		}
		if cancelErr := into.Cancel(); cancelErr != nil {
			t.Error(cancelErr)
		}
		if err == nil {
			t.Errorf("byte %d of %d was changed on its way, and the snapshot was taken", at, len(data))
		}
	}
}

// A table of the database that is damaged is in the snapshot, too. A node that has to send it ends
// instead: its sum would be that of the damaged bytes, and every node that joins would have them.
func TestADamagedTableIsNotSentToOthers(t *testing.T) {
	fs := vfs.NewMem()
	found1(t, fs)
	s, n := openMachine(t, fs)
	defer closeMachine(t, s, n)
	n.machine.ApplyBatch([]*raft.Log{opens(2), holds(t, 3, 2, [3]int{0, 1, 1})})
	if err := n.logs.StoreLog(opens(2)); err != nil {
		t.Fatal(err)
	}
	snapshotHere(t, n, 3)
	meta, err := n.snapshots.newest()
	if err != nil {
		t.Fatal(err)
	}
	dir := n.snapshots.path(meta.ID, dataName)
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		tables++
		path := fs.PathJoin(dir, name)
		good := readFile(t, fs, path)
		for at := range good {
			bad := slices.Clone(good)
			bad[at] ^= 4
			writeFile(t, fs, path, bad)
			if cause := sent(t, n, meta.ID); !strings.Contains(cause, path) || !strings.Contains(cause, "join anew") {
				t.Errorf("byte %d of %d of %s is wrong, and the node says: %s", at, len(good), path, cause)
			}
		}
		writeFile(t, fs, path, good)
	}
	if cause := sent(t, n, meta.ID); cause != "" || tables == 0 {
		t.Errorf("a snapshot of %d tables without a damage is not sent: %s", tables, cause)
	}
}

// sent reads a snapshot as it is sent, and returns why the process ends.
func sent(t *testing.T, n *Node, id string) (cause string) {
	t.Helper()
	_, stream, err := n.snapshots.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if died := recover(); died != nil {
			cause = fmt.Sprint(died)
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := io.Copy(io.Discard, stream); err != nil {
		t.Error(err)
	}
	return ""
}

func readFile(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t *testing.T, fs vfs.FS, path string, data []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
