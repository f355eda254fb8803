package store

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"
)

const (
	spareName = "spare"
	// logCategory is what Pebble says of a file that becomes a log.
	logCategory = vfs.DiskWriteCategory("pebble-wal")
)

// logs is the file system of the database: the one that knows what was synced,
// except that a new log is made of a spare file, which was written full of zeros
// and synced before.
// The sync of a log that grows has to write the file's size and its new
// extents as well, reserved or not; one that is overwritten does without,
// which on ext4 halves the time. Pebble uses its own old logs again for the
// same reason, but the first ones of a process are small.
//
// The spare lies beside the logs: the sync of the directory that makes a new
// log durable also ends the spare's own name, so that no crash leaves one file
// with both.
//
// Pebble calls it with locks of its own held, so nothing here waits for a file
// to be written; one goroutine of the store does that.
type logs struct {
	vfs.FS
	guard *Guard
	log   zerolog.Logger
	spare string
	bytes int64
	// wake has room for one token: a spare may be wanted.
	wake chan struct{}

	// mu is held while the spare is taken or declared ready.
	mu    sync.Mutex
	ready bool
}

func newLogs(g *Guard, fs vfs.FS) *logs {
	l := &logs{
		FS: fs, guard: g, log: g.log,
		spare: g.inner.PathJoin(g.dir, databaseName, spareName),
		// As much as Pebble would reserve: a memtable and what the log adds.
		bytes: int64(g.memTableBytes) / 10 * 11,
		wake:  make(chan struct{}, 1),
	}
	l.wake <- struct{}{}
	return l
}

// Create implements vfs.FS.
func (l *logs) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if category == logCategory {
		if f, err := l.take(name); f != nil || err != nil {
			return f, err
		}
	}
	return l.FS.Create(name, category)
}

// ReuseForWrite implements vfs.FS. An old log that the new one would outgrow
// is given up for the spare.
func (l *logs) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	info, err := l.FS.Stat(old)
	if category != logCategory || err != nil || info.Size() >= l.bytes {
		return l.FS.ReuseForWrite(old, name, category)
	}
	f, err := l.take(name)
	if f == nil && err == nil {
		return l.FS.ReuseForWrite(old, name, category)
	}
	if err != nil {
		return nil, err
	}
	if err := l.FS.Remove(old); err != nil {
		// Nothing reads it: its number is below those in use, and the next open
		// of the database removes it.
		l.log.Error().Err(err).Str("file", old).Msg("an old log of the database could not be removed; the next start removes it")
	}
	return f, nil
}

// take makes the spare the file of that name; nil if there is none.
func (l *logs) take(name string) (vfs.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // the goroutine is already on its way
	}
	if !l.ready {
		return nil, nil
	}
	l.ready = false
	return l.FS.ReuseForWrite(l.spare, name, logCategory)
}

// fill makes the spare if there is none and the disk has room for it. One
// goroutine at a time.
func (l *logs) fill() {
	if !l.wanted() {
		return
	}
	if err := l.make(); err != nil {
		l.log.Error().Err(err).Msg("no spare log could be made; the next log is a new file, whose syncs are slower")
		if err := l.remove(); err != nil {
			l.log.Error().Err(err).Msg("the spare log could not be removed")
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready = true
}

func (l *logs) wanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.guard
	return !l.ready && g.supported && g.Level() == Ok && g.levelWith(g.FreeBytes()-l.bytes) == Ok
}

// make goes around the hook of a full disk: no ballast is given up for a spare.
func (l *logs) make() error {
	f, err := l.guard.inner.Create(l.spare, logCategory)
	if err != nil {
		return err
	}
	err = writeZeros(f, l.bytes)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// remove ends a spare, also one of a process before this.
func (l *logs) remove() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready = false
	if err := l.guard.inner.Remove(l.spare); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("remove spare log: %w", err)
	}
	return nil
}

// loop makes a spare whenever one was used, until stop; then it removes the
// one that is left.
func (l *logs) loop(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			if err := l.remove(); err != nil {
				l.log.Error().Err(err).Msg("the spare log could not be removed")
			}
			return
		case <-l.wake:
			l.fill()
		}
	}
}
