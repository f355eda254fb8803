package store

import (
	"errors"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// errReadOnly is what a change of a directory is answered that is open to be
// read.
var errReadOnly = errors.New("the directory is open to be read only")

// OpenReadOnly opens the data directory to look at it. It changes no byte, name
// or time of any file and makes none, so the right to read is enough and a backup
// stays what it is; what is only in logs is read into memory. It refuses what
// Open refuses, a directory that holds no data, and one that a server holds; while
// the store is open no server starts over the directory. A process that has the
// directory open itself must not call it. Of the store only Check and Close, and
// what reads tasks, may be used.
func OpenReadOnly(o Options) (*Store, error) {
	o = withDefaults(o)
	o.FS = readOnly{o.FS}
	o.MustExist = true
	return open(o, true)
}

// readOnly is a file system that cannot be changed.
type readOnly struct{ vfs.FS }

// Create implements vfs.FS.
func (readOnly) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, unchanged("create", name)
}

// Link implements vfs.FS.
func (readOnly) Link(_, name string) error { return unchanged("link", name) }

// OpenReadWrite implements vfs.FS.
func (readOnly) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, unchanged("open", name)
}

// Remove implements vfs.FS.
func (readOnly) Remove(name string) error { return unchanged("remove", name) }

// RemoveAll implements vfs.FS.
func (readOnly) RemoveAll(name string) error { return unchanged("remove", name) }

// Rename implements vfs.FS.
func (readOnly) Rename(_, name string) error { return unchanged("rename", name) }

// ReuseForWrite implements vfs.FS.
func (readOnly) ReuseForWrite(_, name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, unchanged("rename", name)
}

// MkdirAll implements vfs.FS.
func (readOnly) MkdirAll(name string, _ os.FileMode) error { return unchanged("mkdir", name) }

// Lock implements vfs.FS. A lock file that is not there is held by nobody, and is
// not made.
func (r readOnly) Lock(name string) (io.Closer, error) {
	if there, err := exists(r.FS, name); err != nil || !there {
		return io.NopCloser(nil), err
	}
	if r.FS == vfs.Default {
		return lockToRead(name)
	}
	return r.FS.Lock(name)
}

// Unwrap implements vfs.FS.
func (r readOnly) Unwrap() vfs.FS { return r.FS }

func unchanged(verb, name string) error { return &os.PathError{Op: verb, Path: name, Err: errReadOnly} }
