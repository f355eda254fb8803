package store

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/errors/oserror"
)

// AcceptLoss gives up what was synced and cannot be read any more of one log or
// MANIFEST, named as a refusal names it: the file is cut behind its last whole
// record. The logs after a log that is cut go with it, because what is in them was
// made of what is lost. It returns one sentence that says what is given up, and
// refuses a directory as Open does. It is the only way to a start over such a
// directory, and cannot be taken back.
func AcceptLoss(o Options, file string) (said string, err error) {
	s := &Store{options: withDefaults(o)}
	if err := s.mustHoldData(); err != nil {
		return "", err
	}
	if s.lock, err = lockDir(s.options.FS, s.options.Dir); err != nil {
		return "", err
	}
	defer s.release()
	if _, err := s.readManifest(); err != nil {
		return "", err
	}
	f, ok := parseLogFile(s.options.FS.PathBase(file))
	if !ok {
		return "", refuse(file, "the loss of this file cannot be accepted; name a log or a MANIFEST as the refusal does, "+
			"or restore the directory from a backup")
	}
	if s.synced, err = newSynced(s.options.FS, s.path(databaseName), s.options.Log); err != nil {
		return "", err
	}
	return s.synced.accept(f)
}

func (s *synced) accept(f logFile) (said string, err error) {
	name, noted := s.path(f.name()), s.found[f]
	scan, err := s.scan(f)
	switch {
	case oserror.IsNotExist(err) && noted == 0:
		return "", refuse(name, "there is no such file, and none is noted; name the file as the refusal does")
	case oserror.IsNotExist(err) && f.manifest:
		return "", refuse(name, "the file is missing, and without it no table is known; restore the directory from a backup")
	case oserror.IsNotExist(err):
		said = fmt.Sprintf("%s is missing: %d bytes that were synced are given up", name, noted)
	case err != nil:
		return "", fmt.Errorf("read %s: %w", name, err)
	case scan.proof == 0 && scan.end >= noted:
		return fmt.Sprintf("%s holds what was synced, and nothing is given up", name), nil
	case scan.records == 0 && f.manifest:
		return "", refuse(name, "nothing of the file can be read; restore the directory from a backup")
	default:
		if err := s.cut(f, scan.records); err != nil {
			return "", fmt.Errorf("cut %s: %w", name, err)
		}
		said = fmt.Sprintf("%s is cut at byte %d: what was synced behind it is given up (%d bytes at least)",
			name, scan.records, max(noted, scan.proof)-scan.records)
	}
	delete(s.found, f)
	if scan != nil && scan.records > 0 {
		s.found[f] = scan.records
	}
	if !f.manifest {
		later, err := s.dropAfter(f)
		if err != nil {
			return "", fmt.Errorf("give up the logs after %s: %w", name, err)
		}
		said += later
	}
	return said, s.rewrite(s.found)
}

// cut leaves the first bytes of a file.
func (s *synced) cut(f logFile, bytes int64) error {
	file, err := s.FS.Open(s.path(f.name()))
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(file, bytes))
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return replaceFile(s.FS, s.path(f.name()), data)
}

// dropAfter empties the logs after one. They stay as files, so that their numbers
// are not given again.
func (s *synced) dropAfter(f logFile) (said string, err error) {
	names, err := s.FS.List(s.dir)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		later, ok := parseLogFile(name)
		if !ok || later.manifest || later.number <= f.number {
			continue
		}
		scan, err := s.scan(later)
		if err != nil {
			return "", err
		}
		if err := replaceFile(s.FS, s.path(name), nil); err != nil {
			return "", err
		}
		said += fmt.Sprintf("; %s after it is emptied, %d bytes of it are given up", name, scan.records)
	}
	for later := range s.found {
		if !later.manifest && later.number > f.number {
			delete(s.found, later)
		}
	}
	return said, nil
}
