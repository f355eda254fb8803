package events

import (
	"cmp"
	"sync"

	"codeq/shard"
	"codeq/wire"
)

const (
	// reportsBytes bounds what Reports keeps, taskReportsBytes the output of one task in it.
	reportsBytes     = 64 << 20
	taskReportsBytes = 256 << 10
	// reportBytes is what a report takes beside its texts, until it is the oldest.
	reportBytes = 192
	// numbersPerMs is how many numbers a start leaves free for each millisecond since the last
	// one, so that numbers rise over restarts.
	numbersPerMs = 1000
)

// Reports keeps what workers have reported of their deliveries: the last progress and the last
// output of each task, in memory alone, the oldest of all tasks dropped first. Its methods may be
// called from any goroutine.
type Reports struct {
	mu   sync.Mutex
	most int
	size int
	// first is the number before that of the first report since the start, number that of the last.
	first, number uint64
	// sinceMs: nothing that came since then was dropped for the sake of other tasks.
	startMs, sinceMs int64
	tasks            map[wire.TaskID]*taskReports
	order            []reportPlace
}

// taskReports are the reports of a task: its output, and its newest progress.
type taskReports struct {
	output   []Report
	bytes    int
	progress *Report
	// dropped is the number of the newest output that was dropped, 0 for none.
	dropped uint64
}

type reportPlace struct {
	task   wire.TaskID
	number uint64
	atMs   int64
}

// Report is a note with a number, which is higher than those of all reports before it, of other
// starts of the server too.
type Report struct {
	Number uint64
	shard.Note
}

// Frame is the report for a subscription; nil for output, if its client does not see contents.
func (r *Report) Frame(id string, contents bool) wire.ServerFrame {
	switch {
	case r.Progress != nil && contents:
		return &wire.WatchProgress{ID: id, Number: r.Number, Task: r.TaskID, TaskProgress: *r.Progress}
	case r.Progress != nil:
		return &wire.WatchProgress{ID: id, Number: r.Number, Task: r.TaskID, TaskProgress: *r.Progress.Outline()}
	case !contents:
		return nil
	}
	text := *r.Output
	text.Stream = cmp.Or(text.Stream, wire.StreamOut)
	return &wire.WatchOutput{ID: id, Number: r.Number, Task: r.TaskID, AtMs: r.AtMs, Delivery: r.Delivery, OutputRequest: text}
}

// NewReports makes reports that keep at most 64 MiB, and at most an eighth of the memory of the
// server if that is not 0.
func NewReports(memoryBytes int64) *Reports {
	r := &Reports{most: reportsBytes, tasks: map[wire.TaskID]*taskReports{}}
	if memoryBytes > 0 {
		r.most = int(min(reportsBytes, memoryBytes/8))
	}
	return r
}

// Begin says when the server starts, Unix milliseconds, before the first report.
func (r *Reports) Begin(nowMs int64) {
	r.startMs, r.sinceMs = nowMs, nowMs
	r.first = uint64(nowMs) * numbersPerMs
	r.number = r.first
}

// Add takes the reports of a round.
func (r *Reports) Add(_ int, notes []shard.Note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range notes {
		r.add(&notes[i])
	}
}

func (r *Reports) add(n *shard.Note) {
	t := r.tasks[n.TaskID]
	if t == nil {
		t = &taskReports{}
		r.tasks[n.TaskID] = t
	}
	r.number++
	one := Report{Number: r.number, Note: *n}
	r.order = append(r.order, reportPlace{n.TaskID, one.Number, n.AtMs})
	r.size += reportBytes + textBytes(&one)
	if n.Progress != nil {
		if t.progress != nil {
			r.size -= textBytes(t.progress)
		}
		t.progress = &one
	} else {
		t.output = append(t.output, one)
		t.bytes += textBytes(&one)
		for t.bytes > taskReportsBytes {
			r.dropOutput(t)
		}
	}
	for r.size > r.most {
		r.dropOldest()
	}
}

func textBytes(r *Report) int {
	if r.Progress != nil {
		return len(r.Progress.Note) + len(r.Progress.Data)
	}
	return len(r.Output.Text)
}

// dropOutput drops the oldest output of a task.
func (r *Reports) dropOutput(t *taskReports) {
	oldest := &t.output[0]
	t.dropped = oldest.Number
	t.bytes -= textBytes(oldest)
	r.size -= textBytes(oldest)
	t.output = t.output[1:]
}

// dropOldest drops the oldest report of all, or the place of one that is gone already.
func (r *Reports) dropOldest() {
	place := r.order[0]
	r.order = r.order[1:]
	r.size -= reportBytes
	t := r.tasks[place.task]
	switch {
	case t == nil:
		return
	case t.progress != nil && t.progress.Number == place.number:
		r.size -= textBytes(t.progress)
		t.progress = nil
	case len(t.output) > 0 && t.output[0].Number == place.number:
		r.dropOutput(t)
		r.sinceMs = max(r.sinceMs, place.atMs+1)
	}
	if t.progress == nil && len(t.output) == 0 {
		delete(r.tasks, place.task)
	}
}

// Read returns the reports of a task after a number, in order, and whether output after that
// number is gone.
func (r *Reports) Read(task wire.TaskID, after uint64) (reports []Report, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tasks[task]
	if t == nil {
		return nil, false
	}
	said := t.progress == nil || t.progress.Number <= after
	for _, one := range t.output {
		if one.Number <= after {
			continue
		}
		if !said && t.progress.Number < one.Number {
			reports, said = append(reports, *t.progress), true
		}
		reports = append(reports, one)
	}
	if !said {
		reports = append(reports, *t.progress)
	}
	return reports, t.dropped > after
}

// Lost says why output before now may be gone of a task that was made at a time, Unix
// milliseconds, for a client that has read up to a number, 0 for none; "" if it is not.
func (r *Reports) Lost(createdAtMs int64, after uint64) (reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case after > r.first:
		return ""
	case createdAtMs < r.startMs:
		return wire.GapRestarted
	case createdAtMs < r.sinceMs:
		return wire.GapEvicted
	}
	return ""
}
