package store

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/record"
)

const mib = 1 << 20

// smallDisk is a file system that tells how much space is free, the ballast
// counted, and that refuses writes to tables and the ballast while it is full.
type smallDisk struct {
	vfs.FS
	total, avail atomic.Int64
	full         atomic.Bool
	noAnswer     atomic.Bool
	cannotKeep   atomic.Bool
}

func newSmallDisk(totalMiB, availMiB int64) *smallDisk {
	d := &smallDisk{FS: vfs.NewMem()}
	d.total.Store(totalMiB * mib)
	d.avail.Store(availMiB * mib)
	return d
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	if d.noAnswer.Load() {
		return vfs.DiskUsage{}, errors.New("no answer")
	}
	avail := d.avail.Load()
	if info, err := d.FS.Stat("data/ballast"); err == nil {
		avail -= info.Size()
	}
	return vfs.DiskUsage{AvailBytes: uint64(avail), TotalBytes: uint64(d.total.Load())}, nil
}

func (d *smallDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, ".sst") && !strings.HasSuffix(name, "ballast") && !strings.HasSuffix(name, spareName) {
		return f, err
	}
	return &smallFile{f, d}, nil
}

type smallFile struct {
	vfs.File
	disk *smallDisk
}

func (f *smallFile) Write(p []byte) (int, error) {
	if f.disk.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(p)
}

func (f *smallFile) Preallocate(offset, length int64) error {
	if f.disk.cannotKeep.Load() {
		return syscall.EOPNOTSUPP
	}
	return f.File.Preallocate(offset, length)
}

func (f *smallFile) WriteAt(p []byte, at int64) (int, error) {
	if f.disk.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.WriteAt(p, at)
}

func hasBallast(t *testing.T, fs vfs.FS) bool {
	t.Helper()
	ok, err := exists(fs, "data/ballast")
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestTheReserveFitsTheDisk(t *testing.T) {
	for _, c := range []struct {
		name                             string
		totalMiB, memTableMiB            int64
		reserveMiB, wantMemMiB, levelMiB int64
	}{
		{"a large disk", 1 << 20, 16, 256, 16, 512},
		{"large memtables", 1 << 20, 128, 512, 128, 1024},
		{"a small disk", 512, 16, 128, 16, 256},
		{"a smaller disk", 128, 16, 32, 4, 64},
		{"64 MiB", 64, 16, 16, 2, 32},
		{"a tiny disk", 16, 16, 4, 1, 8},
	} {
		d := newSmallDisk(c.totalMiB, c.totalMiB)
		o := withDefaults(optionsIn(d, func(o *Options) { o.MemTableBytes = int(c.memTableMiB * mib) }))
		g, err := newGuard(&o)
		if err != nil {
			t.Fatal(err)
		}
		if g.ReserveBytes() != c.reserveMiB*mib || int64(g.memTableBytes) != c.wantMemMiB*mib || g.ballastBytes != c.reserveMiB*mib/4 {
			t.Errorf("%s: reserve %d, memtable %d, ballast %d", c.name, g.ReserveBytes(), g.memTableBytes, g.ballastBytes)
		}
		d.avail.Store(c.levelMiB * mib)
		g.Tick(time.Unix(1, 0))
		if level := g.Level(); level != Ok && c.levelMiB < c.totalMiB/2 {
			t.Errorf("%s: level %v with twice the reserve", c.name, level)
		}
	}
}

// unit is 1/64 of the guarded disk: the reserve is 16 units, the ballast 4.
const unit = mib / 4

func newGuardedDisk(availUnits int64) *smallDisk {
	d := newSmallDisk(16, 0)
	d.avail.Store(availUnits * unit)
	return d
}

func TestLevelsFollowTheFreeSpace(t *testing.T) {
	d := newGuardedDisk(64)
	s := openIn(t, d)
	g := s.Guard()
	if g.Level() != Ok || hasBallast(t, d) {
		t.Fatalf("level %v at the start, ballast %v", g.Level(), hasBallast(t, d))
	}
	for _, c := range []struct {
		left int64
		want Level
	}{
		{32, Ok}, {31, NoEnqueue}, {16, NoEnqueue}, {15, NoGrant}, {8, NoGrant}, {7, OnlyDelete}, {0, OnlyDelete},
		{8, NoGrant}, {16, NoEnqueue}, {32, Ok},
	} {
		d.avail.Store(c.left * unit)
		g.hasBallast = true // left out of this test
		g.Tick(time.Unix(1, 0))
		if g.Level() != c.want || g.FreeBytes() != c.left*unit {
			t.Errorf("%d units left: level %v, want %v", c.left, g.Level(), c.want)
		}
	}
}

func TestABurstBetweenTwoQuestionsLowersTheLevel(t *testing.T) {
	d := newGuardedDisk(33)
	s := openIn(t, d)
	g := s.Guard()
	for range 3 {
		s.Span(0).Batch().PutPayload([16]byte{1}, make([]byte, 2*unit))
		apply(t, s.Span(0))
	}
	if g.Level() != NoEnqueue {
		t.Errorf("level %v after %d bytes", g.Level(), 6*unit)
	}
	g.Tick(time.Unix(1, 0)) // the disk says that compression kept it small
	if g.Level() != Ok || hasBallast(t, d) {
		t.Errorf("level %v after the next question, ballast %v", g.Level(), hasBallast(t, d))
	}
}

// A reader that met a stricter level between two checks is told when that level is
// over, although the level told last was the same.
func TestALevelThatWasMetBetweenTwoQuestionsIsToldToBeOver(t *testing.T) {
	d := newGuardedDisk(33)
	var told []Level
	s := openIn(t, d, func(o *Options) {
		o.LevelChanged = func(level Level) { told = append(told, level) }
	})
	for range 3 {
		s.Span(0).Batch().PutPayload([16]byte{1}, make([]byte, 2*unit))
		apply(t, s.Span(0))
	}
	if met := s.Guard().Level(); met != NoEnqueue {
		t.Fatalf("level %v after a burst, want %v", met, NoEnqueue)
	}
	s.Guard().Tick(time.Unix(1, 0))
	if want := []Level{Ok}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	s.Guard().Tick(time.Unix(2, 0))
	if len(told) != 1 {
		t.Errorf("told %v while nothing changed", told)
	}
}

func TestTheBallastIsMadeGivenUpAndMadeAgain(t *testing.T) {
	var log bytes.Buffer
	var told []Level
	d := newGuardedDisk(64)
	s := openIn(t, d, func(o *Options) {
		o.Log = zerolog.New(&log)
		o.LevelChanged = func(level Level) { told = append(told, level) }
	})
	g := s.Guard()
	now := time.Unix(1000, 0)
	g.Tick(now)
	if !hasBallast(t, d) || g.FreeBytes() != 60*unit {
		t.Fatalf("no ballast of a quarter: %d free", g.FreeBytes())
	}
	d.avail.Store(4 * unit)
	g.diskFull()
	if hasBallast(t, d) || g.Level() != OnlyDelete {
		t.Fatalf("ballast %v, level %v with a full disk", hasBallast(t, d), g.Level())
	}
	for _, c := range []struct {
		avail   int64
		ballast bool
		level   Level
	}{
		{4, false, OnlyDelete},
		{12, false, NoGrant},
		{18, false, NoEnqueue}, // making it would stop the grants
		{34, false, Ok},        // making it would stop the enqueues
		{22, true, NoEnqueue},
		{64, true, Ok},
	} {
		d.avail.Store(c.avail * unit)
		now = now.Add(20 * time.Second)
		g.Tick(now)
		if hasBallast(t, d) != c.ballast || g.Level() != c.level {
			t.Errorf("%d units: ballast %v, level %v, want %v, %v",
				c.avail, hasBallast(t, d), g.Level(), c.ballast, c.level)
		}
	}
	if want := []Level{OnlyDelete, NoGrant, NoEnqueue, Ok, NoEnqueue, Ok}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	if n := strings.Count(log.String(), `"the disk guard has another level"`); n != 6 {
		t.Errorf("%d changes of level in the log:\n%s", n, log.String())
	}
}

func TestABallastOfAnEarlierRunIsKept(t *testing.T) {
	d := newGuardedDisk(64)
	s := openIn(t, d)
	s.Guard().Tick(time.Unix(1, 0))
	closeStore(t, s)
	s = openIn(t, d)
	if !s.Guard().hasBallast || s.Created() {
		t.Error("the ballast is not found again")
	}
}

func TestABallastThatCannotBeMadeIsTriedAgainLater(t *testing.T) {
	d := newGuardedDisk(64)
	s := openIn(t, d)
	g := s.Guard()
	d.full.Store(true)
	g.Tick(time.Unix(100, 0))
	if hasBallast(t, d) {
		t.Error("a part of the ballast was left")
	}
	d.full.Store(false)
	g.Tick(time.Unix(101, 0))
	if hasBallast(t, d) {
		t.Error("tried again at once")
	}
	g.Tick(time.Unix(111, 0))
	if !hasBallast(t, d) {
		t.Error("not tried again")
	}
}

func TestABallastIsWrittenWhereItCannotBeReserved(t *testing.T) {
	d := newGuardedDisk(64)
	d.cannotKeep.Store(true)
	s := openIn(t, d)
	s.Guard().Tick(time.Unix(1, 0))
	if info, err := d.Stat("data/ballast"); err != nil || info.Size() != 4*unit {
		t.Errorf("got %v, %v", info, err)
	}
}

func TestWithoutAnAnswerTheLastOneCounts(t *testing.T) {
	d := newGuardedDisk(20)
	s := openIn(t, d)
	d.noAnswer.Store(true)
	s.Guard().Tick(time.Unix(1, 0))
	if s.Guard().Level() != NoEnqueue {
		t.Errorf("level %v", s.Guard().Level())
	}
	if _, err := Open(optionsIn(d, func(o *Options) { o.Dir = "second" })); err == nil {
		t.Error("a directory whose disk gives no answer was opened")
	}
}

// An operator who removes tasks from a full disk gets the space back, although nothing fills a memtable any more.
func TestRemovalsFreeSpaceWhileItIsShort(t *testing.T) {
	d := newGuardedDisk(30) // new tasks are refused
	s := openIn(t, d)
	const keys, bytes = 40, 100 << 10
	value := make([]byte, bytes)
	source := rand.NewChaCha8([32]byte{})
	for i := range byte(keys) {
		if _, err := source.Read(value); err != nil {
			t.Fatal(err)
		}
		if err := s.db.Set([]byte{1, i}, value, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Flush(), s.Compact(t.Context())); err != nil {
		t.Fatal(err)
	}
	for i := range byte(keys) {
		if err := s.db.Delete([]byte{1, i}, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	used := func() int64 {
		m := s.db.Metrics()
		return m.Total().TablesSize
	}
	if used() < keys*bytes/2 {
		t.Fatalf("tables have only %d bytes", used())
	}
	for end := time.Now().Add(20 * time.Second); used() > bytes; time.Sleep(5 * time.Millisecond) { // Pebble collects the statistics of a table on a goroutine of its own
		if _, err := s.reclaim(t.Context()); err != nil || time.Now().After(end) {
			t.Fatalf("%d bytes are still there: %v", used(), err)
		}
	}
}

func TestSpaceIsLeftAloneWhileThereIsEnough(t *testing.T) {
	s := openIn(t, newGuardedDisk(64))
	if err := s.db.Set([]byte{1}, []byte("a"), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	before := s.db.Metrics().Flush.Count
	if merged, err := s.reclaim(t.Context()); merged || err != nil || s.db.Metrics().Flush.Count > before {
		t.Errorf("merged %v, %d flushes: %v", merged, s.db.Metrics().Flush.Count-before, err)
	}
}

func TestAFileSystemThatDoesNotTellIsNotGuarded(t *testing.T) {
	fs := vfs.NewMem()
	s := openIn(t, fs)
	s.Guard().Tick(time.Unix(1, 0))
	s.Guard().committed(1 << 40)
	if s.Guard().Level() != Ok || s.Guard().ReserveBytes() != 0 || hasBallast(t, fs) {
		t.Errorf("level %v, reserve %d, ballast %v", s.Guard().Level(), s.Guard().ReserveBytes(), hasBallast(t, fs))
	}
}

// The real path: a flush meets a full disk, the ballast goes, and when space
// returns everything that was committed is still there, without a restart.
func TestAFullDiskLosesNothingAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := newGuardedDisk(64)
		s, err := Open(optionsIn(d, func(o *Options) { o.Log = zerolog.New(zerolog.SyncWriter(&log)) }))
		if err != nil {
			t.Fatal(err)
		}
		g := s.Guard()
		s.StartSyncer()
		synctest.Wait()
		if !hasBallast(t, d) {
			t.Fatal("the guard's goroutine makes no ballast")
		}
		planted := plantIn(s, 0).garden(t, record.QueueKey{Command: "c", Tenant: "t"})

		d.avail.Store(0)
		d.full.Store(true)
		if _, err := s.db.AsyncFlush(); err != nil {
			t.Error(err)
		}
		<-time.After(3 * time.Second) // of the bubble: no time here
		if hasBallast(t, d) || g.Level() != OnlyDelete {
			t.Errorf("ballast %v, level %v", hasBallast(t, d), g.Level())
		}

		d.full.Store(false)
		d.avail.Store(64 * unit)
		<-time.After(15 * time.Second)
		if !hasBallast(t, d) || g.Level() != Ok {
			t.Errorf("ballast %v, level %v after space returned", hasBallast(t, d), g.Level())
		}
		if err := s.db.Flush(); err != nil {
			t.Error(err)
		}
		readTaskOf(t, s, planted.pending.ID)
		mustFindNothing(t, s)
		if lines := strings.Count(log.String(), "flush or compaction failed"); lines == 0 || lines > 5 {
			t.Errorf("%d lines about one full disk", lines)
		}
		closeStore(t, s)
		if names, err := d.List("data"); err != nil || len(names) != 4 {
			t.Errorf("left over: %v, %v", names, err)
		}
	})
}

// meanwhile is a file system that does something while it is asked for the free space.
type meanwhile struct {
	vfs.FS
	do func()
}

func (m meanwhile) GetDiskUsage(dir string) (vfs.DiskUsage, error) {
	m.do()
	return m.FS.GetDiskUsage(dir)
}

// What is committed while the free space is asked for is not in the answer, as far as
// anybody knows: it counts until the next answer, and with that no more.
func TestWhatIsCommittedDuringTheQuestionCounts(t *testing.T) {
	d := newGuardedDisk(64)
	committed, g := 0, (*Guard)(nil)
	o := withDefaults(optionsIn(meanwhile{d, func() {
		if g != nil {
			g.committed(committed)
		}
	}}))
	g, err := newGuard(&o)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(during, wantLeft int64, want Level) {
		t.Helper()
		committed = int(during * unit)
		g.Tick(time.Unix(0, 0))
		if g.FreeBytes() != wantLeft*unit || g.Level() != want {
			t.Errorf("%d units during the question: %d are left, level %v; want %d, %v",
				during, g.FreeBytes()/unit, g.Level(), wantLeft, want)
		}
	}
	g.hasBallast = true // no file is made that takes space
	ask(0, 64, Ok)
	g.committed(10 * unit) // before the question: it is in the answer
	ask(33, 31, NoEnqueue)
	ask(57, 7, OnlyDelete)
	ask(0, 64, Ok)
}

// In a cluster the space of other disks counts, unless there is next to none here.
func TestTheGuardCountsWithWhatItIsTold(t *testing.T) {
	d, counted := newSmallDisk(1024, 900), int64(0)
	g, err := newGuard(&Options{FS: d, Dir: "data", MemTableBytes: 1 << 20, CountFree: func(own int64) int64 {
		if counted == 0 {
			return own
		}
		return counted
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		avail, counted int64
		want           Level
	}{
		{900, 0, Ok}, {900, 400, NoEnqueue}, {900, 200, NoGrant}, {900, 100, OnlyDelete}, {300, 900, Ok}, {100, 900, OnlyDelete}, {900, 900, Ok},
	} {
		d.avail.Store(c.avail * mib)
		counted = c.counted * mib
		g.Tick(time.Now())
		if got := g.Level(); got != c.want {
			t.Errorf("%d MiB here, %d counted: %v, want %v", c.avail, c.counted, got, c.want)
		}
		if own := g.OwnFreeBytes(); own > c.avail*mib || own < (c.avail-100)*mib {
			t.Errorf("%d MiB here: %d", c.avail, own)
		}
	}
	// A disk that is full is known to be.
	d.avail.Store(0)
	g.Tick(time.Now())
	if own := g.OwnFreeBytes(); own != 1 {
		t.Errorf("nothing here: %d", own)
	}
}
