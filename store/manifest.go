package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/record"
)

// The manifest says what the directory is before any database is opened. It
// is written in state new first, and becomes ready once the database exists
// and carries the same creation id; nothing can have been acknowledged before
// that. So every crash while a directory is being made is repaired by making
// it again, and every ready manifest without its database is a loss that the
// operator must see.
const (
	manifestName    = "codeq.json"
	manifestTemp    = manifestName + tempSuffix
	databaseName    = "db"
	ballastName     = "ballast"
	lockName        = "LOCK"
	manifestVersion = record.Format
	stateNew        = "new"
	stateReady      = "ready"
	stateBackup     = "backup"

	maxManifestBytes = 64 << 10
)

var states = []string{stateNew, stateReady, stateBackup}

// RefusedError says why a directory is not opened. File names what is wrong,
// Sentence says how and what to do about it. No data has been changed.
type RefusedError struct {
	File     string
	Sentence string
}

// Error is the file and the sentence.
func (e *RefusedError) Error() string { return e.File + ": " + e.Sentence }

type manifest struct {
	Version    int    `json:"version"`
	Shards     int    `json:"shards"`
	CreationID string `json:"creationId"`
	State      string `json:"state"`
	CreatedAt  string `json:"createdAt,omitempty"`
	// BackupAt is the moment of the newest copy that was handed out whole, in a
	// backup its own; empty before the first.
	BackupAt string `json:"backupAt,omitempty"`
	// Node is the id of the node of a cluster that the directory belongs to; empty for a
	// server alone and in backups.
	Node string `json:"node,omitempty"`
	// NoLog says that the database was copied from a node, whose database has no log; the
	// first start over it makes one.
	NoLog bool `json:"noLog,omitempty"`
}

// backupAt is the moment of the newest backup, the zero time if there is none.
func (m *manifest) backupAt() time.Time {
	at, err := time.Parse(time.RFC3339, m.BackupAt)
	if err != nil {
		return time.Time{}
	}
	return at
}

// creation is the value of the one key outside the spans. Secret is for Secret.
type creation struct {
	CreationID string `json:"creationId"`
	Shards     int    `json:"shards"`
	Secret     []byte `json:"secret"`
}

func (s *Store) path(name string) string {
	return s.options.FS.PathJoin(s.options.Dir, name)
}

func refuse(file, format string, args ...any) error {
	return &RefusedError{File: file, Sentence: fmt.Sprintf(format, args...)}
}

// openOrCreate decides by the manifest what the directory is.
func (s *Store) openOrCreate() error {
	m, err := s.readManifest()
	if err != nil {
		return err
	}
	if m == nil {
		return s.create()
	}
	if err := s.mustBeOf(m.Node); err != nil {
		return err
	}
	if s.options.Shards != 0 && s.options.Shards != m.Shards {
		return refuse(s.path(manifestName), "the directory was made with %d shards, which can never change, "+
			"but %d were asked for; leave the number out or use another directory", m.Shards, s.options.Shards)
	}
	if m.State == stateNew && s.readOnly {
		return refuse(s.path(manifestName), "the directory is still being made, and holds no task yet; "+
			"start a server over it, which makes it anew")
	}
	if m.State == stateNew {
		return s.recreate(m)
	}
	if m.State == stateBackup && len(s.synced.found) == 0 {
		return refuse(s.synced.path(syncedName), "the file is missing or damaged, and nothing else says how long the logs of this backup are, "+
			"so what may have been lost cannot be told; take another backup, or restore an older one")
	}
	s.shards = m.Shards
	s.keepBackupAt(m.backupAt())
	return s.openReady(m)
}

// mustBeOf refuses the directory of a node of a cluster to anybody else who would write.
func (s *Store) mustBeOf(node string) error {
	file := s.path(manifestName)
	switch {
	case node == s.options.Node || s.readOnly:
		return nil
	case s.options.Node == "":
		return refuse(file, "the directory belongs to node %s of a cluster, whose other nodes would not know what a server alone does; "+
			"start that node with \"codeq serve\", or make a server alone of a backup with \"codeq restore\"", node)
	case node == "":
		return refuse(file, "the directory belongs to a server alone; make it the first node of a cluster with \"codeq cluster init\"")
	}
	return refuse(file, "the directory belongs to node %s, not to %s", node, s.options.Node)
}

// mustHoldData refuses a directory that a server has not made.
func (s *Store) mustHoldData() error {
	found, err := exists(s.options.FS, s.path(manifestName))
	if err != nil || found {
		return err
	}
	return refuse(s.options.Dir, "the directory holds no data of codeq: it has no %s; "+
		"name the one that the server is started with as --data", manifestName)
}

// mustNotBeBackup refuses a backup before anything of it is changed: it would be
// no backup any more, and its tasks would run again.
func (s *Store) mustNotBeBackup() error {
	found, err := exists(s.options.FS, s.path(manifestName))
	if err != nil || !found {
		return err
	}
	m, err := s.readManifest()
	if err != nil || m.State != stateBackup {
		return err
	}
	return refuse(s.options.Dir, "the directory is a backup of %s, and a server would change it and hand its tasks out again; "+
		"make a data directory of it with \"codeq restore %s DIR\"", m.BackupAt, s.options.Dir)
}

// readManifest returns nil for a directory that holds nothing yet.
func (s *Store) readManifest() (*manifest, error) {
	file := s.path(manifestName)
	data, err := readFile(s.options.FS, file)
	if oserror.IsNotExist(err) {
		return nil, s.mustBeEmpty()
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, refuse(file, "the manifest is damaged (%d bytes that are not its JSON); "+
			"restore the file from a backup, the database beside it has not been touched", len(data))
	}
	if m.Version > 0 && m.Version < manifestVersion {
		return nil, refuse(file, "the manifest has version %d and this program knows version %d: keys and records have another form since then; "+
			"let the program that made the directory finish its tasks, and name an empty directory", m.Version, manifestVersion)
	}
	if m.Version != manifestVersion {
		return nil, refuse(file, "the manifest has version %d and this program knows version %d; "+
			"use the program that made the directory, or a newer one than this", m.Version, manifestVersion)
	}
	if m.Shards < 1 || m.Shards > record.MaxShards || m.CreationID == "" || !slices.Contains(states, m.State) {
		return nil, refuse(file, "the manifest is damaged (shards %d, state %q); restore the file from a backup, "+
			"the database beside it has not been touched", m.Shards, m.State)
	}
	return &m, nil
}

// mustBeEmpty refuses a directory without a manifest that holds anything that
// a directory in the making, or a fresh file system, does not have.
func (s *Store) mustBeEmpty() error {
	names, err := s.options.FS.List(s.options.Dir)
	if err != nil {
		return fmt.Errorf("list data directory: %w", err)
	}
	if name, found := firstForeign(names); found {
		return refuse(s.path(manifestName), "the manifest is missing, but the directory is not empty: there is %q in it; "+
			"restore the manifest from a backup, or name an empty directory", name)
	}
	return nil
}

// firstForeign is the first of the names that an empty file system, or a directory
// in the making, does not have.
func firstForeign(names []string) (string, bool) {
	slices.Sort(names)
	for _, name := range names {
		switch name {
		case lockName, manifestTemp, "lost+found":
			continue
		}
		return name, true
	}
	return "", false
}

// create makes a directory from nothing.
func (s *Store) create() error {
	m := &manifest{
		Version:    manifestVersion,
		Shards:     s.options.Shards,
		CreationID: s.options.CreationID,
		State:      stateNew,
		CreatedAt:  time.Now().UTC().Format(time.RFC3339),
		Node:       s.options.Node,
	}
	if m.CreationID == "" {
		var err error
		if m.CreationID, err = s.drawCreationID(); err != nil {
			return err
		}
	}
	if m.Shards == 0 {
		m.Shards = DefaultShards
	}
	if err := writeManifest(s.options.FS, s.options.Dir, m); err != nil {
		return err
	}
	return s.createDatabase(m)
}

// recreate finishes a creation that was interrupted, from scratch. A database
// that holds more than a creation leaves is somebody's data under the wrong
// manifest, and not touched.
func (s *Store) recreate(m *manifest) error {
	inUse, err := s.databaseInUse()
	if err != nil {
		return err
	}
	if inUse {
		return refuse(s.path(manifestName), "the manifest says that the directory is still being made, "+
			"but the database beside it holds tasks; restore the manifest that belongs to it from a backup")
	}
	if err := s.options.FS.RemoveAll(s.path(databaseName)); err != nil {
		return fmt.Errorf("remove half-made database: %w", err)
	}
	clear(s.synced.found)
	if err := SyncDir(s.options.FS, s.options.Dir); err != nil {
		return err
	}
	return s.createDatabase(m)
}

// databaseInUse looks for a key of any span in a database that should be
// half-made. One that cannot be opened never was ready.
func (s *Store) databaseInUse() (bool, error) {
	if ok, err := exists(s.options.FS, s.path(databaseName)); !ok {
		return false, err
	}
	o := s.pebbleOptions()
	o.ErrorIfNotExists, o.ReadOnly = true, true
	// What a broken creation left behind is no reason to end the process.
	o.EventListener = patient()
	db, err := pebble.Open(s.path(databaseName), o)
	if err != nil {
		s.options.Log.Info().Err(err).Msg("the half-made database cannot be opened and is made again")
		return false, nil
	}
	found := false
	v := view{reader: db}
	lower := record.AppendSpan(nil, 0)
	upper := record.UpperBound(record.AppendSpan(nil, record.MaxShards-1))
	err = v.scan(lower, upper, func(_, _ []byte) (bool, error) {
		found = true
		return false, nil
	})
	return found, errors.Join(err, db.Close())
}

func (s *Store) createDatabase(m *manifest) error {
	value, err := s.newCreation(m)
	if err != nil {
		return err
	}
	o := s.pebbleOptions()
	o.ErrorIfExists = true
	db, err := pebble.Open(s.path(databaseName), o)
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	s.db, s.shards, s.created = db, m.Shards, true
	if err := s.finishCreation(m, value); err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}

// finishCreation puts the creation id into a table, not only into the log, so
// that a log that is lost later is not taken for a missing database.
func (s *Store) finishCreation(m *manifest, value []byte) error {
	how := pebble.Sync
	if s.unlogged() {
		how = pebble.NoSync // the table is enough
	}
	if err := s.db.Set([]byte(record.CreationKey), value, how); err != nil {
		return fmt.Errorf("write creation id: %w", err)
	}
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("flush creation id: %w", err)
	}
	m.State = stateReady
	return writeManifest(s.options.FS, s.options.Dir, m)
}

// openReady opens the database that must be there.
func (s *Store) openReady(m *manifest) error {
	dir := s.path(databaseName)
	if err := s.mustHaveLog(dir, m); err != nil {
		return err
	}
	o := s.pebbleOptions()
	o.ErrorIfNotExists, o.ReadOnly = true, s.readOnly
	db, err := pebble.Open(dir, o)
	if err != nil {
		return openError(dir, s.remedy(), err)
	}
	if err := s.checkCreation(db, m); err != nil {
		if pebble.IsCorruptionError(err) {
			err = s.refuseDamaged(nil, err)
		}
		return errors.Join(err, db.Close())
	}
	s.db = db
	if m.NoLog && !s.readOnly && !s.unlogged() {
		m.NoLog = false
		return writeManifest(s.options.FS, s.options.Dir, m)
	}
	return nil
}

// mustHaveLog refuses a database directory that is missing or has lost every
// write-ahead log: Pebble would start without it and miss what only the log
// held. That of a node has none.
func (s *Store) mustHaveLog(dir string, m *manifest) error {
	ok, err := exists(s.options.FS, dir)
	if err != nil {
		return err
	}
	if !ok {
		return refuse(dir, "the database is missing, but the manifest says that it was in use; %s", s.remedy())
	}
	if m.Node != "" || m.NoLog {
		return nil
	}
	names, err := s.options.FS.List(dir)
	if err != nil {
		return fmt.Errorf("list database: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			return nil
		}
	}
	return refuse(dir, "the database has lost its write-ahead log (no file ends in .log); "+
		"restore the directory from a backup")
}

// openError puts into words why Pebble does not open. What is no answer of the
// system to a call is a fault of the files.
func openError(dir, remedy string, err error) error {
	var refused *RefusedError
	var number syscall.Errno
	switch {
	case errors.As(err, &refused):
		return refused
	case oserror.IsNotExist(err), errors.Is(err, pebble.ErrDBDoesNotExist):
		return refuse(dir, "files of the database are missing (%v); %s", err, remedy)
	case errors.As(err, &number):
		return fmt.Errorf("open database: %w", err)
	}
	return damaged(dir, remedy, nil, err)
}

// refuseDamaged refuses because of a file that cannot be read, and names it and the
// last key before the damage where they are known.
func (s *Store) refuseDamaged(lastGoodKey []byte, err error) error {
	return damaged(s.path(databaseName), s.remedy(), lastGoodKey, err)
}

func damaged(dir, remedy string, lastGoodKey []byte, err error) error {
	what, at := "the database", ""
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		dir, what, err = info.Path, "the file", info.Details
	}
	if lastGoodKey != nil {
		at = ", found after the key " + record.NameForLog(lastGoodKey, record.QueueKey{})
	}
	return refuse(dir, "%s is damaged%s (%v); %s", what, at, err, remedy)
}

func (s *Store) checkCreation(db *pebble.DB, m *manifest) error {
	var c creation
	v := view{reader: db}
	found, err := v.get([]byte(record.CreationKey), func(value []byte) error { return json.Unmarshal(value, &c) })
	if err != nil && !isDamaged(err) {
		return err
	}
	if !found || c.CreationID != m.CreationID {
		return refuse(s.path(databaseName), "the database was not made together with the manifest beside it "+
			"(creation id %q, the manifest says %q); put back the pair that belongs together",
			c.CreationID, m.CreationID)
	}
	if c.Shards != m.Shards {
		return refuse(s.path(manifestName), "the manifest says %d shards, but the database was made with %d; "+
			"restore the manifest from a backup", m.Shards, c.Shards)
	}
	if len(c.Secret) != secretBytes {
		return refuse(s.path(databaseName), "the secret of the database has %d bytes instead of %d; restore the directory from a backup",
			len(c.Secret), secretBytes)
	}
	s.secret, s.creationID = c.Secret, c.CreationID
	return nil
}

// writeManifest replaces the manifest of a directory in one step.
func writeManifest(fs vfs.FS, dir string, m *manifest) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := replaceFile(fs, fs.PathJoin(dir, manifestName), append(data, '\n')); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}

func lockDir(fs vfs.FS, dir string) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, fs)
	if err == nil {
		return lock, nil
	}
	if isLockHeld(err) {
		return nil, refuse(fs.PathJoin(dir, lockName), "the directory is in use by another process; "+
			"stop that one, or name another directory")
	}
	return nil, fmt.Errorf("lock data directory: %w", err)
}
