package plot

import (
	"bytes"
	"fmt"
	"html"
)

// Chart is one picture of lines over a common horizontal axis. X and Y name the axes
// with their units.
type Chart struct {
	Title, X, Y string
	// Log draws the vertical axis by powers of ten.
	Log   bool
	Lines []Line
}

// Line is drawn through its points in their order.
type Line struct {
	Name   string
	Points []Point
}

// Point is what was measured. It is left out if a value is below 0 or no number, or is 0 beside
// powers of ten.
type Point struct{ X, Y float64 }

// Sizes in pixels: of a chart, and of what is around its lines.
const (
	width, height           = 360, 270
	left, right, top, below = 58, 16, 40, 50
)

const style = `<style>
text{font:11px system-ui,sans-serif;fill:#57606a}
.title{font-size:13px;font-weight:600;fill:#1f2328}
.page{fill:#fff}
.grid{stroke:#d8dee4}
.line{fill:none;stroke-width:2}
.c0{stroke:#0969da;fill:#0969da}
.c1{stroke:#bc4c00;fill:#bc4c00}
.c2{stroke:#1a7f37;fill:#1a7f37}
text.c0,text.c1,text.c2{stroke:none}
@media (prefers-color-scheme:dark){
text{fill:#9198a1}
.title{fill:#f0f6fc}
.page{fill:#0d1117}
.grid{stroke:#30363d}
.c0{stroke:#4493f8;fill:#4493f8}
.c1{stroke:#f0883e;fill:#f0883e}
.c2{stroke:#3fb950;fill:#3fb950}
}
.line{fill:none}
</style>
`

// colours is how many the style has.
const colours = 3

// SVG draws charts side by side.
func SVG(charts ...Chart) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d">`+"\n",
		width*len(charts), height)
	b.WriteString(style)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", width*len(charts), height)
	for i := range charts {
		fmt.Fprintf(&b, `<g transform="translate(%d)">`+"\n", i*width)
		charts[i].draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (c *Chart) draw(b *bytes.Buffer) {
	var xs, ys []float64
	lines := make([]Line, len(c.Lines))
	for i, l := range c.Lines {
		lines[i].Name = l.Name
		for _, p := range l.Points {
			if c.hasPlace(p) {
				lines[i].Points = append(lines[i].Points, p)
				xs, ys = append(xs, p.X), append(ys, p.Y)
			}
		}
	}
	x := linear(xs, left, width-right)
	y := linear(ys, height-below, top)
	if c.Log {
		y = powers(ys, height-below, top)
	}
	text := func(class, anchor string, x, y float64, said string) {
		fmt.Fprintf(b, `<text%s text-anchor="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, anchor, x, y, html.EscapeString(said))
	}
	text(` class="title"`, "start", 12, 18, c.Title)
	text("", "start", 12, 33, c.Y)
	text("", "end", width-right, height-14, c.X)
	for _, at := range y.ticks {
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fH%d"/>`+"\n", left, y.at(at), width-right)
		text(` class="y"`, "end", left-6, y.at(at)+4, short(at))
	}
	for _, at := range x.ticks {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %dv4"/>`+"\n", x.at(at), height-below)
		text(` class="x"`, "middle", x.at(at), height-below+16, short(at))
	}
	for i, l := range lines {
		colour := i % colours
		l.draw(b, colour, x, y)
		if len(lines) > 1 {
			text(fmt.Sprintf(` class="c%d"`, colour), "end", float64(width-right-45*(len(lines)-1-i)), 33, l.Name)
		}
	}
}

// What is above greatest, or below smallest beside powers of ten, has no place in a picture.
const greatest, smallest = 1e15, 1e-6

// hasPlace reports whether a point can be drawn.
func (c *Chart) hasPlace(p Point) bool {
	return p.X >= 0 && p.X <= greatest && p.Y >= 0 && p.Y <= greatest && (!c.Log || p.Y >= smallest)
}

func (l *Line) draw(b *bytes.Buffer, colour int, x, y axis) {
	fmt.Fprintf(b, `<path class="line c%d" d="`, colour)
	for i, p := range l.Points {
		command := 'L'
		if i == 0 {
			command = 'M'
		}
		fmt.Fprintf(b, "%c%.1f %.1f", command, x.at(p.X), y.at(p.Y))
	}
	b.WriteString("\"/>\n")
	for _, p := range l.Points {
		fmt.Fprintf(b, `<circle class="c%d" r="3" cx="%.1f" cy="%.1f"><title>%s: %.10g, %.10g</title></circle>`+"\n",
			colour, x.at(p.X), y.at(p.Y), html.EscapeString(l.Name), p.X, p.Y)
	}
}
