package replica

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// blackout notes what is left of all disks when they lose power at the same moment, between two
// writes of any of them.
type blackout struct {
	disks []*vfs.MemFS
	// each is after how many writes the power goes, most how often.
	each, most int
	acked      atomic.Int64

	mu    sync.Mutex
	on    bool
	steps int
	dark  []darkness
}

// darkness is one time without power: what is left, and what was acknowledged before.
type darkness struct {
	disks []*vfs.MemFS
	acked int
}

// disk is one of the disks as its node has it.
func (b *blackout) disk() vfs.FS {
	fs := vfs.NewCrashableMem()
	b.disks = append(b.disks, fs)
	return errorfs.Wrap(steadyMem{fs}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.steps++; !b.on || op.Kind.ReadOrWrite() == errorfs.OpIsRead || b.steps%b.each != 0 || len(b.dark) == b.most {
			return nil
		}
		now := darkness{acked: int(b.acked.Load())}
		for _, disk := range b.disks {
			now.disks = append(now.disks, disk.CrashClone(vfs.CrashCloneCfg{}))
		}
		b.dark = append(b.dark, now)
		return nil
	}))
}

// When all nodes lose power at the same moment, whatever they were writing, all that was acknowledged
// is there when they are back. Jepsen: a coordinated power cut cost NATS 2.12.1 acknowledged writes.
func TestAPowerCutOfAllNodesLosesNothing(t *testing.T) {
	b := &blackout{each: 23, most: 40}
	if testing.Short() {
		b.most = 3
	}
	var disks []vfs.FS
	for range 3 {
		disks = append(disks, b.disk())
	}
	hosts := newHostsOn(t, disks)
	first := leader(t, hosts...)
	w := first.writer(first.lead())
	b.mu.Lock()
	b.on = true
	b.mu.Unlock()
	for n := 1; n <= 150; n++ {
		w.mustPut(n, n)
		b.acked.Store(int64(n))
		if n%60 != 0 {
			continue
		}
		for _, h := range hosts {
			c := h.node.raft.ReloadableConfig()
			c.TrailingLogs = 1
			if err := errors.Join(h.node.raft.ReloadConfig(c), h.node.Snapshot()); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.close()
	for _, h := range hosts {
		h.stop()
	}
	t.Logf("%d power cuts of all nodes, at %d to %d of 150 writes", len(b.dark), b.dark[0].acked, b.dark[len(b.dark)-1].acked)
	for i, dark := range b.dark {
		for n, h := range hosts {
			h.fs = steadyMem{dark.disks[n]}
			h.start()
		}
		lease := leads(t, hosts...)
		mustAgree(t, dark.acked, hosts...)
		lease.End()
		for _, h := range hosts {
			h.stop()
		}
		if t.Failed() {
			t.Fatalf("power cut %d", i)
		}
	}
}
