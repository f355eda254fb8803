package server

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/wire"
)

// tightDisk is the machine's file system, which has as much free as a test says.
type tightDisk struct {
	vfs.FS
	freeBytes atomic.Uint64
}

// GetDiskUsage implements vfs.FS.
func (d *tightDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	const totalBytes = 4 << 30
	free := d.freeBytes.Load()
	return vfs.DiskUsage{AvailBytes: free, TotalBytes: totalBytes, UsedBytes: totalBytes - free}, nil
}

// waits is the reason that a task is said to wait for, and how many are before it.
func (x *site) waits(id wire.TaskID) string {
	x.t.Helper()
	w := x.read(id).Waiting
	switch {
	case w == nil:
		return "nothing"
	case w.BehindKnown:
		return fmt.Sprintf("%s, %d before it", w.Reason, w.Behind)
	}
	return w.Reason
}

// mustWait compares the reason of a task, at once.
func (x *site) mustWait(when string, id wire.TaskID, want string) {
	x.t.Helper()
	if got := x.waits(id); got != want {
		x.t.Errorf("%s: the task waits for %s, want %s", when, got, want)
	}
}

// willWait waits until the reason of a task is another one, which nobody tells.
func (x *site) willWait(when string, id wire.TaskID, want string) {
	x.t.Helper()
	for late := time.Now().Add(patience); x.waits(id) != want; time.Sleep(20 * time.Millisecond) { // as said
		if time.Now().After(late) {
			x.t.Fatalf("%s: the task waits for %s, want %s", when, x.waits(id), want)
		}
	}
}

func (x *site) mustDo(method, path, body string) {
	x.t.Helper()
	if a := x.ask(method, "/v1/codeq"+path, body); a.status != http.StatusOK {
		x.t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
}

// One shard, so that what is before a task is all that its queue has before it.
func TestEveryReasonToWaitIsSaidAsItHolds(t *testing.T) {
	const plenty, tight = 3 << 30, 200 << 20
	disk := &tightDisk{FS: vfs.Default}
	disk.freeBytes.Store(plenty)
	s, err := Open(Options{
		DataDir: t.TempDir(), Listen: "127.0.0.1:0", Shards: 1, FS: disk, Log: zerolog.Nop(), Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	x := newSite(t, s)
	first := x.post(okTask)
	x.mustWait("nobody takes it", first.ID, "no_worker, 0 before it")
	worker := x.dial()
	worker.say(`{"type":"subscribe","ref":1,"commands":["c"],"window":1,"leaseSeconds":600}`)
	one := hear[*wire.TaskFrame](worker)
	if one.Task.ID != first.ID {
		t.Fatalf("the worker has %v", one.Task.ID)
	}
	x.mustWait("a worker has it", first.ID, "nothing")
	second, third := x.post(okTask), x.post(okTask)
	x.mustWait("the worker is full", second.ID, "no_room, 0 before it")
	x.mustWait("another is next", third.ID, "behind, 1 before it")
	urgent := x.post(`{"command":"c","payload":1,"priority":5}`)
	x.mustWait("a more urgent one is next", second.ID, "behind, 1 before it")
	x.mustWait("the more urgent one", urgent.ID, "no_room, 0 before it")

	x.mustDo("POST", "/admin/queues/c/pause", "")
	x.mustWait("paused", third.ID, "paused, 2 before it")
	x.mustDo("POST", "/admin/queues/c/resume", "")
	x.mustWait("no longer paused", third.ID, "behind, 2 before it")

	worker.say(`{"type":"window","ref":2,"size":2}`)
	two := hear[*wire.TaskFrame](worker)
	if two.Task.ID != urgent.ID {
		t.Fatalf("the worker has %v", two.Task.ID)
	}
	x.mustWait("one more has room, and it is taken", second.ID, "no_room, 0 before it")
	other := x.post(`{"command":"d","payload":1}`)
	x.mustWait("of another queue", other.ID, "no_worker, 0 before it")
	late := x.post(`{"command":"c","payload":1,"delaySeconds":600}`)
	x.mustWait("not yet due", late.ID, "delayed")
	if w := x.read(late.ID).Waiting; w.UntilMs != late.VisibleAtMs || w.UntilMs == 0 {
		t.Errorf("delayed until %d, said %d", late.VisibleAtMs, w.UntilMs)
	}

	disk.freeBytes.Store(tight) // it is asked once a second
	x.willWait("the disk is nearly full", second.ID, "storage_full, 0 before it")
	x.mustWait("delayed, whatever the disk has", late.ID, "delayed")
	disk.freeBytes.Store(plenty)
	x.willWait("there is space again", second.ID, "no_room, 0 before it")
	// What has arrived waits for the worker, and comes not back before it.
	worker.say(fmt.Sprintf(`{"type":"heartbeat","ref":3,"tasks":[{"taskId":"%v","leaseToken":"%v"},{"taskId":"%v","leaseToken":"%v"}]}`,
		first.ID, one.Token, urgent.ID, two.Token))
	for hear[*wire.OK](worker).Ref.Value != 3 {
	}
	worker.hangUp()
	x.willWait("the worker has gone", second.ID, "no_worker, 0 before it")
}
