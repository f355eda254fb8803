package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"
)

const (
	syncedName = "synced"
	// A note is one file: 1 for a log or 2 for a MANIFEST (4 bytes), its number
	// (8), how many of its bytes are synced (8), 8 bytes of zeros, a sum (4). All
	// notes have the same length and none lies in two sectors of a disk.
	noteBytes = 32
	// syncedBytes is a new file of notes, with room for far more than there are
	// logs at a time.
	syncedBytes    = 4096
	noteOfLog      = 1
	noteOfManifest = 2
	manifestPrefix = "MANIFEST-"
)

// logFile is a log of the database or, with manifest, one of the files that say
// which tables it is made of.
type logFile struct {
	manifest bool
	number   uint64
}

func (f logFile) name() string {
	if f.manifest {
		return fmt.Sprintf("%s%06d", manifestPrefix, f.number)
	}
	return fmt.Sprintf("%06d.log", f.number)
}

func parseLogFile(name string) (f logFile, ok bool) {
	digits, ok := strings.CutSuffix(name, ".log")
	if !ok {
		digits, f.manifest = strings.CutPrefix(name, manifestPrefix)
		ok = f.manifest
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	f.number = number
	return f, ok && err == nil
}

func appendNote(b []byte, f logFile, length int64) []byte {
	kind, start := uint32(noteOfLog), len(b)
	if f.manifest {
		kind = noteOfManifest
	}
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = binary.LittleEndian.AppendUint64(b, f.number)
	b = binary.LittleEndian.AppendUint64(b, uint64(length))
	b = append(b, make([]byte, 8)...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// parseSynced reads the file of notes. A note that is not whole is none: a power
// cut can leave it so, and all it does is to prove loss.
func parseSynced(data []byte) map[logFile]int64 {
	notes := make(map[logFile]int64)
	for ; len(data) >= noteBytes; data = data[noteBytes:] {
		kind := binary.LittleEndian.Uint32(data)
		f := logFile{manifest: kind == noteOfManifest, number: binary.LittleEndian.Uint64(data[4:])}
		length := int64(binary.LittleEndian.Uint64(data[12:]))
		if kind != noteOfLog && kind != noteOfManifest || length <= 0 ||
			string(appendNote(nil, f, length)) != string(data[:noteBytes]) {
			continue
		}
		notes[f] = max(notes[f], length)
	}
	return notes
}

// synced is the file system that knows what was synced. It counts the bytes of
// each log and MANIFEST and notes after each sync how many of them are durable.
// The note itself is not synced: after the end of a process it is exact, after a
// power cut it says at most what was true. Whoever opens one of these files to
// read it is refused if it does not hold what is noted, so the database never
// starts from less than was acknowledged.
type synced struct {
	vfs.FS
	dir string // of the database
	log zerolog.Logger
	// advice is what to do about a loss; empty is to restore a backup.
	advice string

	// mu is held while a note is written.
	mu sync.Mutex
	// found are the notes of the process before.
	found map[logFile]int64
	// file has the notes of this process, each in the place that slots says; nil
	// before the first and when none can be written.
	file  vfs.File
	began bool
	slots map[logFile]int64
	free  []int64
}

func newSynced(fs vfs.FS, dir string, log zerolog.Logger) (*synced, error) {
	s := &synced{FS: fs, dir: dir, log: log, slots: make(map[logFile]int64)}
	data, err := readFile(fs, s.path(syncedName))
	if err != nil && !oserror.IsNotExist(err) {
		return nil, fmt.Errorf("read what was synced: %w", err)
	}
	s.found = parseSynced(data)
	return s, nil
}

func (s *synced) path(name string) string { return s.FS.PathJoin(s.dir, name) }

// fileOf is the log or MANIFEST of the database that has this path.
func (s *synced) fileOf(path string) (logFile, bool) {
	if s.FS.PathDir(path) != s.FS.PathDir(s.path(syncedName)) {
		return logFile{}, false
	}
	return parseLogFile(s.FS.PathBase(path))
}

// Create implements vfs.FS.
func (s *synced) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, category)
	return s.watch(name, f, err)
}

// ReuseForWrite implements vfs.FS.
func (s *synced) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.ReuseForWrite(old, name, category)
	s.forget(old)
	return s.watch(name, f, err)
}

// Remove implements vfs.FS.
func (s *synced) Remove(name string) error {
	s.forget(name)
	return s.FS.Remove(name)
}

// Open implements vfs.FS. When the database starts, it opens the logs and the
// MANIFEST that it needs, and no others, before it changes anything. Later it
// opens them for a checkpoint, while they grow.
func (s *synced) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	if f, ok := s.fileOf(name); ok && !s.started() {
		if err := s.verify(f); err != nil {
			return nil, err
		}
	}
	return s.FS.Open(name, options...)
}

// verify refuses a file that does not hold what was synced, and with a MANIFEST
// the loss of a log that its version needs.
func (s *synced) verify(f logFile) error {
	noted := s.found[f]
	scan, err := s.scan(f)
	if oserror.IsNotExist(err) && noted == 0 {
		return nil // to open it says so as well
	}
	if oserror.IsNotExist(err) {
		return refuse(s.path(f.name()), "the file is missing, and %d bytes of it were synced; %s", noted, s.remedy(f))
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", s.path(f.name()), err)
	}
	if scan.proof > 0 {
		return refuse(s.path(f.name()), "the file is damaged: it can be read up to byte %d, "+
			"and byte %d begins a part that says more was synced; %s", scan.end, scan.proof, s.remedy(f))
	}
	if scan.end < noted {
		return refuse(s.path(f.name()), "the file is damaged: it can be read up to byte %d, "+
			"and %d bytes of it were synced (%d are lost); %s", scan.end, noted, noted-scan.end, s.remedy(f))
	}
	if f.manifest {
		return s.verifyLogs(f)
	}
	return nil
}

func (s *synced) remedy(f logFile) string {
	if s.advice != "" {
		return s.advice
	}
	return fmt.Sprintf("restore the directory from a backup, or give up what is lost with "+
		"codeq doctor %s --accept-loss %s", s.FS.PathDir(s.dir), s.FS.PathJoin(databaseName, f.name()))
}

// verifyLogs refuses if a log is gone that is noted and that the version needs.
func (s *synced) verifyLogs(manifest logFile) error {
	first, err := s.firstLog(manifest)
	if err != nil {
		return err
	}
	for f := range s.found {
		if f.manifest || f.number < first {
			continue
		}
		if there, err := exists(s.FS, s.path(f.name())); err != nil {
			return err
		} else if !there {
			return s.verify(f)
		}
	}
	return nil
}

// firstLog is the number of the first log that is not in tables.
func (s *synced) firstLog(manifest logFile) (first uint64, err error) {
	f, err := s.FS.Open(s.path(manifest.name()))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	records := record.NewReader(f, 0)
	var head [64]byte
	for {
		r, err := records.Next()
		if err != nil {
			return first, nil // Pebble reads no further
		}
		n, err := io.ReadFull(r, head[:])
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return first, nil // nor behind a record that is cut short
		}
		first = max(first, firstLog(head[:n]))
	}
}

func (s *synced) scan(f logFile) (scan *chunkScan, err error) {
	file, err := s.FS.Open(s.path(f.name()))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return scanChunks(f, file)
}

// started reports whether the database has read all that it needs.
func (s *synced) started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

// watch counts a file from here on, if it is a log or a MANIFEST. The database
// makes the first one when it has read all that it needs.
func (s *synced) watch(name string, f vfs.File, err error) (vfs.File, error) {
	which, ok := s.fileOf(name)
	if err != nil || !ok {
		return f, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.began {
		s.began = true
		if err := s.begin(which); err != nil {
			s.giveUp(err)
		}
	}
	return &syncedFile{File: f, synced: s, which: which}, nil
}

// begin keeps the notes that are still good. None is left of a file that a power
// cut took back: its number is given again, perhaps to the one that is being made.
func (s *synced) begin(made logFile) error {
	keep := make(map[logFile]int64)
	for f, length := range s.found {
		there, err := exists(s.FS, s.path(f.name()))
		if err != nil {
			return err
		}
		if there && f != made {
			keep[f] = length
		}
	}
	if err := s.rewrite(keep); err != nil {
		return err
	}
	file, err := s.FS.OpenReadWrite(s.path(syncedName), vfs.WriteCategoryUnspecified)
	s.file = file
	return err
}

// rewrite replaces the notes in one step, durably.
func (s *synced) rewrite(notes map[logFile]int64) error {
	var data []byte
	for f, length := range notes {
		if length == 0 {
			continue
		}
		s.slots[f] = int64(len(data))
		data = appendNote(data, f, length)
	}
	for at := int64(len(data)); at < syncedBytes; at += noteBytes {
		s.free = append(s.free, at)
	}
	data = append(data, make([]byte, max(0, syncedBytes-len(data)))...)
	return replaceFile(s.FS, s.path(syncedName), data)
}

// note says that so much of a file is synced. It waits for no disk.
func (s *synced) note(f logFile, length int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return
	}
	slot, known := s.slots[f]
	if !known {
		slot = s.newSlot()
		s.slots[f] = slot
	}
	if _, err := s.file.WriteAt(appendNote(nil, f, length), slot); err != nil {
		s.giveUp(err)
	}
}

func (s *synced) newSlot() int64 {
	if len(s.free) == 0 {
		return int64(len(s.slots)) * noteBytes
	}
	slot := s.free[0]
	s.free = s.free[1:]
	return slot
}

// forget gives the place of a note to another one. The note may stay: no version
// needs a log or a MANIFEST that Pebble removes.
func (s *synced) forget(name string) {
	f, ok := s.fileOf(name)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot, known := s.slots[f]; known {
		delete(s.slots, f)
		s.free = append(s.free, slot)
	}
}

// giveUp stops the notes of this process. Those that are written stay true, they
// only prove less and less.
func (s *synced) giveUp(err error) {
	s.log.Error().Err(err).Msg("what is synced can no longer be noted: a damaged log may not be found out")
	s.close()
}

func (s *synced) close() {
	if s.file != nil {
		// Nothing is lost with it: each note is written before it is needed.
		_ = s.file.Close()
		s.file = nil
	}
}

// syncedFile counts what is written to a log or a MANIFEST. One goroutine at a
// time writes and syncs it.
type syncedFile struct {
	vfs.File
	synced  *synced
	which   logFile
	written int64
}

// Write implements vfs.File.
func (f *syncedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

// Sync implements vfs.File.
func (f *syncedFile) Sync() error { return f.then(f.File.Sync()) }

// SyncData implements vfs.File.
func (f *syncedFile) SyncData() error { return f.then(f.File.SyncData()) }

func (f *syncedFile) then(err error) error {
	if err == nil && f.written > 0 {
		f.synced.note(f.which, f.written)
	}
	return err
}
