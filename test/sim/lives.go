package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Where one life of the server ends and the next begins.

// crash is a power cut: what was not synced is lost, or, if kept, was synced
// just now and nobody was told.
func (w *world) crash(left bool) {
	if w.cluster != nil {
		w.cluster.crash(left)
		return
	}
	s := w.server
	w.crashes++
	w.trace.say("  the power goes (unsynced data %s)", map[bool]string{true: "kept", false: "lost"}[left])
	s.silent = true
	if left = left && !s.failSyncs.Load(); left {
		if err := s.store.Barrier(); err != nil {
			violate("a sync that can succeed does", "%v", err)
		}
		w.model.durable()
	}
	disk := w.afterCut(s.disk, w.freeBytes, left)
	died := s.dead.Load()
	if err := s.close(); err != nil && !died {
		violate("a store closes", "%v", err)
	}
	w.lifeEnds()
	w.boot(disk)
	w.lifeBegins()
}

// afterCut is a disk after a power cut. All or nothing of what was not synced is kept, so no
// number is drawn that the story depends on.
func (w *world) afterCut(disk *vfs.MemFS, freeBytes int64, left bool) *vfs.MemFS {
	percent := 0
	if left {
		percent = 100
	}
	after := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(1, 1))})
	after.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: uint64(freeBytes), TotalBytes: diskBytes})
	return after
}

// lifeEnds is what clients and model see of the end of a life.
func (w *world) lifeEnds() {
	w.audience.ended()
	w.model.rollback()
	w.replaced = w.replaced[:0]
	for _, c := range slices.Clone(w.conns) {
		c.serverDied()
	}
	w.httpDied()
	if w.shape.setBack && w.cluster == nil {
		w.backMs = pick(w.chance, []int64{0, 1, 500, 60_000, 3600_000})
	}
}

// lifeBegins is what they see of the next one.
func (w *world) lifeBegins() {
	if w.backMs > 0 {
		w.trace.say("  the wall clock was set back by %d ms, it is %s", w.backMs, w.clock())
	}
	w.model.restart(w.nowMs, w.cluster != nil)
	w.startHooks()
	w.files.lookAtAll()
	w.forgetDeleted()
	w.compareAll(16)
}

// close ends the memory of a life in good order, on a disk nobody looks at
// again. Otherwise each life would be kept by the goroutines of its Pebble.
func (s *server) close() (err error) {
	s.dead.Store(true)
	s.silent = true
	s.failSyncs.Store(false)
	defer func() {
		// Pebble may panic over what a fault or a broken invariant left open.
		if p := recover(); p != nil {
			err = fmt.Errorf("close: %v", p)
		}
	}()
	return s.store.Close()
}

// die runs f, in which the process may end by itself.
func (w *world) die(f func()) {
	defer func() {
		p := recover()
		if d, ok := p.(*death); ok {
			w.trace.say("  the process ends: %v", d.cause)
			if !strings.Contains(d.cause.Error(), errInjected.Error()) {
				violate("only a fault of the disk ends the process", "%v", d.cause)
			}
			w.crash(false)
			return
		}
		if p != nil {
			panic(p)
		}
	}()
	f()
}
