package sim

// Faults about tasks that do not arrive.
func init() {
	mutants = append(mutants, mutant{
		name: "suspect: grant it beside others",
		edit: edit{
			file: "internal/credit/alone.go",
			old:  " && w.untakenBytes.Load() == 0\n", new: "\n",
		},
		also:   []edit{{file: "internal/credit/alone.go", old: "w.untakenBytes.Load() > 0 || free(word) < 0:", new: "free(word) < 0:"}},
		caught: []string{"a suspect goes alone"},
	}, mutant{
		name: "suspect: grant others beside it",
		edit: edit{
			file: "internal/credit/window.go",
			old:  "free(word) > 0 && word&aloneBit == 0 && w.hasWay()", new: "free(word) > 0 && w.hasWay()",
		},
		caught: []string{"a suspect goes alone"},
	}, mutant{
		name: "suspect: grant others beside it with units that are out",
		edit: edit{
			file: "internal/credit/window.go",
			old:  "	if w.word.Load()&aloneBit == 0 {\n		return true\n", new: "	if w.word.Load() != 0 {\n		return true\n",
		},
		caught: []string{"a suspect goes alone"},
	}, mutant{
		name: "suspect: count the third as an attempt",
		edit: edit{
			file: "shard/suspect.go",
			old:  "	if isSuspect(t) {\n", new: "	if isSuspect(t) {\n		t.Attempts++\n",
		},
		caught: []string{"the store says what happened", "a task comes out as it went in"},
	}, mutant{
		name: "suspect: never grant it",
		edit: edit{
			file: "shard/suspect.go",
			old:  "	if sub != nil && s.grantAlone(q, sub, t) {", new: "	if false && s.grantAlone(q, sub, t) {",
		},
		caught: []string{"a suspect goes to who has nothing on its way", "everything ends"},
	}, mutant{
		name: "suspect: keep the window when it has arrived",
		edit: edit{
			file: "shard/subscribers.go",
			old:  "		if sub.ownsWindow && !sub.consumer.Credit.WaitAlone(s.shard) {\n			s.share(sub)\n		}\n", new: "",
		},
		caught: []string{"no ready task sits beside an open session with credit", "everything ends", "credit adds up"},
	}, mutant{
		name: "suspect: keep the window for one that is over",
		edit: edit{
			file: "shard/suspect.go",
			old:  "	if s.reserved != nil && (len(left) == 0", new: "	if false && (len(left) == 0",
		},
		caught: []string{"no ready task sits beside an open session with credit", "work ends", "everything ends"},
	}, mutant{
		name: "suspect: grant one that stands aside in a frozen queue",
		edit: edit{
			file: "shard/suspect.go",
			old:  "sub != nil && a.queue.mayGrant() &&", new: "sub != nil && !a.queue.settings.Paused &&",
		},
		caught: []string{"a queue that may be deleted hands out nothing"},
	}, mutant{
		name: "suspect: share the window after the tasks of the round",
		edit: edit{
			file: "shard/grant.go",
			old:  "	if sub.ownsWindow && sub.isIdle() {\n", new: "	if false {\n",
		},
		caught: []string{"a suspect goes to who has nothing on its way"},
	})
}
