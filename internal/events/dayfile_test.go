package events

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// with makes a log over a directory, whose queues have the names q0 and q1.
func with(t *testing.T, fs vfs.FS, nowMs int64) *feeder {
	t.Helper()
	f := &feeder{log: New(Options{Shards: 1, MemoryBytes: 8 << 20}), nowMs: nowMs}
	var queues []store.QueueState
	for n := range 2 {
		queues = append(queues, store.QueueState{
			Key: record.QueueKey{Command: fmt.Sprint("q", n), Tenant: "default"}, Counters: record.Counters{Done: 1},
		})
	}
	f.log.Load(0, 0, queues)
	if err := f.log.OpenHistory(fs, "", nowMs, func(err error) { t.Error(err) }); err != nil {
		t.Fatal(err)
	}
	f.log.Tick(nowMs)
	return f
}

// minutes feeds a queue for some minutes and returns the points of all queues of a day.
func (f *feeder) minutes(t *testing.T, n int) []wire.WatchPoint {
	t.Helper()
	for range n * 60 {
		f.second(0, 1, 1)
	}
	_, points := f.log.Points(wire.TotalSlot, 24*3600_000)
	return points
}

func (f *feeder) close(t *testing.T) {
	t.Helper()
	if err := f.log.Close(); err != nil {
		t.Error(err)
	}
}

func TestMinutesSurviveARestartAndADamagedEnd(t *testing.T) {
	fs := vfs.NewMem()
	f := with(t, fs, atMs)
	before := f.minutes(t, 5)
	f.close(t)
	for _, c := range []struct {
		name   string
		damage func(data []byte) []byte
		lost   int
	}{
		{"nothing", func(data []byte) []byte { return data }, 0},
		{"a torn line", func(data []byte) []byte { return data[:len(data)-3] }, 1},
		{"a flipped bit", func(data []byte) []byte { data[len(data)-3] ^= 8; return data }, 1},
		{"an empty file", func([]byte) []byte { return nil }, 5},
	} {
		damaged := vfs.NewMem()
		write(t, damaged, c.damage(read(t, fs)))
		f := with(t, damaged, atMs+300_000)
		_, points := f.log.Points(wire.TotalSlot, 24*3600_000)
		if want := before[:len(before)-c.lost]; fmt.Sprint(points) != fmt.Sprint(want) {
			t.Errorf("%s: %d points, want %d", c.name, len(points), len(want))
		}
		// The history goes on behind the last good line.
		after := f.minutes(t, 2)
		f.close(t)
		again := with(t, damaged, atMs+420_000)
		if _, points := again.log.Points(wire.TotalSlot, 24*3600_000); fmt.Sprint(points) != fmt.Sprint(after) || len(after) != len(before)-c.lost+2 {
			t.Errorf("%s: %d points after the next start, want %d", c.name, len(points), len(after))
		}
		again.close(t)
	}
}

func TestMinutesHaveWhatIsLimitedAlsoAfterARestart(t *testing.T) {
	fs := vfs.NewMem()
	f := with(t, fs, atMs)
	f.observe([]shard.Event{{Number: f.number + 1, AtMs: f.nowMs, Command: "q0", Tenant: "default", Queue: 1, To: wire.LocationLimited, Cause: record.CauseEnqueue}})
	before := f.minutes(t, 2)
	f.close(t)
	again := with(t, fs, atMs+120_000)
	defer again.close(t)
	_, after := again.log.Points(1, 24*3600_000)
	if len(before) != 2 || len(after) != 2 || before[0].Figures[wire.FigureLimited] != 1 || after[1].Figures[wire.FigureLimited] != 1 || after[1].Figures[wire.FigureReady] != 0 {
		t.Errorf("the points before the restart are %v, those behind it %v", before, after)
	}
}

func TestALineOfBeforeLimitedTasksWereKeptIsRead(t *testing.T) {
	t.Parallel()
	line := appendLine(nil, record.QueueKey{Command: "a"}, &point{atS: 7, figures: [pointFigures]uint32{1, 2}})
	line = line[:len(line)-1] // the number of limited tasks, 0
	binary.LittleEndian.PutUint16(line, uint16(len(line)-6))
	binary.LittleEndian.PutUint32(line[2:], crc32.Checksum(line[6:], castagnoli))
	if q, p, size := parseLine(line); size != len(line) || q.Command != "a" || p.figures != [pointFigures]uint32{1, 2} {
		t.Errorf("%v %v, %d of %d bytes", q, p, size, len(line))
	}
}

func TestTheDayFileKeepsToItsBytes(t *testing.T) {
	fs := vfs.NewMem()
	f := with(t, fs, atMs)
	f.log.history.file.most = 200
	f.minutes(t, 30)
	f.close(t)
	total := 0
	for _, name := range []string{fileName, oldFileName} {
		info, err := fs.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		total += int(info.Size())
	}
	if total > 2*(200+100) {
		t.Errorf("the files have %d bytes", total)
	}
	again := with(t, fs, atMs+1800_000)
	defer again.close(t)
	if _, points := again.log.Points(1, 24*3600_000); len(points) < 4 || points[len(points)-1].AtMs != f.nowMs {
		t.Errorf("%d points are left", len(points))
	}
}

func read(t *testing.T, fs vfs.FS) []byte {
	t.Helper()
	file, err := fs.Open(fileName)
	if err != nil {
		t.Fatal(err)
	}
	var data bytes.Buffer
	if _, err := data.ReadFrom(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func write(t *testing.T, fs vfs.FS, data []byte) {
	t.Helper()
	file, err := fs.Create(fileName, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// FuzzLine: what is read is written the same, but for a number that an older version did not write,
// and anything else is damaged.
func FuzzLine(f *testing.F) {
	f.Add(appendLine(nil, record.QueueKey{Tenant: "default", Command: "a"}, &point{atS: 1_767_225_600}))
	f.Add(appendLine(nil, record.QueueKey{}, &point{figures: [pointFigures]uint32{1<<32 - 1, 7}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		q, p, size := parseLine(data)
		if size == 0 {
			return
		}
		q2, p2, size2 := parseLine(appendLine(nil, q, &p))
		if q2 != q || p2 != p || size2 == 0 || size2 > size+1 {
			t.Errorf("%v %+v of %d bytes comes back as %v %+v of %d", q, p, size, q2, p2, size2)
		}
	})
}
