package index

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// drawn is a source of chance whose numbers rapid draws, and so makes simpler
// when a run fails.
type drawn struct{ t *rapid.T }

// Uint64 implements rand.Source. Small numbers are simple ones, and IntN looks
// at the upper bits.
func (d drawn) Uint64() uint64 { return rapid.Uint64().Draw(d.t, "chance") }

// Small runs against the full orders, compared after each operation, which
// shrink when they fail.
func TestIndexAgreesWithFullOrdersInSmallRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, 0)
		m.r = rand.New(drawn{t})
		for i := range rapid.IntRange(1, 80).Draw(t, "operations") {
			m.step(i%40 < 20)
			m.check()
		}
	})
}
