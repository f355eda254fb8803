package meter

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/VictoriaMetrics/metrics"
)

// Counter only grows. Inc and Add cost one atomic addition.
type Counter = metrics.Counter

// Histogram sorts values into buckets. Update costs a mutex for a moment.
type Histogram = metrics.PrometheusHistogram

// Label is one dimension of a series. The name is an identifier; the value may
// be any text.
type Label struct{ Name, Value string }

// Set is a list of families of counters and histograms. The zero value is
// empty and ready. Several sets of one process do not know of one another.
type Set struct {
	mu       sync.Mutex
	families []*family
}

// family is every series of one name.
type family struct {
	name, help string
	kind       Kind
	series     *metrics.Set
}

// Counter makes a counter. A name or a label name that is none, and a series
// that is there already, panic: names are part of the program.
func (s *Set) Counter(name, help string, labels ...Label) *Counter {
	return s.family(name, help, kindCounter).series.NewCounter(seriesName(name, labels))
}

// Histogram makes a histogram over upper bounds, which must grow; a last bucket
// without a bound comes with it. It panics like Counter.
func (s *Set) Histogram(name, help string, bounds []float64, labels ...Label) *Histogram {
	return s.family(name, help, kindHistogram).series.NewPrometheusHistogramExt(seriesName(name, labels), bounds)
}

func (s *Set) family(name, help string, kind Kind) *family {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.families {
		if f.name != name {
			continue
		}
		if f.kind != kind || f.help != help {
			panic(fmt.Sprintf("meter: %s is a %s (%s), and now a %s (%s)", name, f.kind, f.help, kind, help))
		}
		return f
	}
	f := &family{name: name, help: help, kind: kind, series: metrics.NewSet()}
	s.families = append(s.families, f)
	return f
}

// Value is the value of a series as a page has it; 0 if there is none. It writes all series of the
// set, so nobody should call it much oftener than once a second.
func (s *Set) Value(series string) float64 {
	var text bytes.Buffer
	for _, f := range s.all() {
		f.series.WritePrometheus(&text)
	}
	for line := range strings.Lines(text.String()) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			// A series that the library wrote has a number.
			n, _ := strconv.ParseFloat(strings.TrimSuffix(value, "\n"), 64)
			return n
		}
	}
	return 0
}

func (s *Set) all() []*family {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.families[:len(s.families):len(s.families)]
}

func seriesName(name string, labels []Label) string { return string(appendSeries(nil, name, labels)) }

// Doubling is n upper bounds from the first one on, each twice the one before.
func Doubling(first float64, n int) []float64 { return metrics.ExponentialBuckets(first, 2, n) }
