package shard

import (
	"codeq/lease"
	"codeq/wire"
)

// A worker reports how far a delivery is, or what the program of it prints. Nothing moves, so
// there is no event. The progress is kept with the lease, and goes to the record at the end of
// the delivery; of the output the shard keeps only that there was one.

// saveProgressForMs is the least time between two writes of a lease because of reports.
const saveProgressForMs = 1000

// Note is a report that a shard has taken, for whoever watches the task.
type Note struct {
	AtMs     int64
	TaskID   wire.TaskID
	Delivery int
	// Progress or Output is nil.
	Progress *wire.TaskProgress
	Output   *wire.OutputRequest
}

// report takes what a worker says of its delivery, the newest progress in place of all before.
func (s *Shard) report(m *Report) {
	e := s.deliveryOrRefuse(&m.Holder)
	if e == nil {
		return
	}
	s.confirm(e)
	note := Note{AtMs: s.now, TaskID: m.TaskID, Delivery: e.Lease.Delivery, Output: m.Output}
	if m.Progress != nil {
		note.Progress = &wire.TaskProgress{ProgressRequest: *m.Progress, AtMs: s.now, Delivery: e.Lease.Delivery}
		e.Lease.Progress = string(wire.AppendProgress(nil, note.Progress))
	}
	if m.Progress != nil || !e.Lease.Printed {
		e.Lease.Printed = e.Lease.Printed || m.Output != nil
		s.saveReport(e)
	}
	s.out.Notes = append(s.out.Notes, note)
	s.tell(m.Sink, &Reported{Ref: m.Ref})
}

// saveReport writes the lease of a delivery: now, or a second from now if its last report was
// written less than a second ago.
func (s *Shard) saveReport(e *lease.Entry) {
	switch {
	case e.SaveAtMs != 0: // it waits already
	case e.SavedAtMs == 0 || s.now >= e.SavedAtMs+saveProgressForMs:
		s.saveLease(e)
	default:
		e.SaveAtMs = s.now + saveProgressForMs
		s.unsavedReports = append(s.unsavedReports, e)
	}
}

func (s *Shard) saveLease(e *lease.Entry) {
	e.SavedAtMs, e.SaveAtMs, e.PutAgain = s.now, 0, true
	s.span.Batch().PutLease(e.Task.Queue(), e.Task.ID, &e.Lease)
}

// saveReports writes the leases that have waited for their time, as far as the batch has room.
func (s *Shard) saveReports() {
	n := 0
	for ; n < len(s.unsavedReports) && s.unsavedReports[n].SaveAtMs <= s.now && s.span.Batch().Bytes() < s.limits.BatchBytes; n++ {
		if e := s.unsavedReports[n]; s.leases.Get(e.Task.ID) == e {
			s.saveLease(e)
		}
	}
	rest := copy(s.unsavedReports, s.unsavedReports[n:])
	clear(s.unsavedReports[rest:])
	s.unsavedReports = s.unsavedReports[:rest]
}

// nextSaveMs is when saveReports is due, 0 for never.
func (s *Shard) nextSaveMs() int64 {
	if len(s.unsavedReports) == 0 {
		return 0
	}
	return s.unsavedReports[0].SaveAtMs
}
