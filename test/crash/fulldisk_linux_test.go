package crash

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// The cluster goes on while the disk of one node is full. While those of two are, it refuses new tasks
// as a server alone does, loses nothing, and goes on when there is room.
func TestFullDisks(t *testing.T) {
	if *daysFlag == 0 || os.Getuid() != 0 {
		t.Skip("mounts three disks in memory") // make cluster-faults runs it as root
	}
	c := blackbox.ServeOn(t, mountDisks(t))
	lead := c.Leader()
	var posted []wire.TaskID
	// post posts for a while and returns how many were taken, and how the last one was answered.
	post := func(long time.Duration) (taken int, last error) {
		api := blackbox.NewAPI(c.Addr)
		defer api.Close()
		for until := time.Now().Add(long); time.Now().Before(until); {
			ctx, cancel := context.WithTimeout(t.Context(), leadTimeout+time.Second)
			task, err := api.Post(ctx, `{"command":"c","payload":"`+string(make64k())+`"}`)
			cancel()
			if last = err; err == nil {
				taken++
				posted = append(posted, task.ID)
			}
		}
		return taken, last
	}
	var full []*blackbox.Server
	for _, s := range c.Others(lead) {
		full = append(full, s)
		fill(t, filepath.Join(filepath.Dir(s.Dir), "full"))
		taken, last := post(6 * time.Second)
		t.Logf("%d disks of three are full: %d tasks taken, the last answer is %v", len(full), taken, last)
		if len(full) == 1 && (taken == 0 || last != nil) {
			t.Errorf("with one full disk %d tasks are taken, the last answer is %v", taken, last)
		}
	}
	var refused *wire.Error
	for late := time.Now().Add(endsWithin); ; {
		_, last := post(time.Second)
		if errors.As(last, &refused) && (refused.Code == wire.CodeStorageFull || refused.Code == wire.CodeNotLeader) {
			t.Logf("with two full disks tasks are refused: %v", last)
			break // the leader asks the others for their space now and then; or they could write no more before
		}
		if time.Now().After(late) {
			t.Fatalf("with two full disks tasks are not refused: %v", last)
		}
	}
	for _, s := range full {
		if err := os.Remove(filepath.Join(filepath.Dir(s.Dir), "full")); err != nil {
			t.Fatal(err)
		}
		s.Kill() // it may have ended by itself
		s.Start()
	}
	c.AwaitAll()
	for late := time.Now().Add(endsWithin); ; {
		taken, last := post(time.Second)
		if taken > 0 {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("with room again no task is taken: %v", last)
		}
	}
	for _, id := range posted {
		if got := statusAt(t.Context(), lead, id); got != string(wire.StatusPending) {
			t.Fatalf("task %v is %s", id, got)
		}
	}
}

// mountDisks mounts a small disk in memory for each node.
func mountDisks(t *testing.T) (disks []string) {
	t.Helper()
	for range 3 {
		disk := t.TempDir()
		if err := syscall.Mount("codeq", disk, "tmpfs", 0, "size=700m"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		disks = append(disks, disk)
	}
	return disks
}

// make64k is the text of a payload.
func make64k() []byte {
	text := make([]byte, 64<<10)
	for i := range text {
		text[i] = byte('a' + i*7919%26)
	}
	return text
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 1<<16); err == nil; {
		_, err = f.Write(block)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
