package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"
)

// logMemTableBytes is the size of a memtable of the log of a cluster.
const logMemTableBytes = 32 << 20

// LogDatabase is where a node keeps the log of its cluster, a database of its own.
type LogDatabase struct {
	*pebble.DB
	synced *synced
}

// OpenLog opens the database of the log in a directory, or makes it. What is synced of it is
// witnessed as that of the database of tasks is: a log that has lost some of it is a
// *RefusedError. Fatal is called when a sync fails.
func OpenLog(fs vfs.FS, dir string, log zerolog.Logger, fatal func(error)) (*LogDatabase, error) {
	if err := makeDir(fs, dir); err != nil {
		return nil, err
	}
	witness, err := newSynced(fs, dir, log)
	if err != nil {
		return nil, err
	}
	witness.advice = joinAnew
	die := func(err error) { fatal(fmt.Errorf("the log of the cluster in %s: %w", dir, err)) }
	db, err := pebble.Open(dir, &pebble.Options{
		FS: witness, FormatMajorVersion: pebble.FormatValueSeparation,
		MemTableSize: logMemTableBytes, MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold: 8, L0StopWritesThreshold: 48,
		BytesPerSync: 1 << 20, MaxOpenFiles: minLogFiles,
		Logger: &pebbleLog{log: log, die: die},
		EventListener: &pebble.EventListener{DataCorruption: func(info pebble.DataCorruptionInfo) {
			die(refuse(info.Path, "the file is damaged (%v); %s", info.Details, witness.advice))
		}},
	})
	if err != nil {
		witness.close()
		return nil, openError(dir, joinAnew, err)
	}
	return &LogDatabase{DB: db, synced: witness}, nil
}

// minLogFiles is how many files of the log stay open.
const minLogFiles = 64

// Close closes the database.
func (l *LogDatabase) Close() error {
	err := l.DB.Close()
	l.synced.close()
	if err != nil {
		return errors.Join(errors.New("close the log of the cluster"), err)
	}
	return nil
}
