package loadtest

import (
	"encoding/json"
	"testing"
)

func TestComparisonIsOfWhatWasFinishedAtItsPace(t *testing.T) {
	before := &Outcome{CyclesPerSecond: 1200, Enqueue: Quantiles{P50: 1, P99: 8}}
	after := &Outcome{CyclesPerSecond: 800, Enqueue: Quantiles{P50: 3, P99: 12}}
	over := &Outcome{
		Workload: Workload{RatePerSecond: 2000}, AcceptedPerSecond: 900, CyclesPerSecond: 850,
		Enqueue: Quantiles{P50: 3, P99: 12},
	}
	c := Compare(over, before, after)
	const line = "offered 200 %, accepted 90 %, finished 85 %; accepted in 1.5 times the p50 and 1.2 times the p99"
	if c.String() != line {
		t.Errorf("got %q, want %q", c, line)
	}
	text, err := json.Marshal(c)
	if want := `{"offered":2,"accepted":0.9,"cycles":0.85,"acceptedP50":1.5,"acceptedP99":1.2}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}

func TestWhatCannotBeComparedIsNull(t *testing.T) {
	text, err := json.Marshal(Compare(&Outcome{AcceptedPerSecond: 1}, &Outcome{}))
	if want := `{"offered":null,"accepted":null,"cycles":null,"acceptedP50":null,"acceptedP99":null}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}
