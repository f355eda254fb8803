// Package plot draws curves as an SVG picture: charts side by side, each with two
// axes that name their unit, and lines through points. The picture has colours for
// light and for dark pages, and needs no script and no font of its own.
//
// SVG is a pure function; any goroutine. The package knows nothing of what is drawn.
package plot
