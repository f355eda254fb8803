package artifact

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"codeq/internal/meter"
	"codeq/shard"
	"codeq/store"
	"codeq/wire"
)

// book is what a store would know.
type book struct {
	mu    sync.Mutex
	known map[wire.TaskID]store.TaskFiles
	err   error
}

func (b *book) of(id wire.TaskID) (store.TaskFiles, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[id], b.err
}

func (b *book) set(id wire.TaskID, known store.TaskFiles, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[id], b.err = known, err
}

// unheard is the observer behind the keeper.
type unheard struct{ events int }

func (u *unheard) Load(int, uint64, []store.QueueState) {}
func (u *unheard) Observe(_ int, events []shard.Event)  { u.events += len(events) }

func put(t *testing.T, k *Keeper, key Key) {
	t.Helper()
	if n, sum, err := k.Put(key, strings.NewReader("abc")); n != 3 || err != nil ||
		sum != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Fatal(n, sum, err)
	}
}

func has(t *testing.T, k *Keeper, id wire.TaskID, want string) {
	t.Helper()
	files, err := k.Driver.Files(id)
	if got := strings.Join(files, " "); got != want || err != nil {
		t.Errorf("task %v has the files %q, %v, want %q", id, got, err, want)
	}
}

// A start deletes what no task needs; an event has the files of its task looked at; what cannot be
// deleted is tried again.
func TestKeeperDeletesWhatNoResultNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		books, next := &book{known: map[wire.TaskID]store.TaskFiles{}}, &unheard{}
		k := New(Options{Driver: openMem(t, vfs.NewMem()), Next: next, Known: books.of, MaxBytes: 10, Log: zerolog.Nop()})
		gone, ended, open := taskID(t, 1), taskID(t, 2), taskID(t, 3)
		for _, id := range []wire.TaskID{gone, ended, open} {
			for _, file := range []string{"1.1", "2.2", "2.3"} {
				put(t, k, Key{id, file})
			}
		}
		books.set(ended, store.TaskFiles{Found: true, Ended: true, Delivery: 2, Named: []string{"", "2.2"}}, nil)
		books.set(open, store.TaskFiles{Found: true, Delivery: 2}, nil)
		k.Start()
		synctest.Wait()
		has(t, k, gone, "")
		has(t, k, ended, "2.2")
		has(t, k, open, "2.2 2.3")

		books.set(open, store.TaskFiles{Found: true, Ended: true}, errors.New("unreadable"))
		k.Observe(0, []shard.Event{{TaskID: gone}, {TaskID: open, Files: true}})
		synctest.Wait()
		has(t, k, open, "2.2 2.3")
		books.set(open, store.TaskFiles{Found: true, Ended: true}, nil)
		time.Sleep(retryAfter) // in the time of the bubble
		synctest.Wait()
		has(t, k, open, "")
		if next.events != 2 {
			t.Errorf("%d events went on, want 2", next.events)
		}

		books.set(ended, store.TaskFiles{}, nil)
		k.Observe(0, []shard.Event{{TaskID: ended, Files: true}})
		synctest.Wait()
		has(t, k, ended, "")
		if due := k.Due(); due != 0 {
			t.Errorf("%d tasks are due", due)
		}
		k.Drop(Key{ended, "1.1"})
		k.Refused(2)
		var page meter.Page
		k.WriteMetrics(&page)
		for _, line := range []string{
			`codeq_artifact_uploads_total{outcome="stored"} 9`, `codeq_artifact_uploads_total{outcome="refused"} 2`, "codeq_artifact_upload_bytes_total 27",
			`codeq_artifact_files_deleted_total{cause="orphan"} 6`, `codeq_artifact_files_deleted_total{cause="end"} 3`,
			"codeq_artifact_deletion_failures_total 1", "codeq_artifact_tasks_due 0",
		} {
			if !strings.Contains(string(page.Text()), line+"\n") {
				t.Errorf("the metrics have no line %s in\n%s", line, page.Text())
			}
		}
		k.Stop()
	})
}
