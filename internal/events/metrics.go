package events

import (
	"cmp"
	"slices"

	"codeq/internal/meter"
	"codeq/record"
	"codeq/wire"
)

// metricBounds are the upper bounds of every second bucket, in seconds. Times are whole
// milliseconds, so that those below 2^i ms are those up to 2^i-1 ms.
var metricBounds = func() (bounds []float64) {
	for i := 0; i < Buckets-1; i += 2 {
		bounds = append(bounds, float64(int64(1)<<i-1)/1000)
	}
	return bounds
}()

// upTo counts the times up to each of metricBounds, and all times at the end.
func (h *Histogram) upTo() (counts []uint64) {
	var n uint64
	for i, in := range h.Buckets {
		if n += in; i%2 == 0 {
			counts = append(counts, n)
		}
	}
	return append(counts, n)
}

// moves counts the events.
func (c *Counts) moves() (n uint64) {
	for _, of := range c.Moves {
		n += of
	}
	return n
}

type counted struct {
	labels []meter.Label
	Counts
}

// WriteMetrics adds the counts of the queues with the most events to a page, and the sum of
// the others under the name other. A queue of that name is always one of the others.
func (l *Log) WriteMetrics(p *meter.Page, most int, other string) {
	shown := l.most(most, other)
	p.Family("codeq_queue_transitions_total", meter.Total, "Tasks that moved, by queue and by what moved them.")
	for i := range shown {
		for cause := record.Cause(1); cause < record.Causes; cause++ {
			if n := shown[i].Moves[cause]; n > 0 {
				p.Put(float64(n), append(slices.Clone(shown[i].labels), meter.Label{Name: "cause", Value: cause.String()})...)
			}
		}
	}
	p.Family("codeq_queue_dead_letters_total", meter.Total, "Tasks that became dead letters.")
	for i := range shown {
		p.Put(float64(shown[i].Buried), shown[i].labels...)
	}
	for _, f := range []struct {
		name, help string
		of         func(c *counted) *Histogram
	}{
		{"codeq_queue_wait_seconds", "How long tasks were ready until a worker got them.", func(c *counted) *Histogram { return &c.Wait }},
		{"codeq_queue_run_seconds", "How long deliveries took, whatever their end.", func(c *counted) *Histogram { return &c.Run }},
		{"codeq_queue_total_seconds", "The time from the enqueue of a task to its end.", func(c *counted) *Histogram { return &c.Total }},
	} {
		p.Family(f.name, meter.Buckets, f.help)
		for i := range shown {
			h := f.of(&shown[i])
			p.PutBuckets(metricBounds, h.upTo(), float64(h.SumMs)/1000, shown[i].labels...)
		}
	}
}

// most are the counts of the queues with the most events, and then the sum of the others, if
// there are any.
func (l *Log) most(most int, other string) (shown []counted) {
	rest := counted{labels: queueLabels(other, other)}
	// A page has no version and no positions.
	_, _ = l.Figures(0, func(name wire.SlotName, f *Figures) {
		switch {
		case f.moves() == 0:
		case name.Slot == 0 || name.Tenant == other && name.Command == other:
			rest.join(&f.Counts)
		default:
			shown = append(shown, counted{queueLabels(name.Tenant, name.Command), f.Counts})
		}
	})
	slices.SortStableFunc(shown, func(a, b counted) int { return cmp.Compare(b.moves(), a.moves()) })
	for i := most; i < len(shown); i++ {
		rest.join(&shown[i].Counts)
	}
	shown = shown[:min(most, len(shown))]
	if rest.moves() > 0 {
		shown = append(shown, rest)
	}
	return shown
}

func queueLabels(tenant, command string) []meter.Label {
	return []meter.Label{{Name: "tenant", Value: tenant}, {Name: "command", Value: command}}
}
