package shardactor

import (
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// What a supervisor is told rests on this: shards without work make a round when they are woken, and
// one that hangs shows it, whatever the others do.
func TestWakeTellsAShardThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		e := newTestEngine(t, 3, vfs.NewMem(), noFatal)
		e.loops[1].observe = func(*Observed) { <-hang }
		e.store.StartSyncer()
		e.Start()
		e.Wake()
		synctest.Wait()
		before := e.Wake()
		synctest.Wait()
		for i, now := range e.Wake() {
			if went := now > before[i]; went != (i != 1) {
				t.Errorf("shard %d made %d rounds, before that %d", i, now, before[i])
			}
		}
		close(hang)
		synctest.Wait()
		if now := e.Wake(); now[1] == before[1] {
			t.Error("a shard that goes on again is taken for one that hangs")
		}
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
		e.store.StopSyncer()
		if err := e.store.Close(); err != nil {
			t.Error(err)
		}
	})
}
