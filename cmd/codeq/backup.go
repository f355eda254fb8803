package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// backupPart is the end of the name of a backup that is not complete.
const backupPart = ".part"

type backupCmd struct {
	Dir string `arg:"" type:"path" help:"Directory that is made for the backup."`
}

// Help is the longer text of "codeq backup --help".
func (b *backupCmd) Help() string {
	return `The server runs on while the backup is made. What it acknowledged before the command began is in the backup. No server
starts on a backup; restore makes a data directory from it:

  codeq backup /mnt/backup/monday
  codeq restore /mnt/backup/monday /var/lib/codeq
  codeq serve --data /var/lib/codeq

A backup names the artifacts of tasks and does not hold their files: copy the directory of artifacts (serve --artifacts-dir)
after the backup, and back before the restored server starts. Without that they are gone, and all else is there.

A server with tokens requires one with the scope codeq:admin:all.`
}

// backup is a copy that is being made: its directory, and how much has come.
type backup struct {
	dir string
	// sync makes a file or a directory durable. Tests replace os.File.Sync.
	sync  func(*os.File) error
	files int
	bytes int64
}

// Run copies the data of the running server.
func (b *backupCmd) Run(a *app) error {
	if err := mustNotExist(b.Dir); err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	part := &backup{dir: filepath.Clean(b.Dir) + backupPart, sync: (*os.File).Sync}
	if err := mustNotExist(part.dir); err != nil {
		return fmt.Errorf("%w; an earlier backup ended early there", err)
	}
	ctx, done := a.untilStopped()
	defer done()
	if err := c.Backup(ctx, part.write); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return errors.Join(err, os.RemoveAll(part.dir))
	}
	if err := part.finish(b.Dir); err != nil {
		return err
	}
	if a.JSON {
		return a.writeJSON(struct {
			Dir   string `json:"dir"`
			Files int    `json:"files"`
			Bytes int64  `json:"bytes"`
		}{b.Dir, part.files, part.bytes})
	}
	a.say("%d files of %d bytes are in %s; restore with \"codeq restore %s DIR\"", part.files, part.bytes, b.Dir, b.Dir)
	return nil
}

func mustNotExist(dir string) error {
	_, err := os.Lstat(dir)
	switch {
	case err == nil:
		return wrong("%s exists already: name a directory that does not", dir)
	case !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("read the directory: %w", err)
	}
	return nil
}

// write makes one file of the backup and syncs it. It refuses a name that leads out of the
// directory, which no codeq server sends.
func (b *backup) write(name string, sizeBytes int64, content io.Reader) error {
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) {
		return fmt.Errorf("the server sent a file named %q, which is outside the backup", name)
	}
	file := filepath.Join(b.dir, local)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	n, err := io.Copy(f, content)
	if err == nil && n != sizeBytes {
		err = fmt.Errorf("%s ended after %d of %d bytes", name, n, sizeBytes)
	}
	if err == nil {
		err = b.sync(f)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	b.files++
	b.bytes += n
	return nil
}

// finish syncs the directories of a complete backup and gives it its name. Both survive a
// power cut.
func (b *backup) finish(dir string) error {
	err := filepath.WalkDir(b.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return b.syncDirectory(path)
	})
	if err != nil {
		return fmt.Errorf("write backup: %w", err)
	}
	if err := os.Rename(b.dir, dir); err != nil {
		return fmt.Errorf("name backup: %w", err)
	}
	return b.syncDirectory(filepath.Dir(filepath.Clean(dir)))
}

func (b *backup) syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(b.sync(d), d.Close()); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
