package loadtest

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Quantiles are latencies in milliseconds. Count is how many were measured;
// with none the others mean nothing.
type Quantiles struct {
	P50, P99, P999 float64
	Count          int64
}

func quantilesOf(h *hdrhistogram.Histogram) Quantiles {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	return Quantiles{P50: at(50), P99: at(99), P999: at(99.9), Count: h.TotalCount()}
}

// Outcome is what a run found. Figures about a process are nil when nobody
// measured it.
type Outcome struct {
	Workload Workload
	Verdict  Verdict

	// A cycle is a task whose result was acknowledged; accepted tasks may still
	// wait.
	CyclesPerSecond, AcceptedPerSecond, RefusedPerSecond float64
	// Enqueue is until the answer, Rejection the same for those refused,
	// Delivery until a worker had the task, EndToEnd until its result was
	// acknowledged.
	Enqueue, Rejection, Delivery, EndToEnd Quantiles

	// With Workload.WorkAfter these are for a create: there are no cycles then.
	ServerCPUMicrosPerCycle    *float64
	GeneratorCPUMicrosPerCycle *float64
	// ServerRSSMiB is the most that was in use while it was measured,
	// StartRSSMiB and EndRSSMiB what was at both ends.
	ServerRSSMiB, StartRSSMiB, EndRSSMiB *float64
	// FsyncMicros is how long one small write to the same disk took to be
	// durable, when somebody measured it around the run.
	FsyncMicros *float64
	// BareHTTPPerSecond is how many tasks a second the same producers posted to
	// a handler that does nothing, in the same run; nil if not over HTTP.
	BareHTTPPerSecond *float64
	Durability        string

	firstRSSBytes, peakRSSBytes, lastRSSBytes int64
}

// note takes the figures of the measured time from its two ends.
func (o *Outcome) note(before, after sight) {
	seconds := after.at.Sub(before.at).Seconds()
	cycles := after.completed - before.completed
	o.CyclesPerSecond = float64(cycles) / seconds
	if o.Workload.WorkAfter {
		cycles = after.acked - before.acked
	}
	o.AcceptedPerSecond = float64(after.acked-before.acked) / seconds
	o.RefusedPerSecond = float64(after.refused-before.refused) / seconds
	if before.hasServer {
		o.ServerCPUMicrosPerCycle = perCycle(after.serverCPU-before.serverCPU, cycles)
		o.StartRSSMiB = mebibytes(o.firstRSSBytes)
		o.ServerRSSMiB = mebibytes(max(o.peakRSSBytes, o.firstRSSBytes))
		o.EndRSSMiB = mebibytes(o.lastRSSBytes)
	}
	if before.hasGenerator {
		o.GeneratorCPUMicrosPerCycle = perCycle(after.generatorCPU-before.generatorCPU, cycles)
	}
}

func perCycle(used time.Duration, cycles int64) *float64 {
	if cycles == 0 {
		return nil
	}
	micros := float64(used) / float64(time.Microsecond) / float64(cycles)
	return &micros
}

func mebibytes(n int64) *float64 {
	m := float64(n) / (1 << 20)
	return &m
}
