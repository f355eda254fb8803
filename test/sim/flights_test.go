package sim

import "testing"

// Shards are on their way together in worlds of three nodes, and every end that they can have
// there comes about.
func TestShardsAreOnTheirWayTogether(t *testing.T) {
	var together [fates]int
	rounds := 0
	for seed, worlds := uint64(1), 0; worlds < 3; seed++ {
		s := shapeOf(seed)
		if !s.nodes || s.shards < 2 {
			continue
		}
		worlds++
		r := run(script{seed, firstSteps(1500)}, false)
		if r.failed != nil {
			t.Fatal(tellFailure(script{seed, firstSteps(1500)}, r))
		}
		rounds += r.rounds
		for is, n := range r.together {
			together[is] += n
		}
	}
	t.Logf("of %d rounds %v were made while others were on their way", rounds, together)
	for is, n := range together {
		if n < [...]int{fateApplied: rounds / 20, fateUnheard: 5, fateDropped: 5}[is] {
			t.Errorf("of %d rounds %d were made while others were on their way and %s", rounds, n, fate(is))
		}
	}
}
