package artifact

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	random "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/wire"
)

func taskID(t *testing.T, n byte) wire.TaskID {
	t.Helper()
	return wire.TaskID{0: 0x7a, 15: n}
}

func openMem(t *testing.T, fs vfs.FS) *Dir {
	t.Helper()
	d, err := OpenDir(fs, "data/artifacts/id", 0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func readAll(t *testing.T, d Driver, k Key) string {
	t.Helper()
	f, err := d.Open(k)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }() // it was only read
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A power cut after Put leaves the whole file, one before it nothing that a start does not delete.
func TestAFileIsThereAfterAPowerCutOrWasNeverMade(t *testing.T) {
	disk := vfs.NewCrashableMem()
	d := openMem(t, disk)
	key := Key{taskID(t, 1), "1.1"}
	content := strings.Repeat("x", 3*bytesPerLook+1)
	half := &halfway{r: strings.NewReader(content), at: bytesPerLook, do: func() {
		cut := openMem(t, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: random.New(random.NewPCG(1, 1))}))
		if files, err := cut.Files(key.Task); len(files) > 0 || err != nil {
			t.Errorf("half of a file is there as %v, %v", files, err)
		}
		if names, err := cut.fs.List(cut.fs.PathJoin(cut.path, tempName)); err == nil {
			t.Errorf("a start leaves %v", names)
		}
	}}
	if err := d.Put(key, half); err != nil {
		t.Fatal(err)
	}
	cut := openMem(t, disk.CrashClone(vfs.CrashCloneCfg{}))
	if got := readAll(t, cut, key); got != content {
		t.Errorf("after a power cut %d bytes are there, %.60q", len(got), got)
	}
}

// halfway calls do once so many bytes were read.
type halfway struct {
	r  io.Reader
	at int
	do func()
}

func (h *halfway) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	if h.at -= n; h.at <= 0 && h.do != nil {
		h.do()
		h.do = nil
	}
	return n, err
}

// The same calls mean the same for every driver.
func exercise(t *testing.T, d Driver) {
	one, two := taskID(t, 1), taskID(t, 2)
	large := make([]byte, 20<<20+7)
	if _, err := rand.Read(large); err != nil {
		t.Fatal(err)
	}
	for k, content := range map[Key]string{{one, "1.1"}: "a", {one, "2.2"}: "", {one, "2.10"}: string(large), {two, "1.1"}: "c"} {
		if err := d.Put(k, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, d, k); got != content {
			t.Fatalf("%v holds %d bytes, want %d", k, len(got), len(content))
		}
	}
	broken := errors.New("broken")
	err := d.Put(Key{one, "2.11"}, io.MultiReader(bytes.NewReader(large), &failing{broken}))
	if !errors.Is(err, broken) {
		t.Errorf("an upload that broke off: %v", err)
	}
	files, err := d.Files(one)
	if slices.Sort(files); err != nil || !slices.Equal(files, []string{"1.1", "2.10", "2.2"}) {
		t.Errorf("files %v, %v", files, err)
	}
	f, err := d.Open(Key{one, "2.10"})
	if err != nil {
		t.Fatal(err)
	}
	part := make([]byte, 100)
	if at, err := f.Seek(-100, io.SeekEnd); err != nil || at != int64(len(large)-100) {
		t.Errorf("seek: %d, %v", at, err)
	}
	if _, err := io.ReadFull(f, part); err != nil || !bytes.Equal(part, large[len(large)-100:]) {
		t.Errorf("the last bytes: %v", err)
	}
	if at, err := f.Seek(5, io.SeekStart); err != nil || at != 5 {
		t.Errorf("seek: %d, %v", at, err)
	}
	if _, err := io.ReadFull(f, part); err != nil || !bytes.Equal(part, large[5:105]) {
		t.Errorf("bytes in the middle: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	var tasks []wire.TaskID
	if err := d.Tasks(func(id wire.TaskID) bool { tasks = append(tasks, id); return true }); err != nil || len(tasks) != 2 {
		t.Errorf("tasks %v, %v", tasks, err)
	}
	if err := errors.Join(d.Remove(Key{one, "1.1"}), d.Remove(Key{one, "1.1"}), d.Forget(two), d.Forget(two)); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, err := d.Open(Key{two, "1.1"}); !errors.Is(err, ErrGone) {
		t.Errorf("a file of a task that is forgotten: %v", err)
	}
	if files, err := d.Files(two); len(files) > 0 || err != nil {
		t.Errorf("a task that is forgotten has %v, %v", files, err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestDir(t *testing.T) {
	exercise(t, openMem(t, vfs.NewMem()))
	dir := filepath.Join(t.TempDir(), "new")
	d, err := OpenDir(vfs.Default, dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	exercise(t, d)
	left, err := os.ReadDir(filepath.Join(dir, tempName))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// smallDisk has so many bytes free.
type smallDisk struct {
	vfs.FS
	free uint64
}

func (s *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: s.free, TotalBytes: 1 << 40}, nil
}

func TestAnUploadEndsWhileTheDiskFills(t *testing.T) {
	disk := &smallDisk{FS: vfs.NewMem(), free: 100}
	d, err := OpenDir(disk, "a", 100)
	if err != nil {
		t.Fatal(err)
	}
	key := Key{taskID(t, 1), "1.1"}
	if err := d.Put(key, strings.NewReader("fits")); err != nil {
		t.Error(err)
	}
	key.File = "1.2"
	fills := &halfway{r: strings.NewReader(strings.Repeat("x", 2*bytesPerLook)), at: bytesPerLook / 2, do: func() { disk.free = 99 }}
	if err := d.Put(key, fills); !errors.Is(err, ErrFull) {
		t.Errorf("on a full disk: %v", err)
	}
	if files, err := d.Files(key.Task); len(files) != 1 || err != nil {
		t.Errorf("files %v, %v", files, err)
	}
}
