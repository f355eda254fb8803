package sim

// Faults about new work that is more than its shard works off.
func init() {
	mutants = append(mutants, mutant{
		name: "admission: refuse a burst",
		edit: edit{
			file: "mailbox/standing.go",
			old:  "s.behind && nowMs-s.sinceMs >= s.forMs()", new: "s.behind && nowMs >= s.sinceMs",
		},
		caught: []string{"a refusal has its reason"},
	}, mutant{
		name: "admission: let a standing queue grow",
		edit: edit{
			file: "mailbox/standing.go",
			old:  "return waiting < s.bound(nowMs)", new: "return waiting < 2*s.bound(nowMs)",
		},
		caught: []string{"a queue that stands does not grow"},
	}, mutant{
		name: "admission: begin anew at every drain",
		edit: edit{
			file: "mailbox/standing.go",
			old:  "	if !s.behind {\n", new: "	if left > 0 {\n",
		},
		caught: []string{"a queue that stands does not grow"},
	}, mutant{
		name: "admission: never come to the end",
		edit: edit{
			file: "mailbox/standing.go",
			old:  "		s.behind = false\n", new: "		s.behind = s.behind && nowMs > 0\n",
		},
		caught: []string{"a refusal has its reason"},
	}, mutant{
		name: "admission: open wide at once",
		edit: edit{
			file: "mailbox/standing.go",
			old:  "		if s.bound(nowMs) == math.MaxInt {\n", new: "		if nowMs > 0 {\n",
		},
		caught: []string{"a queue that stands does not grow"},
	}, mutant{
		name: "admission: never open again",
		edit: edit{
			file: "mailbox/standing.go",
			old:  "doublings := max(nowMs-s.stoodAtMs, 0) / ReopenMs", new: "doublings := max(nowMs-s.stoodAtMs, 0) / ReopenMs / 100",
		},
		caught: []string{"a refusal has its reason"},
	}, mutant{
		name: "admission: shrink to one drain at once",
		edit: edit{
			file: "mailbox/standing.go",
			old:  "s.most -= max(perDrain/shrinkPart, 1)", new: "s.most = perDrain",
		},
		caught: []string{"a refusal has its reason"},
	}, mutant{
		name: "admission: refuse what frees the way",
		edit: edit{
			file: "mailbox/mailbox.go",
			old:  "class == ClassNew && !b.admits() ||", new: "!b.admits() ||",
		},
		caught: []string{"a refusal has its reason"},
	})
}
