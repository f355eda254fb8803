package loadtest

import (
	"encoding/json"
	"fmt"
	"math"
)

// Comparison is what a load over what fits does to a server, against the same
// server at its pace. Ratios are NaN where there is nothing to compare with.
type Comparison struct {
	// Offered is how much of what was finished at its pace was offered, Accepted
	// and Cycles how much of it was taken on and finished: 1 is the same.
	Offered, Accepted, Cycles float64
	// AcceptedP50 and AcceptedP99 are how many times as long the answer to a task
	// that was taken on took.
	AcceptedP50, AcceptedP99 float64
}

// Compare holds the outcome of a load over what fits against those at its pace,
// before it and after: a server whose database has grown has more to do, and the
// machine has its moods. What they were on average is what it is held against.
func Compare(over *Outcome, paces ...*Outcome) Comparison {
	average := func(figure func(*Outcome) float64) float64 {
		sum := 0.0
		for _, pace := range paces {
			sum += figure(pace)
		}
		return sum / float64(len(paces))
	}
	cycles := average(func(o *Outcome) float64 { return o.CyclesPerSecond })
	return Comparison{
		Offered:     ratio(over.Workload.RatePerSecond, cycles),
		Accepted:    ratio(over.AcceptedPerSecond, cycles),
		Cycles:      ratio(over.CyclesPerSecond, cycles),
		AcceptedP50: ratio(over.Enqueue.P50, average(func(o *Outcome) float64 { return o.Enqueue.P50 })),
		AcceptedP99: ratio(over.Enqueue.P99, average(func(o *Outcome) float64 { return o.Enqueue.P99 })),
	}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// String is one line for people.
func (c Comparison) String() string {
	return fmt.Sprintf("offered %.0f %%, accepted %.0f %%, finished %.0f %%; accepted in %.1f times the p50 and %.1f times the p99",
		100*c.Offered, 100*c.Accepted, 100*c.Cycles, c.AcceptedP50, c.AcceptedP99)
}

// MarshalJSON implements json.Marshaler: what cannot be compared is null.
func (c Comparison) MarshalJSON() ([]byte, error) {
	known := func(f float64) *float64 {
		if math.IsNaN(f) {
			return nil
		}
		f = math.Round(f*1000) / 1000
		return &f
	}
	return json.Marshal(struct {
		Offered     *float64 `json:"offered"`
		Accepted    *float64 `json:"accepted"`
		Cycles      *float64 `json:"cycles"`
		AcceptedP50 *float64 `json:"acceptedP50"`
		AcceptedP99 *float64 `json:"acceptedP99"`
	}{known(c.Offered), known(c.Accepted), known(c.Cycles), known(c.AcceptedP50), known(c.AcceptedP99)})
}
