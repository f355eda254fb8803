package plot

import (
	"math"
	"slices"
	"strconv"
)

// axis says where a value is drawn, in pixels, and which values are written beside it.
type axis struct {
	at    func(value float64) float64
	ticks []float64
}

// linear is an axis from 0 to a round number that is not below any value, drawn from
// one pixel to another.
func linear(values []float64, from, to float64) axis {
	const most = 5 // steps
	step := roundStep(slices.Max(append(values, 0)) / most)
	end := step * max(math.Ceil(slices.Max(append(values, 0))/step), 1)
	a := axis{at: func(v float64) float64 { return from + (to-from)*v/end }}
	for n := 0.0; n*step <= end*1.0001; n++ {
		a.ticks = append(a.ticks, n*step)
	}
	return a
}

// roundStep is the least of 1, 2 and 5 times a power of ten that is not below the
// least step.
func roundStep(least float64) float64 {
	if least <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= least {
			return n * power
		}
	}
	return 10 * power
}

// powers is an axis between two powers of ten around all values.
func powers(values []float64, from, to float64) axis {
	low, high := 0.0, 1.0
	if len(values) > 0 {
		low = math.Floor(math.Log10(slices.Min(values)))
		high = max(math.Ceil(math.Log10(slices.Max(values))), low+1)
	}
	a := axis{at: func(v float64) float64 { return from + (to-from)*(math.Log10(v)-low)/(high-low) }}
	for n := low; n <= high; n++ {
		a.ticks = append(a.ticks, math.Pow(10, n))
	}
	return a
}

// short writes a value beside an axis: 250k for 250,000.
func short(v float64) string {
	unit := ""
	switch {
	case v >= 1e6:
		v, unit = v/1e6, "M"
	case v >= 1e4:
		v, unit = v/1e3, "k"
	}
	return strconv.FormatFloat(v, 'g', 6, 64) + unit
}
