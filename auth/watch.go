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
	// settleFor is how long a file must be left alone before it is read: an
	// editor writes in several steps.
	settleFor = 50 * time.Millisecond
	// settleAtMost bounds that for a directory in which something always
	// happens.
	settleAtMost = 500 * time.Millisecond
)

// Watch reloads whenever the file changes, until stop is called, which waits
// for the watcher's goroutine. told is called from that goroutine, and before
// Watch returns, after each reload that found another file (nil) or could not
// read it (the reason, once). A change counts within a second, where the file
// system tells of changes; a network one may not, and then Reload is to be
// called.
//
// The directory is watched and not the file: a file that is replaced by
// another, as editors and config maps do, is another file.
func (t *Tokens) Watch(told func(error)) (stop func(), err error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch tokens: %w", err)
	}
	w := &watcher{tokens: t, told: told, events: events, stop: make(chan struct{})}
	if err := w.look(); err != nil {
		// Nothing is lost by what closing says: it was never used.
		_ = events.Close()
		return nil, err
	}
	// What changed between the first reading and the watch is seen now.
	w.read()
	var ended sync.WaitGroup
	ended.Go(w.run)
	var once sync.Once
	return func() {
		once.Do(func() { close(w.stop) })
		ended.Wait()
	}, nil
}

// watcher is owned by its goroutine once that runs.
type watcher struct {
	tokens *Tokens
	told   func(error)
	events *fsnotify.Watcher
	stop   chan struct{}
	// said is the failure that was told last.
	said string
}

// look watches the directory of the path, the one above the file's, and those of all
// links on the way to the file. Doing so again is harmless. The directories further
// up may be closed to this user, who can still read the file: then a change there
// counts with the next Reload.
func (w *watcher) look() error {
	if err := w.events.Add(filepath.Dir(w.tokens.file)); err != nil {
		return fmt.Errorf("watch directory of tokens: %w", err)
	}
	for _, dir := range turnings(w.tokens.file) {
		_ = w.events.Add(dir) // see above
	}
	return nil
}

// mostLinks is how many links are followed on the way to a file, as by the system.
const mostLinks = 40

// turnings are the directories in which a change can make the path lead to another
// file: that of the file, the one above, and those of every link on the way.
func turnings(file string) (dirs []string) {
	path, err := filepath.Abs(file)
	if err != nil {
		return []string{filepath.Dir(file)}
	}
	for range mostLinks {
		link, target := firstLink(path)
		if link == "" {
			break
		}
		dirs = append(dirs, filepath.Dir(link))
		path = filepath.Join(target, strings.TrimPrefix(path, link))
	}
	return append(dirs, filepath.Dir(path), filepath.Dir(filepath.Dir(path)))
}

// firstLink is the first link in a path and where it leads, "" if there is none.
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
	// The watcher holds nothing that closing could lose.
	defer func() { _ = w.events.Close() }()
	settled := time.NewTimer(time.Hour)
	settled.Stop()
	var since time.Time // of the first event that is not read yet
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

// read reloads and tells, and follows a link that leads elsewhere now.
func (w *watcher) read() {
	changed, err := w.tokens.Reload()
	if err == nil {
		err = w.look()
	}
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	if changed || failure != "" && failure != w.said {
		w.told(err)
	}
	w.said = failure
}
