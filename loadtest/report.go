package loadtest

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// WriteText prints an outcome for people.
func (o *Outcome) WriteText(out io.Writer) error {
	if _, err := fmt.Fprintf(out, "%s\n\n", o.Workload.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row(o.Workload.measured()+"s/s", "%.0f", o.perSecond())
	row("enqueue", "%s", o.Enqueue)
	if !o.Workload.WorkAfter {
		row("to the worker", "%s", o.Delivery)
		row("end to end", "%s", o.EndToEnd)
	}
	if o.Verdict.Refused > 0 || o.Workload.Sheds {
		row("accepted", "%.0f tasks/s", o.AcceptedPerSecond)
		row("refused", "%.0f tasks/s; %s", o.RefusedPerSecond, o.Rejection)
	}
	o.processRows(row)
	if o.FsyncMicros != nil {
		row("one fsync", "%.0f µs, median before and after", *o.FsyncMicros)
	}
	if o.BareHTTPPerSecond != nil {
		row("bare HTTP", "%.0f tasks/s from these producers to a handler that does nothing, before and after", *o.BareHTTPPerSecond)
	}
	row("durability", "%s", o.Durability)
	row("answers", "%s", o.Verdict)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// measured is what the figures are about.
func (w *Workload) measured() string {
	if w.WorkAfter {
		return "create"
	}
	return "cycle"
}

// perSecond is how many of them there were.
func (o *Outcome) perSecond() float64 {
	if o.Workload.WorkAfter {
		return o.AcceptedPerSecond
	}
	return o.CyclesPerSecond
}

func (o *Outcome) processRows(row func(name, format string, args ...any)) {
	if o.ServerCPUMicrosPerCycle != nil {
		row("server", "%.1f µs of CPU per %s", *o.ServerCPUMicrosPerCycle, o.Workload.measured())
	}
	if o.ServerRSSMiB != nil {
		row("server memory", "%.0f MiB at most, %.0f at the start, %.0f at the end",
			*o.ServerRSSMiB, *o.StartRSSMiB, *o.EndRSSMiB)
	} else {
		row("server", "not measured: it is not a process of this bench")
	}
	if o.GeneratorCPUMicrosPerCycle != nil {
		row("generator", "%.1f µs of CPU per %s", *o.GeneratorCPUMicrosPerCycle, o.Workload.measured())
	}
}

// String is one line for people.
func (q Quantiles) String() string {
	if q.Count == 0 {
		return "none measured"
	}
	return fmt.Sprintf("p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms", q.P50, q.P99, q.P999)
}

// String is one line for people: what was found, and what was wrong.
func (v Verdict) String() string {
	line := fmt.Sprintf("%d acknowledged, %d completed", v.Created, v.Completed)
	if v.Holds() {
		return line + ": each exactly once, with its own payload"
	}
	wrongs := []struct {
		count int64
		what  string
	}{
		{v.Lost, "LOST"}, {v.Duplicated, "DUPLICATED"}, {v.Altered, "ALTERED"},
		{v.Strangers, "NEVER TAKEN ON"}, {v.Unanswered, "WITHOUT ANSWER"},
	}
	for _, w := range wrongs {
		if w.count > 0 {
			line += fmt.Sprintf(", %d %s", w.count, w.what)
		}
	}
	return line
}

// jsonQuantiles and jsonOutcome are the names of the report for programs.
type jsonQuantiles struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
}

type jsonOutcome struct {
	CyclesPerSecond             float64        `json:"cyclesPerSecond"`
	CreatesPerSecond            *float64       `json:"createsPerSecond,omitempty"`
	EnqueueMs                   jsonQuantiles  `json:"enqueueMs"`
	DeliveryMs                  jsonQuantiles  `json:"deliveryMs"`
	EndToEndMs                  jsonQuantiles  `json:"endToEndMs"`
	RefusedMs                   *jsonQuantiles `json:"refusedMs,omitempty"`
	AcceptedPerSecond           float64        `json:"acceptedPerSecond"`
	RefusedPerSecond            float64        `json:"refusedPerSecond"`
	Created                     int64          `json:"created"`
	Completed                   int64          `json:"completed"`
	Lost                        int64          `json:"lost"`
	Duplicated                  int64          `json:"duplicated"`
	Altered                     int64          `json:"altered"`
	Strangers                   int64          `json:"strangers"`
	Unanswered                  int64          `json:"unanswered"`
	Refused                     int64          `json:"refused"`
	ServerCPUMicrosPerCycle     *float64       `json:"serverCpuMicrosPerCycle"`
	GeneratorCPUMicrosPerCycle  *float64       `json:"generatorCpuMicrosPerCycle"`
	ServerCPUMicrosPerCreate    *float64       `json:"serverCpuMicrosPerCreate,omitempty"`
	GeneratorCPUMicrosPerCreate *float64       `json:"generatorCpuMicrosPerCreate,omitempty"`
	ServerRSSMiB                *float64       `json:"serverRssMiB"`
	FsyncMicros                 *float64       `json:"fsyncMicros"`
	BareHTTPPerSecond           *float64       `json:"bareHttpPerSecond,omitempty"`
	Durability                  string         `json:"durability"`
}

// MarshalJSON implements json.Marshaler: the outcome for programs. Latencies
// are milliseconds; figures that nobody measured are null.
func (o *Outcome) MarshalJSON() ([]byte, error) {
	v := &o.Verdict
	j := jsonOutcome{
		CyclesPerSecond:   rounded(o.CyclesPerSecond),
		AcceptedPerSecond: rounded(o.AcceptedPerSecond), RefusedPerSecond: rounded(o.RefusedPerSecond),
		EnqueueMs: forJSON(o.Enqueue), DeliveryMs: forJSON(o.Delivery), EndToEndMs: forJSON(o.EndToEnd),
		Created: v.Created, Completed: v.Completed, Lost: v.Lost, Duplicated: v.Duplicated,
		Altered: v.Altered, Strangers: v.Strangers, Unanswered: v.Unanswered, Refused: v.Refused,
		ServerCPUMicrosPerCycle:    roundedIfAny(o.ServerCPUMicrosPerCycle),
		GeneratorCPUMicrosPerCycle: roundedIfAny(o.GeneratorCPUMicrosPerCycle),
		ServerRSSMiB:               roundedIfAny(o.ServerRSSMiB), FsyncMicros: roundedIfAny(o.FsyncMicros),
		BareHTTPPerSecond: roundedIfAny(o.BareHTTPPerSecond),
		Durability:        o.Durability,
	}
	if o.Workload.WorkAfter {
		j.CreatesPerSecond = roundedIfAny(&o.AcceptedPerSecond)
		j.ServerCPUMicrosPerCreate, j.ServerCPUMicrosPerCycle = j.ServerCPUMicrosPerCycle, nil
		j.GeneratorCPUMicrosPerCreate, j.GeneratorCPUMicrosPerCycle = j.GeneratorCPUMicrosPerCycle, nil
	}
	if o.Rejection.Count > 0 {
		q := forJSON(o.Rejection)
		j.RefusedMs = &q
	}
	return json.Marshal(&j)
}

func forJSON(q Quantiles) jsonQuantiles { return jsonQuantiles{P50: q.P50, P99: q.P99, P999: q.P999} }

func rounded(f float64) float64 { return math.Round(f*10) / 10 }

func roundedIfAny(f *float64) *float64 {
	if f == nil {
		return nil
	}
	r := rounded(*f)
	return &r
}
