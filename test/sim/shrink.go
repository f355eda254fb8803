package sim

import "slices"

// shrink looks for a shorter script that fails the same property, by leaving out
// ever smaller pieces. It makes at most tries runs, so that it ends, whatever a
// run costs.
func shrink(s script, failed report, tries int, run func(script) report) (shorter script, last report) {
	s.steps = s.steps[:min(failed.steps, len(s.steps))]
	last = failed
	fails := func(steps []int) bool {
		tries--
		r := run(script{s.seed, steps})
		if r.failed == nil || r.failed.property != failed.failed.property {
			return false
		}
		last = r
		return true
	}
	for chunk := len(s.steps) / 2; chunk > 0 && tries > 0; chunk /= 2 {
		for at := 0; at+chunk <= len(s.steps) && tries > 0; {
			without := slices.Delete(slices.Clone(s.steps), at, at+chunk)
			if !fails(without) {
				at += chunk
				continue
			}
			s.steps = without[:min(last.steps, len(without))]
		}
	}
	return s, last
}
