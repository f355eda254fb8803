package events

import (
	"strings"
	"testing"

	"codeq/shard"
	"codeq/wire"
)

// told are the numbers and texts of reports, without the number of the start.
func told(r *Reports, task wire.TaskID, after uint64) (texts []string, lost bool) {
	reports, lost := r.Read(task, after)
	for i := range reports {
		if p := reports[i].Progress; p != nil {
			texts = append(texts, p.Note)
		} else {
			texts = append(texts, reports[i].Output.Text)
		}
	}
	return texts, lost
}

func progressOf(task byte, note string) shard.Note {
	return shard.Note{AtMs: 5, TaskID: wire.TaskID{task}, Progress: &wire.TaskProgress{ProgressRequest: wire.ProgressRequest{Note: note}}}
}

func outputOf(task byte, text string) shard.Note {
	return shard.Note{AtMs: 5, TaskID: wire.TaskID{task}, Output: &wire.OutputRequest{Text: text}}
}

func TestReportsComeInOrderAndTheNewestProgressAlone(t *testing.T) {
	r := NewReports(0)
	r.Begin(1)
	r.Add(0, []shard.Note{outputOf(1, "a"), progressOf(1, "p"), outputOf(2, "x"), outputOf(1, "b"), progressOf(1, "q"), outputOf(1, "c")})
	if texts, lost := told(r, wire.TaskID{1}, 0); strings.Join(texts, " ") != "a b q c" || lost {
		t.Errorf("got %q, lost: %v", texts, lost)
	}
	if texts, _ := told(r, wire.TaskID{1}, numbersPerMs+4); strings.Join(texts, " ") != "q c" {
		t.Errorf("after the fourth there are %q", texts)
	}
	if texts, lost := told(r, wire.TaskID{9}, 0); texts != nil || lost {
		t.Errorf("a task without a report has %q, lost: %v", texts, lost)
	}
}

func TestReportsAreBoundedAndSayWhatIsGone(t *testing.T) {
	r := NewReports(8 << 20) // 1 MiB for all
	r.Begin(1)
	piece := strings.Repeat("x", wire.MaxOutputBytes)
	for range 20 {
		r.Add(0, []shard.Note{outputOf(1, piece)})
	}
	texts, lost := told(r, wire.TaskID{1}, 0)
	if len(texts) != taskReportsBytes/wire.MaxOutputBytes || !lost {
		t.Errorf("%d pieces are there, lost: %v", len(texts), lost)
	}
	if reason := r.Lost(5, 0); reason != "" {
		t.Errorf("a task that lost its own output has lost that of before its subscription: %q", reason)
	}
	for task := range byte(200) {
		r.Add(0, []shard.Note{outputOf(task+10, piece), progressOf(task+10, "p")})
	}
	if r.size > r.most || len(r.order) > 200 {
		t.Errorf("%d bytes are kept, of %d, in %d places", r.size, r.most, len(r.order))
	}
	if texts, _ := told(r, wire.TaskID{1}, 0); texts != nil {
		t.Errorf("the oldest task still has %d pieces", len(texts))
	}
	for _, c := range []struct {
		createdAtMs int64
		after       uint64
		want        string
	}{{0, 0, wire.GapRestarted}, {5, 0, wire.GapEvicted}, {6, 0, ""}, {0, numbersPerMs + 1, ""}, {0, 7, wire.GapRestarted}} {
		if got := r.Lost(c.createdAtMs, c.after); got != c.want {
			t.Errorf("a task of %d, read up to %d, has lost %q, want %q", c.createdAtMs, c.after, got, c.want)
		}
	}
	for range 100_000 { // a progress that is replaced takes no memory for ever
		r.Add(0, []shard.Note{progressOf(3, "p")})
	}
	if r.size > r.most || len(r.order) > r.most/reportBytes {
		t.Errorf("%d bytes are kept in %d places", r.size, len(r.order))
	}
}
