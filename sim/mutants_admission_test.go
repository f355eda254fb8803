package sim

// Faults about new work that is more than its shard works off.
func init() {
	mutants = append(mutants, mutant{
		name: "admission: refuse a burst",
		edit: edit{
			file: "mailbox/standing.go",
			old:  "|| nowMs-s.sinceMs < StandingForMs\n", new: "|| s.sinceMs < 0\n",
		},
		caught: []string{"a refusal has its reason"},
	}, mutant{
		name: "admission: let a standing queue grow",
		edit: edit{
			file: "mailbox/standing.go",
			old:  "waiting < standingDrains*perDrain", new: "waiting < 2*standingDrains*perDrain",
		},
		caught: []string{"a queue that stands does not grow"},
	}, mutant{
		name: "admission: begin anew at every drain",
		edit: edit{
			file: "mailbox/standing.go",
			old:  "case !s.behind:", new: "default:",
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
		name: "admission: refuse what frees the way",
		edit: edit{
			file: "mailbox/mailbox.go",
			old:  "|| class == ClassNew && !b.admits()", new: "|| !b.admits()",
		},
		caught: []string{"a refusal has its reason"},
	})
}
