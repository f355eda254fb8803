package store

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
)

// largeDisk is a file system that says it has much room, so that spares are
// made.
type largeDisk struct{ vfs.FS }

func (largeDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40}, nil
}

// logSizes are the sizes of the logs of the database, by file name.
func logSizes(t *testing.T, fs vfs.FS) map[string]int64 {
	t.Helper()
	names, err := fs.List("data/db")
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		info, err := fs.Stat("data/db/" + name)
		if err != nil {
			t.Fatal(err)
		}
		sizes[name] = info.Size()
	}
	return sizes
}

func hasSpare(t *testing.T, fs vfs.FS) bool {
	t.Helper()
	ok, err := exists(fs, "data/db/spare")
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// flush ends the log in use.
func flush(t *testing.T, s *Store) {
	t.Helper()
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
}

func TestANewLogIsMadeOfTheSpare(t *testing.T) {
	fs := largeDisk{steadyMem{vfs.NewMem()}}
	s := openIn(t, fs)
	p := plantIn(s, 0)
	want := s.logs.bytes
	full := func() (n int) {
		for _, size := range logSizes(t, fs) {
			if size == want {
				n++
			}
		}
		return n
	}
	p.garden(t, record.QueueKey{Command: "a", Tenant: "t"})
	s.logs.fill()
	if !hasSpare(t, fs) || full() != 0 {
		t.Fatalf("spare %v, logs %v", hasSpare(t, fs), logSizes(t, fs))
	}
	flush(t, s)
	if hasSpare(t, fs) || full() != 1 {
		t.Fatalf("after the first log ended: spare %v, logs %v", hasSpare(t, fs), logSizes(t, fs))
	}
	// The logs before were small, and a spare is better than any of them.
	for n := range 6 {
		p.garden(t, record.QueueKey{Command: string(rune('b' + n)), Tenant: "t"})
		s.logs.fill()
		flush(t, s)
	}
	for name, size := range logSizes(t, fs) {
		if size != want {
			t.Errorf("%s has %d bytes, not %d", name, size, want)
		}
	}
	// A large one is used again, and the spare stays.
	s.logs.fill()
	p.garden(t, record.QueueKey{Command: "z", Tenant: "t"})
	flush(t, s)
	if !hasSpare(t, fs) {
		t.Error("the spare was taken although an old log had its size")
	}
	barrier(t, s)
	closeStore(t, s)
	s = openIn(t, fs)
	if got := len(tasksIn(t, s)); got != 8*6 {
		t.Errorf("%d tasks after the restart, want 48", got)
	}
	if hasSpare(t, fs) {
		t.Error("a spare of the process before was kept")
	}
	mustFindNothing(t, s)
}

func TestASpareIsOnlyMadeWhereThereIsRoom(t *testing.T) {
	d := newSmallDisk(1024, 1024)
	s := openIn(t, d)
	s.guard.hasBallast = true // as far as it knows, so that it makes none
	d.avail.Store(s.guard.reserveBytes*2 + s.logs.bytes/2)
	s.guard.Tick(time.Unix(1, 0))
	s.logs.fill()
	if hasSpare(t, d) {
		t.Error("a spare was made that leaves the disk nearly full")
	}
	d.avail.Store(1024 * mib)
	s.guard.Tick(time.Unix(1, 0))
	d.full.Store(true)
	s.logs.fill()
	if hasSpare(t, d) || s.guard.full.Load() {
		t.Errorf("a spare that could not be written: kept %v, disk called full %v", hasSpare(t, d), s.guard.full.Load())
	}
	d.full.Store(false)
	s.logs.fill()
	if !hasSpare(t, d) {
		t.Error("no spare was made with all the room")
	}
}

// Whatever the moment, also between the making of a spare and its first use as
// a log: what was durable is there.
func TestACrashAtAnyMomentWithSparesKeepsWhatWasDurable(t *testing.T) {
	c := &crashes{fs: vfs.NewCrashableMem(), random: rand.New(rand.NewPCG(6, 6)), off: true}
	s := openIn(t, largeDisk{c.wrap()})
	s.logs.bytes = 32 << 10 // every clone has a copy
	p := plantIn(s, 0)
	c.start(func() uint64 { return s.Synced(0) })
	for n := range 12 {
		p.garden(t, record.QueueKey{Command: string(rune('a' + n)), Tenant: "t"})
		if n%2 == 0 {
			barrier(t, s)
		}
		if n%4 == 1 {
			s.logs.fill()
		}
		if n%4 == 3 {
			flush(t, s)
		}
	}
	barrier(t, s)
	c.stop()
	most, spares := uint64(0), 0
	for _, clone := range c.clones {
		if hasSpare(t, clone.fs) {
			spares++
		}
	}
	c.survive(t, func(s *Store, promised uint64) {
		most = max(most, promised)
		if got := uint64(len(tasksIn(t, s))); got < 6*promised || got%6 != 0 {
			t.Errorf("%d tasks, %d batches of 6 were durable", got, promised)
		}
	})
	if most != 12 || spares < 10 || spares == len(c.clones) {
		t.Errorf("%d of %d clones had a spare, at most %d batches durable", spares, len(c.clones), most)
	}
}
