package loadtest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func ptr(f float64) *float64 { return &f }

func sampleOutcome() *Outcome {
	return &Outcome{
		Workload: Canonical(), CyclesPerSecond: 43012.3, AcceptedPerSecond: 43013,
		Verdict:      Verdict{Created: 730_000, Completed: 730_000},
		Enqueue:      Quantiles{P50: 0.71, P99: 1.503, P999: 4.031, Count: 645_000},
		Delivery:     Quantiles{P50: 0.802, P99: 1.7, P999: 5, Count: 645_000},
		EndToEnd:     Quantiles{P50: 1.44, P99: 2.6, P999: 7.25, Count: 645_000},
		Costs:        Costs{ServerCPUMicrosPerCycle: ptr(25), GeneratorCPUMicrosPerCycle: ptr(10), ServerAllocsPerCycle: ptr(31.2)},
		ServerRSSMiB: ptr(101.4), StartRSSMiB: ptr(60), EndRSSMiB: ptr(99.5),
		FsyncMicros: ptr(121.7), Durability: "fsync",
	}
}

// poorOutcome is of a server somewhere else, which was too busy and lost tasks.
func poorOutcome() *Outcome {
	w := Canonical().Overload(5000, 128<<10)
	w.Batch = 10
	return &Outcome{
		Workload: w, CyclesPerSecond: 10, AcceptedPerSecond: 20, RefusedPerSecond: 3000,
		Verdict: Verdict{
			Created: 100, Completed: 98, Lost: 2, Duplicated: 3, Altered: 4, Strangers: 5, Unanswered: 6, Refused: 30_000,
		},
		Rejection: &Quantiles{P50: 0.4, P99: 0.9, P999: 1, Count: 30_000}, Durability: "fsync",
	}
}

// createsOutcome is of creates alone.
func createsOutcome() *Outcome {
	o := sampleOutcome()
	o.Workload.OverHTTP, o.Workload.WorkAfter = true, true
	o.CyclesPerSecond, o.AcceptedPerSecond, o.CreatesPerSecond = 0, 11_987.7, ptr(11_987.7)
	o.ServerCPUMicrosPerCreate, o.ServerCPUMicrosPerCycle = o.ServerCPUMicrosPerCycle, nil
	o.GeneratorCPUMicrosPerCreate, o.GeneratorCPUMicrosPerCycle = o.GeneratorCPUMicrosPerCycle, nil
	o.ServerAllocsPerCycle = nil
	o.Delivery, o.EndToEnd = Quantiles{}, Quantiles{}
	return o
}

func TestReportReadsAsItShould(t *testing.T) {
	var out strings.Builder
	for _, o := range []*Outcome{sampleOutcome(), poorOutcome(), createsOutcome()} {
		if err := o.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, line, "", "  "); err != nil {
			t.Fatal(err)
		}
		out.WriteString("\n" + pretty.String() + "\n\n")
	}
	golden(t, "report.txt", out.String())
}

func TestReportForProgramsHasItsNames(t *testing.T) {
	line, err := json.Marshal(sampleOutcome())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"cyclesPerSecond", "enqueueMs", "endToEndMs", "created", "completed", "lost", "duplicated",
		"serverCpuMicrosPerCycle", "serverAllocsPerCycle", "serverRssMiB", "fsyncMicros", "durability",
	} {
		if got[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	quantiles, ok := got["enqueueMs"].(map[string]any)
	if !ok || quantiles["p50"] != 0.71 || quantiles["p99"] != 1.503 || quantiles["p999"] != 4.031 {
		t.Errorf("enqueueMs is %v", got["enqueueMs"])
	}
}

func TestProcessFiguresAreRead(t *testing.T) {
	cpu, err := parseCPU([]byte("7 (a) b) (c) S 1 7 7 0 -1 4194304 10 0 0 0 123 45 0 0 20 0 9 0 100 1 1\n"))
	if err != nil || cpu != 1680*time.Millisecond {
		t.Errorf("processor time %v, %v; want 1.68s", cpu, err)
	}
	for _, bad := range []string{"", "7 (a) S 1", "7 (a) S 1 7 7 0 -1 4194304 10 0 0 0 x 45 0"} {
		if _, err := parseCPU([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
