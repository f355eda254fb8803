package sim

const (
	limitHolds   = "a limit of tasks in progress holds"
	rateHolds    = "a limit of starts in a second holds"
	nothingWaits = "no ready task sits beside an open session with credit"
	allEnds      = "everything ends"
	reasonHolds  = "a reason is the one that holds"
)

// Faults about how many tasks of a queue are in progress.
func init() {
	mutants = append(mutants, mutant{
		name:   "limiter: start without a place",
		edit:   edit{file: "shard/limiter.go", old: "		q.shut, q.opensAtMs = true, 0\n		return false\n", new: "		return true\n"},
		caught: []string{limitHolds},
	}, mutant{
		name:   "limiter: forget at a start what is in progress",
		edit:   edit{file: "shard/limiter.go", old: "		q.limiter.Hold(int(q.places))\n", new: ""},
		caught: []string{limitHolds},
	}, mutant{
		name:   "limiter: use places again above a limit that shrank",
		edit:   edit{file: "shard/limiter.go", old: "q.spare() > 0 && !q.limiter.InDebt()", new: "q.spare() > 0"},
		caught: []string{limitHolds},
	}, mutant{
		name:   "limiter: keep places that nobody used",
		edit:   edit{file: "shard/limiter.go", old: "		if n > 0 {\n			q.places -= n\n", new: "		if n > 1 {\n			q.places -= n\n"},
		caught: []string{nothingWaits, allEnds},
	}, mutant{
		name: "limiter: let place and credit go round",
		edit: edit{file: "shard/limiter.go", old: "		if n > 0 && q.hasTurns() && ", new: "		if n > 1 && q.hasTurns() && "},
		test: "./shardactor TestPlaceAndCreditMeet",
	}, mutant{
		name:   "limiter: keep a place without a task",
		edit:   edit{file: "shard/limiter.go", old: "n > 0 && q.hasTurns() && s.space", new: "n > 0 && s.space"},
		caught: []string{nothingWaits, allEnds},
	}, mutant{
		name:   "limiter: return a place twice",
		edit:   edit{file: "shard/limiter.go", old: "&Freed{Places: int(n)}", new: "&Freed{Places: 2 * int(n)}"},
		caught: []string{limitHolds},
	}, mutant{
		name:   "limiter: lose a place that was handed to a queue without a limit",
		edit:   edit{file: "shard/limiter.go", old: "		s.tell(m.Limiter, &Freed{Places: m.Places})\n		return\n", new: "		return\n"},
		caught: []string{nothingWaits, allEnds, "credit adds up"},
	}, mutant{
		name:   "limiter: stay shut when a place comes",
		edit:   edit{file: "shard/limiter.go", old: "	q.places += int64(m.Places)\n	s.freePlace(q)\n", new: "	q.places += int64(m.Places)\n	s.noteLimited(q)\n"},
		caught: []string{nothingWaits, allEnds},
	}, mutant{
		name:   "limiter: stay shut when a delivery ends",
		edit:   edit{file: "shard/transition.go", old: "	s.freePlace(q)\n", new: ""},
		caught: []string{nothingWaits, allEnds},
	}, mutant{
		name: "limiter: use a place again beside others for ever",
		edit: edit{file: "shard/limiter.go", old: "	case reuses && q.inRow < s.limits.ReusedInRow:\n", new: "	case reuses:\n"},
		test: "./shardactor TestPlacesOfALimitGoRound",
	})
}

// Faults about how many start in a second, and about what is said of limits.
func init() {
	mutants = append(mutants, mutant{
		name:   "limiter: start without a start",
		edit:   edit{file: "shard/limiter.go", old: "	if at := q.limiter.Start(s.now); at != 0 {\n", new: "	if at := q.limiter.Start(s.now); at > s.now+500 {\n"},
		caught: []string{rateHolds},
	}, mutant{
		name:   "limiter: leave a start unused",
		edit:   edit{file: "shard/limiter.go", old: "			q.limiter.Unstart()\n", new: ""},
		caught: []string{nothingWaits, allEnds},
	}, mutant{
		name:   "limiter: forget to open for the next start",
		edit:   edit{file: "shard/shard.go", old: "	if at := s.nextStartMs(); at != 0 && (next == 0 || at < next) {\n", new: "	if at := s.nextStartMs(); at != 0 && next != 0 && at < next {\n"},
		caught: []string{nothingWaits, allEnds},
	}, mutant{
		name:   "limiter: make up for a pause",
		edit:   edit{file: "internal/credit/rate.go", old: "at := max(next, now-slackNs)", new: "at := max(next, now-secondNs)"},
		caught: []string{rateHolds},
	}, mutant{
		name:   "limiter: keep the limit of the first shard that asks",
		edit:   edit{file: "shard/limiter.go", old: "	if q.limiter != nil && q.atHome {\n", new: "	if q.limiter != nil && q.places == 0 {\n"},
		caught: []string{limitHolds, nothingWaits, allEnds, "no invariant breaks", reasonHolds},
	}, mutant{
		name:   "limiter: let a suspect go past the limit",
		edit:   edit{file: "shard/suspect.go", old: " && s.mayStart(a.queue) {\n", new: " {\n"},
		caught: []string{limitHolds, rateHolds},
	}, mutant{
		name:   "limiter: name the other limit",
		edit:   edit{file: "shard/limiter.go", old: "	if q.opensAtMs != 0 {\n		w.Limit", new: "	if q.opensAtMs == 0 {\n		w.Limit"},
		caught: []string{reasonHolds},
	})
}
