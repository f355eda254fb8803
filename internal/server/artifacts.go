package server

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"codeq/internal/artifact"
	"codeq/store"
	"codeq/wire"
)

// Artifacts are where the files of tasks are.
type Artifacts struct {
	// Dir is their directory; empty is one in DataDir. With S3 they are in that part of a bucket
	// instead, see artifact.OpenS3. MaxBytes bounds one file; 0 is 5 GiB.
	Dir, S3  string
	MaxBytes int64
	// Shared: all nodes of a cluster have the directory.
	Shared bool
	// Redirect sends requests for files on to S3.
	Redirect bool
	// S3Keys are the credentials for S3.
	S3Keys S3Keys
}

// S3Keys are credentials for a storage.
type S3Keys struct{ Access, Secret, Session string }

const defaultArtifactBytes = 5 << 30

// artifacts keep the files of tasks. lock holds their directory against other servers.
type artifacts struct {
	*artifact.Keeper
	lock io.Closer
}

// openArtifacts makes the keeper of files, which gets the events of the engine before the callbacks
// do. The files lie below the id of the database: those of another one are none of its business.
func (s *Server) openArtifacts() error {
	driver, err := s.openDriver()
	if err != nil {
		return err
	}
	o := artifact.Options{
		Driver: driver, Next: s.callbacks, Known: s.knownFiles, MaxBytes: cmp.Or(s.o.Artifacts.MaxBytes, defaultArtifactBytes), Log: s.o.Log,
	}
	if s.o.Artifacts.Redirect {
		o.Links, _ = driver.(artifact.Linker) // a directory has none
	}
	s.artifacts.Keeper = artifact.New(o)
	return nil
}

func (s *Server) openDriver() (artifact.Driver, error) {
	if at := s.o.Artifacts.S3; at != "" {
		driver, err := artifact.OpenS3(at, s.store.CreationID(), artifact.Keys(s.o.Artifacts.S3Keys))
		if err != nil {
			return nil, fmt.Errorf("storage of artifacts %s: %w", at, err)
		}
		return driver, nil
	}
	if s.lead != nil && !s.o.Artifacts.Shared {
		return nowhere{}, nil
	}
	fs := s.o.FS
	if fs == nil {
		fs = vfs.Default
	}
	path := s.o.Artifacts.Dir
	if path == "" {
		path = fs.PathJoin(s.o.DataDir, "artifacts")
	} else if s.lead == nil {
		if err := s.lockArtifacts(fs, path); err != nil {
			return nil, err
		}
	}
	return artifact.OpenDir(fs, fs.PathJoin(path, s.store.CreationID()), 2*s.store.Guard().ReserveBytes())
}

// nowhere is the driver of a cluster without S3: what lies on the disk of one node is missing when
// another one leads.
type nowhere struct{}

var noPlaceForFiles = wire.Refuse(wire.CodeStorageFull, "the nodes of a cluster keep artifacts in S3 or in a directory that all of them have, and this one was started without --artifacts-s3 and --artifacts-shared")

// Put implements artifact.Driver.
func (nowhere) Put(artifact.Key, io.Reader) error { return noPlaceForFiles }

// Open implements artifact.Driver.
func (nowhere) Open(artifact.Key) (io.ReadSeekCloser, error) { return nil, artifact.ErrGone }

// Files implements artifact.Driver.
func (nowhere) Files(wire.TaskID) ([]string, error) { return nil, nil }

// Remove implements artifact.Driver.
func (nowhere) Remove(artifact.Key) error { return nil }

// Forget implements artifact.Driver.
func (nowhere) Forget(wire.TaskID) error { return nil }

// Tasks implements artifact.Driver.
func (nowhere) Tasks(func(wire.TaskID) bool) error { return nil }

func (s *Server) lockArtifacts(fs vfs.FS, path string) (err error) {
	if err = fs.MkdirAll(path, 0o700); err == nil {
		s.artifacts.lock, err = fs.Lock(fs.PathJoin(path, "LOCK"))
	}
	if err != nil {
		return fmt.Errorf("directory of artifacts %s: %w; each server needs one of its own", path, err)
	}
	return nil
}

// knownFiles reads which files of a task are of use, and waits until that is on disk: a file is
// deleted only when nothing can bring back what named it.
func (s *Server) knownFiles(id wire.TaskID) (store.TaskFiles, error) {
	known, err := s.store.ReadFiles(id)
	if err == nil {
		err = s.store.WaitDurable(context.Background(), s.engine.ShardOf(id))
	}
	return known, err
}

func (a *artifacts) close() error {
	if a.Keeper != nil {
		a.Keeper.Stop()
	}
	if a.lock == nil {
		return nil
	}
	return a.lock.Close()
}
