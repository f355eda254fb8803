package httpapi

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// scraped is a page as a strict reader of the text format understands it:
// values by series, labels in the order they stand in.
type scraped struct {
	values map[string]float64
	kinds  map[string]string
	labels map[string]map[string]string // by series
}

var (
	commentLine = regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
	sampleLine  = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	labelText   = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)`)
	unescape    = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)

// readPage reads a page and ends the test at whatever a strict reader would
// refuse.
func readPage(t *testing.T, text string) *scraped {
	t.Helper()
	s := &scraped{
		values: make(map[string]float64), kinds: make(map[string]string), labels: make(map[string]map[string]string),
	}
	if !strings.HasSuffix(text, "\n") {
		t.Fatal("the last line does not end")
	}
	ended := make(map[string]bool)
	family := ""
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		name := s.line(t, line)
		if name = s.familyOf(name); name == family {
			continue
		}
		if ended[name] {
			t.Fatalf("the family %s is not in one piece: %s", name, line)
		}
		ended[family] = true
		family = name
	}
	s.checkHistograms(t)
	return s
}

// line reads one line and returns the name it is about.
func (s *scraped) line(t *testing.T, line string) string {
	t.Helper()
	if strings.HasPrefix(line, "#") {
		m := commentLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("no comment of the format: %q", line)
		}
		if m[1] == "TYPE" {
			if s.kinds[m[2]] != "" {
				t.Fatalf("%s has a type twice", m[2])
			}
			s.kinds[m[2]] = m[3]
		}
		return m[2]
	}
	m := sampleLine.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("no line of the format: %q", line)
	}
	value, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	labels := make(map[string]string)
	for rest := m[2]; rest != ""; {
		l := labelText.FindStringSubmatch(rest)
		if l == nil {
			t.Fatalf("bad labels: %q", line)
		}
		if _, twice := labels[l[1]]; twice {
			t.Fatalf("a label twice: %q", line)
		}
		labels[l[1]] = unescape.Replace(l[2])
		rest = rest[len(l[0]):]
	}
	series := line[:len(line)-len(m[3])-1]
	if _, twice := s.values[series]; twice {
		t.Fatalf("the series %s comes twice", series)
	}
	s.values[series], s.labels[series] = value, labels
	return m[1]
}

// familyOf takes the parts of a histogram together.
func (s *scraped) familyOf(name string) string {
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, part); ok && s.kinds[base] == "histogram" {
			return base
		}
	}
	return name
}

// checkHistograms: buckets only grow, and the last one has everything.
func (s *scraped) checkHistograms(t *testing.T) {
	t.Helper()
	type bucket struct{ le, n float64 }
	buckets := make(map[string][]bucket)
	for series, labels := range s.labels {
		name, _, _ := strings.Cut(series, "{")
		base, isBucket := strings.CutSuffix(name, "_bucket")
		if !isBucket || s.kinds[base] != "histogram" {
			continue
		}
		le, err := strconv.ParseFloat(labels["le"], 64)
		if err != nil {
			t.Fatalf("%s: %v", series, err)
		}
		others := maps.Clone(labels)
		delete(others, "le")
		key := fmt.Sprint(base, "_count", others)
		buckets[key] = append(buckets[key], bucket{le, s.values[series]})
	}
	for series, labels := range s.labels {
		name, _, _ := strings.Cut(series, "{")
		list := buckets[fmt.Sprint(name, labels)]
		if list == nil {
			continue
		}
		delete(buckets, fmt.Sprint(name, labels))
		slices.SortFunc(list, func(a, b bucket) int { return int(math.Copysign(1, a.le-b.le)) })
		for i := range list {
			if i > 0 && list[i].n < list[i-1].n {
				t.Errorf("%s: the bucket %v has less than the one below", series, list[i].le)
			}
		}
		if last := list[len(list)-1]; !math.IsInf(last.le, 1) || last.n != s.values[series] {
			t.Errorf("%s: the last bucket is %+v of %v", series, last, s.values[series])
		}
	}
	for key := range buckets {
		t.Errorf("buckets without a count: %s", key)
	}
}
