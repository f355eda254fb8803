package loadtest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestBareHTTPPostsAloneAndInBatches(t *testing.T) {
	for _, batch := range []int{1, 50} {
		w := Canonical()
		w.Producers, w.Batch, w.OverHTTP = 2, batch, true
		got, err := BareHTTP(t.Context(), w, time.Millisecond)
		if err != nil || got <= 0 {
			t.Errorf("batches of %d: %f tasks/s, %v", batch, got, err)
		}
	}
}

func TestBareHTTPEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := Canonical()
	w.Producers = 2
	if got, err := BareHTTP(ctx, w, time.Hour); err != nil || got <= 0 {
		t.Fatalf("%f tasks/s, %v", got, err)
	}
}

func TestReportShowsBareHTTPOnlyWhereItWasMeasured(t *testing.T) {
	o := sampleOutcome()
	for _, measured := range []bool{false, true} {
		if measured {
			perSecond := 17234.6
			o.BareHTTPPerSecond = &perSecond
		}
		var text strings.Builder
		if err := o.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		inText := strings.Contains(text.String(), "17235 tasks/s from these producers to a handler that does nothing")
		inJSON := strings.Contains(string(line), `"bareHttpPerSecond":17234.6`)
		if inText != measured || inJSON != measured {
			t.Errorf("measured %t:\n%s%s", measured, text.String(), line)
		}
	}
}
