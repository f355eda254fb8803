package sim

// Faults about new work that is more than its shard works off.
func init() {
	mutants = append(mutants, mutant{
		name: "admission: refuse a burst",
		edit: edit{
			file: "mailbox/admission.go",
			old:  "a.backlogged && nowMs-a.sinceMs >= a.overloadAfterMs()", new: "a.backlogged && nowMs >= a.sinceMs",
		},
		caught: []string{"a refusal has its reason"},
	}, mutant{
		name: "admission: let a backlog grow",
		edit: edit{
			file: "mailbox/admission.go",
			old:  "	return a.limitAt(nowMs)\n}", new: "	return 2 * min(a.limitAt(nowMs), 1<<20)\n}",
		},
		caught: []string{"a queue that stands does not grow"},
	}, mutant{
		name: "admission: begin anew at every drain",
		edit: edit{
			file: "mailbox/admission.go",
			old:  "!a.backlogged || a.passing <= 0 {", new: "left > 0 {",
		},
		caught: []string{"a queue that stands does not grow"},
	}, mutant{
		name: "admission: take for overload what is taken in time",
		edit: edit{
			file: "mailbox/admission.go",
			old:  "!a.backlogged || a.passing <= 0 {", new: "!a.backlogged {",
		},
		caught: []string{"a refusal has its reason"},
	}, mutant{
		name: "admission: never come to the end",
		edit: edit{
			file: "mailbox/admission.go",
			old:  "		a.backlogged = false\n", new: "		a.backlogged = a.backlogged && nowMs > 0\n",
		},
		caught: []string{"a refusal has its reason"},
	}, mutant{
		name: "admission: open wide at once",
		edit: edit{
			file: "mailbox/admission.go",
			old:  "		if a.limitAt(nowMs) == math.MaxInt {\n", new: "		if nowMs > 0 {\n",
		},
		caught: []string{"a queue that stands does not grow"},
	}, mutant{
		name: "admission: never open again",
		edit: edit{
			file: "mailbox/admission.go",
			old:  "doublings := max(nowMs-a.overloadedAtMs, 0) / DoubleAfterMs", new: "doublings := max(nowMs-a.overloadedAtMs, 0) / DoubleAfterMs / 100",
		},
		caught: []string{"a refusal has its reason"},
	}, mutant{
		name: "admission: shrink to one drain at once",
		edit: edit{
			file: "mailbox/admission.go",
			old:  "a.limit -= max(perDrain/shrinkDivisor, 1)", new: "a.limit = perDrain",
		},
		caught: []string{"a refusal has its reason"},
	}, mutant{
		name: "admission: refuse what frees the way",
		edit: edit{
			file: "mailbox/mailbox.go",
			old:  "class == ClassNew && !b.admits(owner) ||", new: "!b.admits(owner) ||",
		},
		caught: []string{"a refusal has its reason"},
	})
}
