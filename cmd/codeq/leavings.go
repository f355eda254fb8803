//go:build unix && !clientonly

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"codeq/client"
	"codeq/wire"
)

// leavingsIn is the directory of one worker, in which each run of its program has one for its
// artifacts. The worker holds a lock on it, which ends with the process however that ends, so that
// the next worker knows whose directories nobody uses any more.
type leavingsIn struct {
	path string
	lock *os.File
}

// leavingsPrefix begins the names of these directories, among temporary files.
const leavingsPrefix = "codeq-worker-"

// openLeavings makes the directory of this worker, and removes those of workers that have died.
func openLeavings() (*leavingsIn, error) {
	sweepLeavings()
	for {
		dir, err := os.MkdirTemp("", leavingsPrefix)
		if err != nil {
			return nil, fmt.Errorf("make the directory of artifacts: %w", err)
		}
		lock, err := lockDir(dir, syscall.LOCK_EX)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another worker that starts now has taken it for one of the dead
		}
		// Where a lock cannot be had, nobody gets one to remove it either.
		return &leavingsIn{dir, lock}, nil
	}
}

// lockDir locks a directory, and checks that it still has its name then.
func lockDir(dir string, how int) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), how)
	for errors.Is(err, syscall.EINTR) {
		err = syscall.Flock(int(f.Fd()), how)
	}
	if err == nil {
		var locked, named os.FileInfo
		if locked, err = f.Stat(); err == nil {
			named, err = os.Lstat(dir)
		}
		if err == nil && !os.SameFile(locked, named) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sweepLeavings removes the directories of dead workers of this user. What cannot be removed is not
// this worker's business.
func sweepLeavings() {
	found, _ := os.ReadDir(os.TempDir()) // without any there is nothing to remove
	for _, entry := range found {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), leavingsPrefix) {
			continue
		}
		info, err := entry.Info()
		if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
			continue
		}
		dir := filepath.Join(os.TempDir(), entry.Name())
		if dead, err := lockDir(dir, syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			_ = errors.Join(os.RemoveAll(dir), dead.Close()) // as said
		}
	}
}

// close removes the directory.
func (l *leavingsIn) close(say func(format string, args ...any)) {
	if l == nil {
		return
	}
	leavings(l.path).remove(say)
	if l.lock != nil {
		_ = l.lock.Close() // nothing was written through it
	}
}

// leavings is the directory in which a program leaves its artifacts; empty is none.
type leavings string

// next makes the directory of one run.
func (l *leavingsIn) next() (leavings, error) {
	if l == nil {
		return "", nil
	}
	dir, err := os.MkdirTemp(l.path, "")
	if err != nil {
		return "", fmt.Errorf("make the directory of artifacts: %w", err)
	}
	return leavings(dir), nil
}

func (l leavings) remove(say func(format string, args ...any)) {
	if l == "" {
		return
	}
	if err := os.RemoveAll(string(l)); err != nil {
		say("the directory of artifacts could not be removed: %s", err)
	}
}

// upload sends what a program has left, and names it in the outcome of its task. If a file cannot
// be sent the task is tried again, or fails for good if the server will never take such a file.
func (l leavings) upload(ctx context.Context, d client.Delivery, out client.Outcome) client.Outcome {
	if l == "" || out.Kind != client.Completed && out.Kind != client.Failed {
		return out
	}
	sent, err := l.send(ctx, d)
	var refusal *wire.Error
	switch {
	case err == nil:
		return out.With(sent...)
	case errors.Is(context.Cause(ctx), client.ErrStopping):
		return client.Stopped()
	case errors.As(err, &refusal) && (refusal.Code == wire.CodeTooLarge || refusal.Code == wire.CodeInvalidArgument):
		if out.Reason != "" {
			err = fmt.Errorf("%s; %w", out.Reason, err)
		}
		return client.Fail(err.Error())
	}
	return client.Nack(err.Error())
}

func (l leavings) send(ctx context.Context, d client.Delivery) (sent []wire.Artifact, err error) {
	err = filepath.WalkDir(string(l), func(at string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		if len(sent) == wire.MaxArtifacts {
			return wire.Refuse(wire.CodeTooLarge, fmt.Sprintf("the program left more than %d artifacts", wire.MaxArtifacts))
		}
		name, err := filepath.Rel(string(l), at)
		if err != nil {
			return err
		}
		a, err := sendFile(ctx, d, at, filepath.ToSlash(name))
		if err == nil {
			sent = append(sent, *a)
		}
		return err
	})
	return sent, err
}

func sendFile(ctx context.Context, d client.Delivery, at, name string) (*wire.Artifact, error) {
	f, err := os.Open(at)
	if err != nil {
		return nil, fmt.Errorf("read artifact: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read artifact: %w", err)
	}
	a, err := d.Upload(ctx, &client.File{Name: name, ContentType: mime.TypeByExtension(path.Ext(name)), Content: f, SizeBytes: info.Size()})
	if err != nil {
		return nil, fmt.Errorf("upload artifact %s: %w", name, err)
	}
	return a, nil
}
