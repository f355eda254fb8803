package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Restore makes the data directory o.Dir of a backup, which stays what it is, and
// returns how many files it has. The directory must not be there, or be empty. The
// manifest is written last: a copy that was cut short is refused by every server.
// What was made is removed when an error is returned, also when ctx ends. Any
// goroutine; no server may run over either directory.
func Restore(ctx context.Context, o Options, backup string) (files int, err error) {
	o = withDefaults(o)
	from := o
	from.Dir = backup
	if err := backupIsThere(o.FS, backup); err != nil {
		return 0, err
	}
	source, err := OpenReadOnly(from)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	m, err := source.readManifest()
	if err != nil {
		return 0, err
	}
	if m.State != stateBackup {
		return 0, refuse(backup, "the directory is no backup but the data of a server; "+
			"copy it, or start a server over it as it is")
	}
	target := &Store{options: o}
	made, err := target.takeEmpty()
	defer target.release()
	if err == nil {
		files, err = target.fill(ctx, source, m)
	}
	if err != nil && made != "" {
		err = errors.Join(err, o.FS.RemoveAll(made))
	}
	return files, err
}

// backupIsThere refuses a directory that is not there, or that codeq has not made.
func backupIsThere(fs vfs.FS, backup string) error {
	const remedy = "name one that \"codeq backup\" has made"
	dir, err := exists(fs, backup)
	if err != nil {
		return err
	}
	if !dir {
		return refuse(backup, "the directory is not there; %s", remedy)
	}
	made, err := exists(fs, fs.PathJoin(backup, manifestName))
	if err == nil && !made {
		err = refuse(backup, "the directory holds no data of codeq: it has no %s; %s", manifestName, remedy)
	}
	return err
}

// takeEmpty takes a directory that is not there, or is empty, and returns the path
// to remove if nothing comes of it.
func (s *Store) takeEmpty() (made string, err error) {
	fs, dir := s.options.FS, s.options.Dir
	found, err := exists(fs, dir)
	if err != nil {
		return "", err
	}
	if found {
		names, err := fs.List(dir)
		if err != nil {
			return "", fmt.Errorf("list directory: %w", err)
		}
		if name, is := firstForeign(names); is {
			return "", refuse(dir, "the directory is not empty: there is %q in it; name one that is not there, or is empty", name)
		}
	}
	if err := makeDir(fs, dir); err != nil {
		return "", err
	}
	made = dir
	if found {
		made = s.path(databaseName)
	}
	s.lock, err = lockDir(fs, dir)
	return made, err
}

// fill copies the database and then writes the manifest of a directory that a
// server may start over.
func (s *Store) fill(ctx context.Context, source *Store, m *manifest) (files int, err error) {
	fs, to := s.options.FS, s.path(databaseName)
	if err := fs.MkdirAll(to, 0o700); err != nil {
		return 0, fmt.Errorf("make database directory: %w", err)
	}
	names, err := fs.List(source.path(databaseName))
	if err != nil {
		return 0, fmt.Errorf("list backup: %w", err)
	}
	for _, name := range names {
		if name == lockName {
			continue
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if err := vfs.Copy(fs, fs.PathJoin(source.path(databaseName), name), fs.PathJoin(to, name)); err != nil {
			return 0, fmt.Errorf("copy %s: %w", name, err)
		}
		files++
	}
	if err := errors.Join(SyncDir(fs, to), SyncDir(fs, s.options.Dir)); err != nil {
		return 0, err
	}
	m.State = stateReady
	return files + 1, writeManifest(fs, s.options.Dir, m)
}
