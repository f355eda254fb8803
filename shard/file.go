package shard

import (
	"fmt"

	"codeq/lease"
	"codeq/record"
	"codeq/wire"
)

// The files that workers upload lie outside the store; the shard knows their numbers and names. A
// number is stored before its file is made, a name after the file is on disk. So whatever a crash
// leaves behind belongs to a task that tells of it: when that ends or is removed, its event says
// that it has had files, and whoever keeps them deletes those that its result does not name.

// upload gives numbers to new files of a delivery, or lists one that is on disk.
func (s *Shard) upload(m *Upload) {
	e := s.deliveryOrRefuse(&m.Holder)
	if e == nil {
		return
	}
	s.confirm(e)
	files, answer := &e.Lease.Files, &Uploaded{Ref: m.Ref, Delivery: e.Lease.Delivery, First: e.Lease.Files.Begun + 1}
	files.Begun += m.Begin
	if a := m.Artifact; a != nil {
		var refusal *wire.Error
		a.URL = s.artifactURL(m.TaskID, a)
		if answer.Replaced, refusal = s.listFile(e, a); refusal != nil {
			s.tell(m.Sink, &Refused{Ref: m.Ref, TaskID: m.TaskID, Err: refusal})
			return
		}
	}
	e.PutAgain = true
	s.span.Batch().PutLease(e.Task.Queue(), e.Task.ID, &e.Lease)
	answer.Artifact = m.Artifact
	s.tell(m.Sink, answer)
}

// listFile lists a file, in place of one of the same name, which it returns.
func (s *Shard) listFile(e *lease.Entry, a *wire.Artifact) (replaced string, refusal *wire.Error) {
	files := &e.Lease.Files
	list := wire.ReadArtifacts(files.Listed)
	if had := artifactOf(list, a.Name); had != nil {
		replaced, *had = had.File, *a
	} else if len(list) == wire.MaxArtifacts {
		return "", wire.Refuse(wire.CodeInvalidArgument, fmt.Sprintf("a task has at most %d artifacts", wire.MaxArtifacts))
	} else {
		list = append(list, *a)
	}
	files.Listed = string(wire.AppendArtifacts(nil, list))
	s.countFiles(s.queueOf(e.Task.Queue()), files, sizeOf(list))
	return replaced, nil
}

// sizeOf is how many bytes the files among artifacts have.
func sizeOf(list []wire.Artifact) (bytes int64) {
	for i := range list {
		if list[i].File != "" {
			bytes += list[i].SizeBytes
		}
	}
	return bytes
}

// keepFiles counts the files that a task has after a move: those that its result names, or those
// that a late one may yet name. The next delivery begins without any.
func (s *Shard) keepFiles(q *queue, t *record.Task, m *move) {
	if t.Files.Begun == 0 {
		return
	}
	bytes := int64(0)
	switch {
	case m.to == removed, m.to == wire.LocationInProgress:
	case m.result != nil:
		bytes = sizeOf(m.result.Artifacts)
	default:
		bytes = sizeOf(wire.ReadArtifacts(t.Files.Listed))
	}
	s.countFiles(q, &t.Files, bytes)
}

// countFiles counts that a task has so many bytes of files now.
func (s *Shard) countFiles(q *queue, f *record.Files, bytes int64) {
	if more := bytes - f.Bytes; more != 0 {
		f.Bytes = bytes
		q.index.AddFileBytes(more)
		s.addFiles(q, more)
	}
}

// addFiles tells the door of the tenant of a queue of files, or with a minus of those that are gone.
func (s *Shard) addFiles(q *queue, bytes int64) {
	t := q.tenant
	if bytes == 0 || q.system {
		return
	}
	t.fileBytes += bytes
	switch {
	case t.backlog == nil:
	case bytes > 0:
		t.backlog.HoldFiles(bytes)
	default:
		s.frees(t)
		t.freed.FileBytes -= bytes
	}
}

func artifactOf(list []wire.Artifact, name string) *wire.Artifact {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// filesOf are the artifacts of a result as they are kept: a file that the worker only names is the
// one that it has uploaded in this delivery.
func (s *Shard) filesOf(m *Result, t *record.Task, e *lease.Entry) ([]wire.Artifact, *wire.Error) {
	if len(m.Artifacts) == 0 {
		return nil, nil
	}
	listed := t.Files.Listed
	if e != nil {
		listed = e.Lease.Files.Listed
	}
	uploaded := wire.ReadArtifacts(listed)
	artifacts := make([]wire.Artifact, 0, len(m.Artifacts))
	for i, a := range m.Artifacts {
		if a.URL == "" && a.File == "" {
			known := artifactOf(uploaded, a.Name)
			if known == nil {
				return nil, wire.Refuse(wire.CodeInvalidResult, fmt.Sprintf(
					"artifacts[%d].name names no file that was uploaded in this delivery; PUT it first, or give url or contentBase64", i))
			}
			a = *known
		}
		if a.URL == "" {
			a.URL = s.artifactURL(t.ID, &a)
		}
		artifacts = append(artifacts, a)
	}
	return artifacts, nil
}

// artifactURL is where a client gets a file of a task.
func (s *Shard) artifactURL(id wire.TaskID, a *wire.Artifact) string {
	return s.publicURL + wire.ArtifactPath(id, a.Name)
}
