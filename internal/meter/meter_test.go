package meter

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/VictoriaMetrics/metrics"
)

func TestPageHasEachFamilyOnceWithHelpAndType(t *testing.T) {
	var s Set
	ok := s.Counter("requests_total", "Requests by class.", Label{"route", "/tasks/{id}"}, Label{"class", "2xx"})
	bad := s.Counter("requests_total", "Requests by class.", Label{"route", "/tasks/{id}"}, Label{"class", "4xx"})
	took := s.Histogram("sync_seconds", "Time of a sync.", Doubling(0.5, 3), Label{"shard", "1"})
	ok.Add(3)
	bad.Inc()
	for _, v := range []float64{0.5, 0.75, 3, 7} {
		took.Update(v)
	}
	var p Page
	p.Add(&s)
	p.Family("depth", Gauge, `Back\slash and
line feed.`)
	p.Put(2, Label{"shard", "0"})
	p.Put(0.25, Label{"shard", "1"})
	p.One("free_bytes", Gauge, "Free.", 1<<40)
	p.Family("wait_seconds", Buckets, "Waits.")
	p.PutBuckets([]float64{0, 0.003}, []uint64{2, 5, 7}, 1.5, Label{"command", "a"})
	p.PutBuckets([]float64{0, 0.003}, []uint64{0, 0, 0}, 0, Label{"command", "b"})
	const want = `# HELP requests_total Requests by class.
# TYPE requests_total counter
requests_total{route="/tasks/{id}",class="2xx"} 3
requests_total{route="/tasks/{id}",class="4xx"} 1
# HELP sync_seconds Time of a sync.
# TYPE sync_seconds histogram
sync_seconds_bucket{shard="1",le="0.5"} 1
sync_seconds_bucket{shard="1",le="1"} 2
sync_seconds_bucket{shard="1",le="2"} 2
sync_seconds_bucket{shard="1",le="+Inf"} 4
sync_seconds_sum{shard="1"} 11.25
sync_seconds_count{shard="1"} 4
# HELP depth Back\\slash and\nline feed.
# TYPE depth gauge
depth{shard="0"} 2
depth{shard="1"} 0.25
# HELP free_bytes Free.
# TYPE free_bytes gauge
free_bytes 1099511627776
# HELP wait_seconds Waits.
# TYPE wait_seconds histogram
wait_seconds_bucket{command="a",le="0"} 2
wait_seconds_bucket{command="a",le="0.003"} 5
wait_seconds_bucket{command="a",le="+Inf"} 7
wait_seconds_sum{command="a"} 1.5
wait_seconds_count{command="a"} 7
wait_seconds_bucket{command="b",le="0"} 0
wait_seconds_bucket{command="b",le="0.003"} 0
wait_seconds_bucket{command="b",le="+Inf"} 0
wait_seconds_sum{command="b"} 0
wait_seconds_count{command="b"} 0
`
	if got := string(p.Text()); got != want {
		t.Errorf("page is\n%s\nwant\n%s", got, want)
	}
}

// awkwardValues would break a name, or the program, if they were not escaped.
var awkwardValues = []string{
	"", `a"b`, `a\`, `a\"`, "a\nb", `"} 1`, `a="b",c="`, "é😀", "\x00", "\xff\xfe", " ", "{", "}", ",", `\\\`,
}

func TestAnyTextCanBeALabelValue(t *testing.T) {
	var s Set
	var p Page
	p.Family("g", Gauge, "g")
	for _, value := range awkwardValues {
		s.Counter("c", "c", Label{"a", value}, Label{"b", "x"}).Inc()
		p.Put(1, Label{"a", value}, Label{"b", "x"})
	}
	p.Add(&s)
	for line := range strings.Lines(string(p.Text())) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		series, ok := strings.CutSuffix(line, " 1\n")
		if err := metrics.ValidateMetric(series); err != nil || !ok {
			t.Errorf("line %q: %v", line, err)
		}
	}
	if got := strings.Count(string(p.Text()), "\n"); got != 2*len(awkwardValues)+4 {
		t.Errorf("the page has %d lines", got)
	}
}

func FuzzLabelValue(f *testing.F) {
	for _, value := range awkwardValues {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		series := seriesName("a", []Label{{"b", value}, {"c", value}})
		if err := metrics.ValidateMetric(series); err != nil {
			t.Errorf("%q: %v", series, err)
		}
	})
}

func TestValuesAreWrittenExactly(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", -1: "-1", 1e6: "1000000", 9007199254740991: "9007199254740991", 1e300: "1e+300", 0.1: "0.1",
		math.Inf(1): "+Inf",
	} {
		if got := string(appendValue(nil, value)); got != want {
			t.Errorf("%v is written %s, want %s", value, got, want)
		}
	}
	if got := string(appendValue(nil, math.NaN())); got != "NaN" {
		t.Errorf("NaN is written %s", got)
	}
}

func TestMistakesOfTheProgramPanic(t *testing.T) {
	for name, mistake := range map[string]func(){
		"no name":          func() { new(Set).Counter("a b", "") },
		"no label name":    func() { new(Set).Counter("a", "", Label{"b c", ""}) },
		"same series":      func() { var s Set; s.Counter("a", ""); s.Counter("a", "") },
		"two kinds":        func() { var s Set; s.Counter("a", ""); s.Histogram("a", "", Doubling(1, 2), Label{"b", "c"}) },
		"two helps":        func() { var s Set; s.Counter("a", "x"); s.Counter("a", "y", Label{"b", "c"}) },
		"family with tags": func() { new(Page).Family(`a{b="c"}`, Gauge, "") },
		"family twice":     func() { var p Page; p.One("a", Gauge, "", 1); p.One("a", Gauge, "", 1) },
		"no family":        func() { new(Page).Put(1) },
		"no family any more": func() {
			var p Page
			p.One("a", Gauge, "", 1)
			p.Add(new(Set))
			p.Put(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("nothing was said")
				}
			}()
			mistake()
		})
	}
}

func TestProcessFiguresAreThere(t *testing.T) {
	var p Page
	p.AddProcess()
	for _, name := range []string{"go_goroutines ", "process_resident_memory_bytes ", "process_open_fds "} {
		if !strings.Contains("\n"+string(p.Text()), "\n"+name) {
			t.Errorf("the page has no %s", name)
		}
	}
	if strings.Contains(string(p.Text()), "GOROOT") {
		t.Error("the page names a directory of this machine")
	}
}

func TestSetIsUsedFromManyGoroutines(t *testing.T) {
	var s Set
	n := s.Counter("n_total", "n")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s.Counter("made_total", "made", Label{"by", string(rune('a' + i))}).Inc()
			for range 1000 {
				n.Inc()
			}
			var p Page
			p.Add(&s)
		})
	}
	all.Wait()
	var p Page
	p.Add(&s)
	if got := string(p.Text()); !strings.Contains(got, "n_total 8000\n") || strings.Count(got, "made_total{") != 8 {
		t.Errorf("page is\n%s", got)
	}
}

func BenchmarkCounter(b *testing.B) {
	c := new(Set).Counter("a", "a", Label{"b", "c"})
	b.ReportAllocs()
	for b.Loop() {
		c.Inc()
	}
}

func BenchmarkPut(b *testing.B) {
	var p Page
	p.Family("a", Gauge, "a")
	b.ReportAllocs()
	for b.Loop() {
		if p.text.Len() > 1<<20 {
			p.text.Reset()
		}
		p.Put(17, Label{"tenant", "acme"}, Label{"command", "resize:v2"})
	}
}
