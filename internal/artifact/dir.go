package artifact

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/wire"
)

const (
	// tempName is the directory of files that are not whole yet.
	tempName = "tmp"
	// bytesPerSync is after how many bytes of an upload the system begins to write them out, so
	// that the sync at its end is short and those of the database do not wait behind it.
	bytesPerSync = 4 << 20
	// bytesPerLook is after how many bytes of an upload the free space is asked for.
	bytesPerLook = 8 << 20
)

// Dir keeps files in a directory: those of a task in one of its own, below one of 256 by the end of
// its id. Its methods may be called from any goroutine.
type Dir struct {
	fs   vfs.FS
	path string
	// keepFree is how much of the disk uploads leave free, in bytes.
	keepFree int64
	// durable: the directory and those above it are.
	durable atomic.Bool
}

// OpenDir takes a directory, which is made with the first file, and deletes what uploads under way
// have left in it.
func OpenDir(fs vfs.FS, path string, keepFree int64) (*Dir, error) {
	d := &Dir{fs: fs, path: path, keepFree: keepFree}
	if err := fs.RemoveAll(fs.PathJoin(path, tempName)); err != nil {
		return nil, fmt.Errorf("delete unfinished artifacts: %w", err)
	}
	return d, nil
}

func (d *Dir) ofTask(id wire.TaskID) string {
	text := id.String()
	return d.fs.PathJoin(d.path, text[len(text)-2:], text)
}

func (d *Dir) fileOf(k Key) string { return d.fs.PathJoin(d.ofTask(k.Task), k.File) }

// Put implements Driver: a synced file beside the others, a rename, and a sync of each directory
// on the way, because another upload may have made it a moment ago.
func (d *Dir) Put(k Key, r io.Reader) (err error) {
	temp := d.fs.PathJoin(d.path, tempName, k.Task.String()+"."+k.File)
	dir := d.ofTask(k.Task)
	if err := errors.Join(d.fs.MkdirAll(d.fs.PathDir(temp), 0o700), d.fs.MkdirAll(dir, 0o700)); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := d.write(temp, r); err != nil {
		return errors.Join(err, ignoreMissing(d.fs.Remove(temp)))
	}
	if err := d.fs.Rename(temp, d.fileOf(k)); err != nil {
		return errors.Join(err, ignoreMissing(d.fs.Remove(temp)))
	}
	for _, at := range []string{dir, d.fs.PathDir(dir), d.path} {
		if err := d.syncDir(at); err != nil {
			return err
		}
	}
	return d.syncAbove()
}

// syncAbove makes the directory itself durable, once: it may be new, and those above it.
func (d *Dir) syncAbove() error {
	if d.durable.Load() {
		return nil
	}
	for at := d.path; at != d.fs.PathDir(at); {
		at = d.fs.PathDir(at)
		if err := d.syncDir(at); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	d.durable.Store(true)
	return nil
}

func (d *Dir) syncDir(at string) error {
	f, err := d.fs.OpenDir(at)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// write makes a file of what r gives, synced.
func (d *Dir) write(name string, r io.Reader) error {
	created, err := d.fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return full(fmt.Errorf("make file: %w", err))
	}
	f := vfs.NewSyncingFile(created, vfs.SyncingFileOptions{BytesPerSync: bytesPerSync, NoSyncOnClose: true})
	for err == nil {
		if err = d.room(); err == nil {
			_, err = io.CopyN(f, r, bytesPerLook)
		}
	}
	if err == io.EOF {
		err = f.Sync()
	}
	return full(errors.Join(err, f.Close()))
}

// room is ErrFull if the disk has no more space than it must keep.
func (d *Dir) room() error {
	usage, err := d.fs.GetDiskUsage(d.path)
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask for free space: %w", err)
	}
	if int64(usage.AvailBytes) < d.keepFree {
		return ErrFull
	}
	return nil
}

func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return errors.Join(ErrFull, err)
	}
	return err
}

// Open implements Driver.
func (d *Dir) Open(k Key) (io.ReadSeekCloser, error) {
	f, err := d.fs.Open(d.fileOf(k))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return opened{io.NewSectionReader(f, 0, info.Size()), f}, nil
}

// opened is a file that is read.
type opened struct {
	*io.SectionReader
	io.Closer
}

// Files implements Driver.
func (d *Dir) Files(id wire.TaskID) ([]string, error) { return d.list(d.ofTask(id)) }

func (d *Dir) list(at string) ([]string, error) {
	names, err := d.fs.List(at)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// Remove implements Driver.
func (d *Dir) Remove(k Key) error { return ignoreMissing(d.fs.Remove(d.fileOf(k))) }

// Forget implements Driver.
func (d *Dir) Forget(id wire.TaskID) error { return ignoreMissing(d.fs.RemoveAll(d.ofTask(id))) }

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Tasks implements Driver.
func (d *Dir) Tasks(each func(wire.TaskID) bool) error {
	outer, err := d.list(d.path)
	for _, part := range outer {
		if len(part) != 2 || err != nil {
			continue // tmp, or nothing of ours
		}
		var ids []string
		ids, err = d.list(d.fs.PathJoin(d.path, part))
		for _, text := range ids {
			if id, ok := wire.ParseTaskID(text); ok && !each(id) {
				return nil
			}
		}
	}
	return err
}
