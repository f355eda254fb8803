package store

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tempSuffix is what a file is called until it takes another one's place.
const tempSuffix = ".tmp"

// makeDir makes the data directory and its parents, each durable in the one
// above it.
func makeDir(fs vfs.FS, dir string) error {
	var missing []string
	for at := dir; ; at = fs.PathDir(at) {
		ok, err := exists(fs, at)
		if err != nil {
			return err
		}
		if ok || at == fs.PathDir(at) {
			break
		}
		missing = append(missing, at)
	}
	if len(missing) == 0 {
		return nil
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	for _, made := range missing {
		if err := SyncDir(fs, fs.PathDir(made)); err != nil {
			return err
		}
	}
	return nil
}

func exists(fs vfs.FS, name string) (bool, error) {
	_, err := fs.Stat(name)
	switch {
	case err == nil:
		return true, nil
	case oserror.IsNotExist(err):
		return false, nil
	}
	return false, fmt.Errorf("look for %s: %w", name, err)
}

// SyncDir makes durable which names a directory has.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

func readFile(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxManifestBytes))
	return data, errors.Join(err, f.Close())
}

// WriteFile makes name with the data, synced. The directory entry is not.
func WriteFile(fs vfs.FS, name string, data []byte) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// isLockHeld recognises the two ways a held file lock is reported: by the
// system, and by Pebble's own list of the locks of this process.
func isLockHeld(err error) bool {
	return errors.Is(err, syscall.EAGAIN) ||
		strings.Contains(err.Error(), "lock held by current process")
}

// replaceFile gives a file other data in one step that a power cut cannot tear: a
// synced file beside it, a rename, a sync of the directory.
func replaceFile(fs vfs.FS, name string, data []byte) error {
	temp := name + tempSuffix
	if err := WriteFile(fs, temp, data); err != nil {
		return err
	}
	if err := fs.Rename(temp, name); err != nil {
		return err
	}
	return SyncDir(fs, fs.PathDir(name))
}
