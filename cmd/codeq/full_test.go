package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/internal/server"
)

// fullDisk is a file system in memory that has as much free as a test says.
type fullDisk struct {
	vfs.FS
	freeBytes atomic.Uint64
}

// GetDiskUsage implements vfs.FS.
func (d *fullDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	const totalBytes = 4 << 30
	free := d.freeBytes.Load()
	return vfs.DiskUsage{AvailBytes: free, TotalBytes: totalBytes, UsedBytes: totalBytes - free}, nil
}

// Space for each level of the guard, whose reserve is 256 MiB here.
const (
	spaceForAll   = 3 << 30
	spaceNoPosts  = 400 << 20
	spaceNoGrants = 200 << 20
	spaceDeletes  = 100 << 20
)

// newFullHouse is a house on a disk that the test fills.
func newFullHouse(t *testing.T, freeBytes uint64) (*house, *fullDisk) {
	t.Helper()
	disk := &fullDisk{FS: vfs.NewMem()}
	disk.freeBytes.Store(freeBytes)
	return houseOf(t, server.Options{DataDir: "data", FS: disk, Listen: "127.0.0.1:0", Log: zerolog.Nop(), Version: "of the test"}), disk
}

// Each level of the guard has a sentence of its own, with its name.
func TestHealthNamesTheLevelOfTheDiskGuard(t *testing.T) {
	for _, level := range []struct {
		free uint64
		code int
		says string
	}{
		{spaceNoPosts, exitFine, ", disk no-enqueue"},
		{spaceNoGrants, exitAgain, "not ready: the disk is nearly full (no-grant): no task is delivered, and results are still accepted"},
		{spaceDeletes, exitAgain, "not ready: the disk is full (only-delete): no task is delivered, and results are refused"},
	} {
		h, _ := newFullHouse(t, level.free)
		code, out, errs := h.run("", "health")
		if code != level.code || !strings.Contains(out+errs, level.says) {
			t.Errorf("exit code %d, %q, want %d and %q", code, out+errs, level.code, level.says)
		}
	}
}

// A run that meets a full disk stops at once, names the first line that was refused, and
// says how to go on. It waits for no more lines, and the lines that it sent have one sentence.
func TestFileOfLinesStopsAtAFullDisk(t *testing.T) {
	h, disk := newFullHouse(t, spaceNoPosts)
	pipe := filepath.Join(t.TempDir(), "lines")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	lines := make(chan *os.File, 1)
	go func() {
		writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
		} else if _, err := writer.WriteString("1\n2\n3\n"); err != nil {
			t.Error(err)
		}
		lines <- writer // it stays open: the command does not wait for its end
	}()
	code, out, errs := h.run("", "enqueue", "q", "--file", pipe)
	if err := (<-lines).Close(); err != nil {
		t.Error(err)
	}
	if want := pipe + ": 0 new tasks, 3 lines failed\n"; code != exitAgain || out != want {
		t.Errorf("exit code %d, output %q, want %d and %q", code, out, exitAgain, want)
	}
	has(t, errs, "stopped at line 1: the disk is nearly full", "(storage_full)")
	if n := strings.Count(errs, "storage_full"); n != 1 {
		t.Errorf("it says %d times that the disk is full: %s", n, errs)
	}
	name := runOf(t, errs)
	code, out, _ = h.run("1\n2\n", "--json", "enqueue", "q", "--file", "-")
	if code != exitAgain || strings.Count(out, `"code":"storage_full"`) != 2 || !strings.Contains(out, `"created":0,"replayed":0,"failed":2`) {
		t.Errorf("in JSON: exit code %d, %s", code, out)
	}

	disk.freeBytes.Store(spaceForAll) // the guard looks once a second
	again := fileOf(t, "1\n2\n3\n4\n")
	for code = exitAgain; code == exitAgain; {
		code, out, errs = h.run("", "enqueue", "q", "--file", again, "--run", name)
	}
	if code != exitFine || out != fmt.Sprintf("%s: 4 new tasks\n", again) {
		t.Errorf("with space again: exit code %d, %q, %q", code, out, errs)
	}
}
