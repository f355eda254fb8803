package auth

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleFor is how long a file must stay unchanged before it is read: an editor writes
	// in several steps.
	settleFor = 50 * time.Millisecond
	// settleAtMost bounds the wait in a directory whose files change all the time.
	settleAtMost = 500 * time.Millisecond
)

// WatchFile calls reload whenever a file changes, or one of those that reload reads beside it,
// until stop is called; stop waits for the goroutine of the watch. told is called once before
// WatchFile returns and then from that goroutine: with nil after a reload that found a
// change, and with the error, once, when the file cannot be read. A change counts within a second if the file system reports
// changes; a network file system may not, and then reload must be called.
//
// It watches directories and not the file: editors and config maps replace the file by
// another one, which a watch of the file would miss.
func WatchFile(file string, reload func() (changed bool, err error), told func(error), beside ...string) (stop func(), err error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch file: %w", err)
	}
	w := &watcher{files: append(beside, file), reload: reload, told: told, events: events, stop: make(chan struct{})}
	if err := w.watchDirectories(); err != nil {
		// It was never used, so an error of closing it means nothing.
		_ = events.Close()
		return nil, err
	}
	// A change between the first read and the watch is read now.
	w.read()
	var ended sync.WaitGroup
	ended.Go(w.run)
	var once sync.Once
	return func() {
		once.Do(func() { close(w.stop) })
		ended.Wait()
	}, nil
}

// watcher belongs to its goroutine once that runs.
type watcher struct {
	files  []string
	reload func() (changed bool, err error)
	told   func(error)
	events *fsnotify.Watcher
	stop   chan struct{}
	// toldFailure is the last error that told was called with.
	toldFailure string
}

// watchDirectories watches, for each file, the directory of the path, the one above the file's,
// and those of all links on the way to the file. A second call is harmless. This user may be able to
// read the file and not those directories: then a change there counts with the next Reload.
func (w *watcher) watchDirectories() error {
	for _, file := range w.files {
		if err := w.events.Add(filepath.Dir(file)); err != nil {
			return fmt.Errorf("watch directory of the file: %w", err)
		}
		for _, dir := range linkDirectories(file) {
			_ = w.events.Add(dir) // see above
		}
	}
	return nil
}

// maxLinks bounds the links on the way to a file, as Linux does.
const maxLinks = 40

// linkDirectories are the directories in which a change can make the path lead to another
// file: that of the file, the one above it, and those of every link on the way.
func linkDirectories(file string) (dirs []string) {
	path, err := filepath.Abs(file)
	if err != nil {
		return []string{filepath.Dir(file)}
	}
	for range maxLinks {
		link, target := firstLink(path)
		if link == "" {
			break
		}
		dirs = append(dirs, filepath.Dir(link))
		path = filepath.Join(target, strings.TrimPrefix(path, link))
	}
	return append(dirs, filepath.Dir(path), filepath.Dir(filepath.Dir(path)))
}

// firstLink is the first link in a path and its target, "" if there is none.
func firstLink(path string) (link, target string) {
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != filepath.Separator {
			continue
		}
		target, err := os.Readlink(path[:end])
		if err != nil {
			continue
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path[:end]), target)
		}
		return path[:end], target
	}
	return "", ""
}

func (w *watcher) run() {
	// Closing it can lose nothing.
	defer func() { _ = w.events.Close() }()
	settled := time.NewTimer(time.Hour)
	settled.Stop()
	var since time.Time // of the first event since the last read
	for {
		select {
		case <-w.stop:
			return
		case <-w.events.Events:
			if since.IsZero() {
				since = time.Now()
			}
			settled.Reset(min(settleFor, max(0, settleAtMost-time.Since(since))))
		case <-w.events.Errors:
			// Events were lost; which ones does not matter.
			settled.Reset(settleFor)
		case <-settled.C:
			since = time.Time{}
			w.read()
		}
	}
}

// read reloads the file, watches the directories of links that have changed, and calls
// told.
func (w *watcher) read() {
	changed, err := w.reload()
	if err == nil {
		err = w.watchDirectories()
	}
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	if changed || failure != "" && failure != w.toldFailure {
		w.told(err)
	}
	w.toldFailure = failure
}
