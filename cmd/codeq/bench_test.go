package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeq/wire"
)

// benchFigures is the report for programs, as far as these tests read it.
type benchFigures struct {
	CyclesPerSecond, EnqueueP50 float64
	CreatesPerSecond            *float64
	EnqueueMs, EndToEndMs       struct{ P50, P99, P999 float64 }
	Created, Completed          int64
	Lost, Duplicated            int64
	ServerCPUMicrosPerCycle     float64 `json:"serverCpuMicrosPerCycle"`
	ServerAllocsPerCycle        float64
	ServerRSSMiB                float64 `json:"serverRssMiB"`
	FsyncMicros                 float64
	BareHTTPPerSecond           float64
	Durability                  string
}

func TestBenchMeasuresItsOwnServer(t *testing.T) {
	t.Setenv(asCodeq, "1")
	t.Setenv("CODEQ_URL", "http://127.0.0.1:1") // must not be looked at
	dir := t.TempDir()
	code, out, errText := codeq("", "bench", "--json", "--seconds", "1", "--warm-up", "0.2", "--dir", dir)
	if code != exitFine {
		t.Fatalf("exit %d: %s%s", code, out, errText)
	}
	var got benchFigures
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if got.Created == 0 || got.Completed != got.Created || got.Lost != 0 || got.Duplicated != 0 || got.Durability != "fsync" {
		t.Errorf("figures %+v", got)
	}
	if got.CyclesPerSecond <= 0 || got.EnqueueMs.P50 <= 0 || got.EndToEndMs.P999 < got.EnqueueMs.P50 ||
		got.ServerCPUMicrosPerCycle <= 0 || got.ServerAllocsPerCycle <= 0 || got.ServerRSSMiB < 1 || got.FsyncMicros <= 0 {
		t.Errorf("figures %+v: something was not measured", got)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || left != nil {
		t.Errorf("it left %v, %v", left, err)
	}
}

func TestBenchOverHTTPIsComparedWithBareHTTP(t *testing.T) {
	t.Setenv(asCodeq, "1")
	code, out, errText := codeq("", "bench", "--http", "--json", "--seconds", "0.2", "--warm-up", "0", "--dir", t.TempDir())
	if code != exitFine {
		t.Fatalf("exit %d: %s%s", code, out, errText)
	}
	var got benchFigures
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if got.Created == 0 || got.Completed != got.Created || got.BareHTTPPerSecond <= 0 {
		t.Errorf("figures %+v", got)
	}
}

func TestBenchMeasuresCreatesAlone(t *testing.T) {
	for _, over := range [][]string{{"--http"}, {}} {
		t.Setenv(asCodeq, "1")
		args := append([]string{"bench", "--creates", "--json", "--seconds", "0.2", "--warm-up", "0", "--dir", t.TempDir()}, over...)
		code, out, errText := codeq("", args...)
		if code != exitFine {
			t.Fatalf("exit %d: %s%s", code, out, errText)
		}
		var got benchFigures
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if got.Created == 0 || got.Completed != got.Created || got.CreatesPerSecond == nil || got.CyclesPerSecond != 0 {
			t.Errorf("%v: figures %+v", over, got)
		}
	}
}

func TestBenchMailboxProfile(t *testing.T) {
	t.Setenv(asCodeq, "1")
	code, out, errText := codeq("", "bench", "--profile", "mailbox", "--seconds", "0.2", "--warm-up", "0",
		"--shards", "1", "--under-way", "40000", "--dir", t.TempDir())
	if code != exitFine {
		t.Fatalf("exit %d: %s%s", code, out, errText)
	}
	for _, want := range []string{"at its pace:", "more than the shards can take", "at its pace again:", "refused "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in %s", want, out)
		}
	}
}

// The picture has a point for each one that --json prints.
func TestBenchDrawsTheCurvesThatItPrints(t *testing.T) {
	t.Setenv(asCodeq, "1")
	picture := filepath.Join(t.TempDir(), "out.svg")
	code, out, errText := codeq("", "bench", "--plot", picture, "--json", "--seconds", "0.2", "--warm-up", "0", "--dir", t.TempDir())
	var got curves
	if err := json.Unmarshal([]byte(out), &got); code != exitFine || err != nil {
		t.Fatalf("exit %d: %s%s (%v)", code, out, errText, err)
	}
	svg, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine a rate may have no answer.
	if len(got.Load) == 0 || len(got.Load) > len(loads) || len(got.Backlog) != 1+backlogSteps || strings.Count(string(svg), "<circle") != 3*len(got.Load)+2*len(got.Backlog) {
		t.Fatalf("%s\n%s", out, svg)
	}
	for i, p := range got.Load {
		if p.TasksPerSecond < 1 || i > 0 && p.TasksPerSecond <= got.Load[i-1].TasksPerSecond || p.Enqueue.P50 <= 0 || p.EndToEnd.P99 < p.Enqueue.P50 {
			t.Errorf("points of load %+v", got.Load)
		}
	}
	for i, p := range got.Backlog {
		if (i == 0) != (p.Tasks == 0) || i > 0 && p.Tasks <= got.Backlog[i-1].Tasks || p.CyclesPerSecond <= 0 || p.ServerRSSMiB < 1 {
			t.Errorf("points of backlog %+v", got.Backlog)
		}
		if point := fmt.Sprintf("<title>cycles/s: %d, %.10g</title>", p.Tasks, p.CyclesPerSecond); !strings.Contains(string(svg), point) {
			t.Errorf("%s is missing in %s", point, svg)
		}
	}
}

func TestBenchRefusesWhatDoesNotGoTogether(t *testing.T) {
	for line, want := range map[string]string{
		"--window 0":          "window must be from 1 to 10000, got 0",
		"--shards 33":         "--shards must be from 1 to 32, got 33",
		"--http --pipeline 4": "waits for each answer",
		"--url http://127.0.0.1:1 --http --shards 2": "leave --shards and --dir out",
		"--times 0":                         "--times must be more than 0 and at most 100, got 0",
		"--creates --profile mailbox":       "leave --creates out",
		"--under-way 0":                     "--under-way must be from 1 to 1048576, got 0",
		"--profile other":                   "canonical",
		"--plot x --rate 5":                 "leave --rate, --creates and --profile out",
		"--plot x --creates":                "leave --rate, --creates and --profile out",
		"--plot x --profile mailbox":        "leave --rate, --creates and --profile out",
		"--url http://127.0.0.1:1 --plot x": "leave --url out",
		"--seconds 0":                       "seconds must be more than 0",
	} {
		code, out, errText := codeq("", append([]string{"bench"}, strings.Fields(line)...)...)
		if code != exitWrong || !strings.Contains(errText, want) {
			t.Errorf("%s: exit %d, %q %q, want %q", line, code, out, errText, want)
		}
	}
}

func TestBenchSaysThatNoServerIsThere(t *testing.T) {
	code, _, errText := codeq("", "bench", "--url", "http://127.0.0.1:1")
	if code != exitFailed || !strings.Contains(errText, "open session at http://127.0.0.1:1") {
		t.Errorf("exit %d, %q", code, errText)
	}
}

func TestBenchStopsWhenAsked(t *testing.T) {
	t.Setenv(asCodeq, "1")
	dir := t.TempDir()
	tt := newTerminal("")
	tt.stops <- os.Interrupt
	if code := run([]string{"bench", "--dir", dir}, tt.app); code != exitFailed {
		t.Errorf("exit %d, %s", code, tt.err.String())
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || left != nil {
		t.Errorf("it left %v, %v", left, err)
	}
}

func TestU02BenchPostsToAsManyQueuesOfEveryShard(t *testing.T) {
	homes := map[int]int{}
	for _, name := range queuesOf(8, 4) {
		homes[wire.ShardOfQueue(wire.DefaultTenant, name, 4)]++
	}
	for shard := range 4 {
		if homes[shard] != 2 {
			t.Errorf("8 queues are at home in shards %v", homes)
		}
	}
	t.Setenv(asCodeq, "1")
	code, out, errText := codeq("", "bench", "--json", "--queues", "5", "--spread", "--seconds", "0.2", "--warm-up", "0", "--dir", t.TempDir())
	var got benchFigures
	if err := json.Unmarshal([]byte(out), &got); code != exitFine || err != nil {
		t.Fatalf("exit %d: %s%s (%v)", code, out, errText, err)
	}
	if got.Created == 0 || got.Completed != got.Created {
		t.Errorf("figures %+v", got)
	}
	for _, flags := range [][]string{{"--queues", "0"}, {"--url", "127.0.0.1:1", "--queues", "2"}} {
		if code, _, errText := codeq("", append([]string{"bench"}, flags...)...); code != exitWrong || errText == "" {
			t.Errorf("%v: exit %d, %s", flags, code, errText)
		}
	}
}
