package meter

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/VictoriaMetrics/metrics"
)

// Kind says how the values of a family are to be read.
type Kind string

// The kinds of values that a Page takes one by one.
const (
	Gauge Kind = "gauge"
	// Total is a counter whose value somebody else keeps.
	Total Kind = "counter"

	// Buckets is a histogram that somebody else keeps; see PutBuckets.
	Buckets Kind = "histogram"

	kindCounter   = Total
	kindHistogram = Buckets
)

// ContentType is the media type of a page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Page is the text of one scrape. The zero value is empty and ready.
type Page struct {
	text bytes.Buffer
	// name is the family that values belong to, begun has all of them.
	name  string
	begun map[string]bool
}

// Family begins a family; the values that follow are its. A name that is none,
// or that the page has already, panics.
func (p *Page) Family(name string, kind Kind, help string) {
	if err := metrics.ValidateMetric(name); err != nil || strings.ContainsRune(name, '{') {
		panic(fmt.Sprintf("meter: a family cannot be named %q", name))
	}
	if p.begun[name] {
		panic("meter: the page has the family " + name + " already")
	}
	if p.begun == nil {
		p.begun = make(map[string]bool)
	}
	p.begun[name] = true
	p.name = name
	fmt.Fprintf(&p.text, "# HELP %s %s\n# TYPE %s %s\n", name, escapeHelp.Replace(help), name, kind)
}

// Put adds a value to the family that was begun last. Two values with the same
// labels make a page that no reader takes.
func (p *Page) Put(value float64, labels ...Label) {
	if p.name == "" {
		panic("meter: a value without a family")
	}
	line := appendSeries(p.text.AvailableBuffer(), p.name, labels)
	line = appendValue(append(line, ' '), value)
	p.text.Write(append(line, '\n'))
}

// PutBuckets adds a histogram to the family that was begun last: how many values are at
// most each of bounds, then how many there are, and their sum.
func (p *Page) PutBuckets(bounds []float64, counts []uint64, sum float64, labels ...Label) {
	family := p.name
	p.name = family + "_bucket"
	for i, n := range counts {
		bound := "+Inf"
		if i < len(bounds) {
			bound = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
		p.Put(float64(n), append(slices.Clone(labels), Label{Name: "le", Value: bound})...)
	}
	p.name = family + "_sum"
	p.Put(sum, labels...)
	p.name = family + "_count"
	p.Put(float64(counts[len(counts)-1]), labels...)
	p.name = family
}

// OneIf is the value of a gauge that says yes or no.
func OneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// One is a family of one value without labels.
func (p *Page) One(name string, kind Kind, help string, value float64) {
	p.Family(name, kind, help)
	p.Put(value)
}

// Add writes everything a set holds.
func (p *Page) Add(s *Set) {
	for _, f := range s.all() {
		p.Family(f.name, f.kind, f.help)
		f.series.WritePrometheus(&p.text)
	}
	p.name = ""
}

// AddProcess writes the figures of this process and of the Go runtime, as
// everybody names them. It stops the program for some microseconds and reads
// files of the system. What names a directory of the machine is left out.
func (p *Page) AddProcess() {
	var all bytes.Buffer
	metrics.WriteProcessMetrics(&all)
	metrics.WriteFDMetrics(&all)
	for line := range bytes.Lines(all.Bytes()) {
		if !bytes.HasPrefix(line, []byte("go_info_ext{")) {
			p.text.Write(line)
		}
	}
	p.name = ""
}

// Text is what was written so far. It is valid until the page grows.
func (p *Page) Text() []byte { return p.text.Bytes() }

// appendSeries appends the name of a series. Only quotes, backslashes and line
// feeds mean something in a label value; what is not UTF-8 becomes U+FFFD.
func appendSeries(dst []byte, name string, labels []Label) []byte {
	dst = append(dst, name...)
	if len(labels) == 0 {
		return dst
	}
	for i, l := range labels {
		lead := byte(',')
		if i == 0 {
			lead = '{'
		}
		dst = append(append(dst, lead), l.Name...)
		dst = append(dst, `="`...)
		dst = append(dst, escapeLabel.Replace(strings.ToValidUTF8(l.Value, "\ufffd"))...)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

var (
	escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// appendValue writes whole numbers without an exponent as long as a float holds
// them exactly.
func appendValue(dst []byte, value float64) []byte {
	if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
		return strconv.AppendInt(dst, int64(value), 10)
	}
	return strconv.AppendFloat(dst, value, 'g', -1, 64)
}
