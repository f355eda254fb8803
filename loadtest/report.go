package loadtest

import (
	"cmp"
	"fmt"
	"io"
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
	perSecond := o.CyclesPerSecond
	if o.CreatesPerSecond != nil {
		perSecond = *o.CreatesPerSecond
	}
	row(o.Workload.measured()+"s/s", "%.0f", perSecond)
	row("enqueue", "%s", o.Enqueue)
	if !o.Workload.WorkAfter {
		row("to the worker", "%s", o.Delivery)
		row("end to end", "%s", o.EndToEnd)
	}
	if o.Refused > 0 || o.Workload.Sheds {
		row("accepted", "%.0f tasks/s", o.AcceptedPerSecond)
		row("refused", "%.0f tasks/s; %s", o.RefusedPerSecond, cmp.Or(o.Rejection, &Quantiles{}))
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

func (o *Outcome) processRows(row func(name, format string, args ...any)) {
	if cpu := cmp.Or(o.ServerCPUMicrosPerCycle, o.ServerCPUMicrosPerCreate); cpu != nil {
		row("server", "%.1f µs of CPU per %s", *cpu, o.Workload.measured())
	}
	if o.ServerAllocsPerCycle != nil {
		row("allocations", "%.1f of the server per %s", *o.ServerAllocsPerCycle, o.Workload.measured())
	}
	if o.ServerRSSMiB != nil {
		row("server memory", "%.0f MiB at most, %.0f at the start, %.0f at the end",
			*o.ServerRSSMiB, *o.StartRSSMiB, *o.EndRSSMiB)
	} else {
		row("server", "not measured: it is not a process of this bench")
	}
	if cpu := cmp.Or(o.GeneratorCPUMicrosPerCycle, o.GeneratorCPUMicrosPerCreate); cpu != nil {
		row("generator", "%.1f µs of CPU per %s", *cpu, o.Workload.measured())
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
		{v.Strangers, "NEVER ACCEPTED"}, {v.Unanswered, "WITHOUT ANSWER"},
	}
	for _, w := range wrongs {
		if w.count > 0 {
			line += fmt.Sprintf(", %d %s", w.count, w.what)
		}
	}
	return line
}
