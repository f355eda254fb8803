//go:build unix && !clientonly

package main

import (
	"github.com/rs/zerolog"

	"codeq/store"
)

type restoreCmd struct {
	Backup string `arg:"" type:"path" help:"Directory that \"codeq backup\" has made."`
	Dir    string `arg:"" type:"path" help:"Data directory that is made. It must not exist, or be empty."`
}

// Help is the longer text of "codeq restore --help".
func (r *restoreCmd) Help() string {
	return `The backup is not changed. It is checked as at the start of a server: if a part of it is missing, nothing is restored.
"codeq doctor BACKUP" reads every record of it.

  codeq restore /mnt/backup/monday /var/lib/codeq
  codeq serve --data /var/lib/codeq

The restored server does not know what happened after the backup: tasks that were completed since then run again.`
}

// Run makes a data directory of a backup.
func (r *restoreCmd) Run(a *app) error {
	ctx, done := a.untilStopped()
	defer done()
	files, err := store.Restore(ctx, store.Options{Dir: r.Dir, Log: zerolog.Nop()}, r.Backup)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.writeJSON(struct {
			Dir   string `json:"dir"`
			Files int    `json:"files"`
		}{r.Dir, files})
	}
	a.say("%d files are in %s; start the server with \"codeq serve --data %s\"", files, r.Dir, r.Dir)
	return nil
}
