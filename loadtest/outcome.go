package loadtest

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Quantiles are latencies in milliseconds. Count is how many were measured;
// with none the others mean nothing.
type Quantiles struct {
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Count int64   `json:"-"`
}

func quantilesOf(h *hdrhistogram.Histogram) Quantiles {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	return Quantiles{P50: at(50), P99: at(99), P999: at(99.9), Count: h.TotalCount()}
}

// Costs are of a task that was completed, or of one that was created where creates
// alone were measured: processor time, and allocations of the server.
type Costs struct {
	ServerCPUMicrosPerCycle     *float64 `json:"serverCpuMicrosPerCycle"`
	GeneratorCPUMicrosPerCycle  *float64 `json:"generatorCpuMicrosPerCycle"`
	ServerCPUMicrosPerCreate    *float64 `json:"serverCpuMicrosPerCreate,omitempty"`
	GeneratorCPUMicrosPerCreate *float64 `json:"generatorCpuMicrosPerCreate,omitempty"`
	ServerAllocsPerCycle        *float64 `json:"serverAllocsPerCycle,omitempty"`
}

// Outcome is what a run measured, as Go and as JSON. Figures that nobody measured are
// nil; rates, times and sizes are rounded to a tenth.
type Outcome struct {
	Workload Workload `json:"-"`

	// A cycle is a task whose result was acknowledged; accepted tasks may still
	// wait. CreatesPerSecond is set where creates alone were measured.
	CyclesPerSecond   float64  `json:"cyclesPerSecond"`
	CreatesPerSecond  *float64 `json:"createsPerSecond,omitempty"`
	AcceptedPerSecond float64  `json:"acceptedPerSecond"`
	RefusedPerSecond  float64  `json:"refusedPerSecond"`

	// Enqueue is until the answer, Delivery until a worker had the task, EndToEnd
	// until its result was acknowledged, Rejection until the answer of those refused,
	// nil without any.
	Enqueue   Quantiles  `json:"enqueueMs"`
	Delivery  Quantiles  `json:"deliveryMs"`
	EndToEnd  Quantiles  `json:"endToEndMs"`
	Rejection *Quantiles `json:"refusedMs,omitempty"`

	Verdict

	Costs
	// ServerRSSMiB is the most that was in use while it was measured,
	// StartRSSMiB and EndRSSMiB what was at both ends.
	ServerRSSMiB *float64 `json:"serverRssMiB"`
	StartRSSMiB  *float64 `json:"-"`
	EndRSSMiB    *float64 `json:"-"`
	// FsyncMicros is how long one small write to the same disk took to be
	// durable, when somebody measured it around the run.
	FsyncMicros *float64 `json:"fsyncMicros"`
	// BareHTTPPerSecond is how many tasks a second the same producers posted to
	// a handler that does nothing, in the same run; nil if not over HTTP.
	BareHTTPPerSecond *float64 `json:"bareHttpPerSecond,omitempty"`
	Durability        string   `json:"durability"`
}

// note takes the figures of the measured time from its two ends.
func (o *Outcome) note(before, after reading) {
	seconds := after.at.Sub(before.at).Seconds()
	rate := func(before, after int64) float64 { return *Rounded(float64(after-before) / seconds) }
	o.CyclesPerSecond = rate(before.completed, after.completed)
	o.AcceptedPerSecond = rate(before.acked, after.acked)
	o.RefusedPerSecond = rate(before.refused, after.refused)
	tasks := after.completed - before.completed
	server, generator := &o.ServerCPUMicrosPerCycle, &o.GeneratorCPUMicrosPerCycle
	if o.Workload.WorkAfter {
		tasks = after.acked - before.acked
		o.CreatesPerSecond = Rounded(o.AcceptedPerSecond)
		server, generator = &o.ServerCPUMicrosPerCreate, &o.GeneratorCPUMicrosPerCreate
	}
	if tasks > 0 && before.hasServer {
		*server = Rounded(float64((after.serverCPU - before.serverCPU).Microseconds()) / float64(tasks))
	}
	if tasks > 0 && before.allocations > 0 {
		o.ServerAllocsPerCycle = Rounded((after.allocations - before.allocations) / float64(tasks))
	}
	if tasks > 0 && before.hasGenerator {
		*generator = Rounded(float64((after.generatorCPU - before.generatorCPU).Microseconds()) / float64(tasks))
	}
}

// Rounded is a figure of an outcome.
func Rounded(f float64) *float64 {
	r := math.Round(f*10) / 10
	return &r
}

func mebibytes(n int64) *float64 { return Rounded(float64(n) / (1 << 20)) }
