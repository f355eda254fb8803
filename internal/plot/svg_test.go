package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// element is one of the picture, with what stands in it.
type element struct {
	name, text string
	attributes map[string]string
}

// elements reads a picture, which must be well-formed.
func elements(t interface{ Fatalf(string, ...any) }, picture []byte) (all []*element) {
	d := xml.NewDecoder(strings.NewReader(string(picture)))
	var open []*element
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("the picture is not well-formed: %v\n%s", err, picture)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attributes: map[string]string{}}
			for _, a := range token.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			all, open = append(all, e), append(open, e)
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].text += string(token)
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

func (e *element) pixel(t interface{ Fatalf(string, ...any) }, name string) float64 {
	f, err := strconv.ParseFloat(e.attributes[name], 64)
	if err != nil {
		t.Fatalf("%s of %v: %v", name, e, err)
	}
	return f
}

// ruler is what a reader sees of an axis: the first and the last number beside it.
type ruler struct{ value, pixel [2]float64 }

// rulerOf takes the numbers of class x or y.
func rulerOf(t interface{ Fatalf(string, ...any) }, all []*element, class string) (r ruler) {
	seen := 0
	for _, e := range all {
		if e.attributes["class"] != class {
			continue
		}
		digits := strings.TrimRight(e.text, "kM")
		value, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			t.Fatalf("%q beside the axis: %v", e.text, err)
		}
		value *= map[string]float64{"": 1, "k": 1e3, "M": 1e6}[strings.TrimPrefix(e.text, digits)]
		at := min(seen, 1)
		r.value[at], r.pixel[at] = value, e.pixel(t, class)
		seen++
	}
	if seen < 2 {
		t.Fatalf("%d numbers beside axis %s", seen, class)
	}
	return r
}

// read is the value that a reader sees at a pixel.
func (r ruler) read(pixel float64, log bool) float64 {
	part := (pixel - r.pixel[0]) / (r.pixel[1] - r.pixel[0])
	if log {
		return r.value[0] * math.Pow(r.value[1]/r.value[0], part)
	}
	return r.value[0] + part*(r.value[1]-r.value[0])
}

// TestPointsStandWhereTheNumbersAre reads each point against the numbers beside both
// axes, as a person would with a ruler.
func TestPointsStandWhereTheNumbersAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := math.Pow(10, rapid.Float64Range(-2, 8).Draw(t, "size"))
		value := rapid.Float64Range(size/1e3, size)
		c := Chart{Title: "a", X: "b", Y: "c", Log: rapid.Bool().Draw(t, "log")}
		var want []Point
		for range rapid.IntRange(1, 3).Draw(t, "lines") {
			points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Point {
				return Point{value.Draw(t, "x"), value.Draw(t, "y")}
			}), 1, 5).Draw(t, "points")
			c.Lines, want = append(c.Lines, Line{"d", points}), append(want, points...)
		}
		all := elements(t, SVG(c))
		x, y := rulerOf(t, all, "x"), rulerOf(t, all, "y")
		yPixel := 4.0 // a number stands that much below its line
		n := 0
		for _, e := range all {
			if e.name != "circle" {
				continue
			}
			cx, cy := e.pixel(t, "cx"), e.pixel(t, "cy")
			if cx < left-0.1 || cx > width-right+0.1 || cy < top-0.1 || cy > height-below+0.1 {
				t.Fatalf("a point at %v, %v is outside", cx, cy)
			}
			gotX, gotY := x.read(cx, false), y.read(cy+yPixel, c.Log)
			if !near(gotX, want[n].X, x) || !c.Log && !near(gotY, want[n].Y, y) || c.Log && math.Abs(math.Log10(gotY/want[n].Y)) > 0.05 {
				t.Fatalf("point %d reads as %v, %v, want %v", n, gotX, gotY, want[n])
			}
			n++
		}
		if n != len(want) {
			t.Fatalf("%d points are drawn, want %d", n, len(want))
		}
	})
}

// near allows two tenths of a pixel.
func near(got, want float64, r ruler) bool {
	return math.Abs(got-want) <= 0.2*math.Abs((r.value[1]-r.value[0])/(r.pixel[1]-r.pixel[0]))
}

// TestWhatHasNoPlaceIsLeftOut draws a time of 0 beside powers of ten, which is what nobody has
// measured, and other figures that no axis has.
func TestWhatHasNoPlaceIsLeftOut(t *testing.T) {
	wrong := []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 1e-300}
	for _, log := range []bool{true, false} {
		for _, v := range wrong {
			c := Chart{Log: log, Lines: []Line{{"a", []Point{{1, v}, {2, 5}, {v, 5}}}}}
			want := 1
			if v == 0 || v == 1e-300 {
				want = 2 // the axis of x begins at 0
				if !log {
					want = 3
				}
			}
			n := 0
			for _, e := range elements(t, SVG(c)) {
				if e.name == "circle" {
					n++
				}
			}
			if n != want {
				t.Errorf("%v, log %v: %d points are drawn, want %d", v, log, n, want)
			}
		}
	}
}

func TestTextIsEscapedAndAxesHaveTheirNames(t *testing.T) {
	picture := SVG(Chart{Title: "a < b & c", X: "tasks", Y: "ms"}, Chart{Title: "2", Lines: []Line{{`"q"`, nil}, {"r", []Point{{0, 0}}}}})
	var texts []string
	charts := 0
	for _, e := range elements(t, picture) {
		texts = append(texts, e.text)
		if e.name == "g" {
			charts++
		}
	}
	joined := strings.Join(texts, "\n")
	for _, want := range []string{"a < b & c", "tasks", "ms", `"q"`} {
		if !strings.Contains(joined, want) {
			t.Errorf("%q is missing in %s", want, picture)
		}
	}
	if charts != 2 || !strings.Contains(joined, "prefers-color-scheme:dark") {
		t.Errorf("%d charts in %s", charts, picture)
	}
}

func TestNumbersBesideAnAxisAreShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.1: "0.1", 250: "250", 5000: "5000", 10_000: "10k", 250_000: "250k", 1e6: "1M", 1.5e6: "1.5M"} {
		if got := short(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}
