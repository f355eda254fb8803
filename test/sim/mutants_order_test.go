package sim

// Faults about where the tasks of a queue lie, and the order that follows from it.
func init() {
	mutants = append(mutants, mutant{
		name: "order: spread what has a key",
		edit: edit{
			file: "shardactor/router.go",
			old:  "if spread && key == \"\" {", new: "if spread {",
		},
		caught: []string{"a key is at home", "one key makes one task", "a request is answered as the protocol says"},
	}, mutant{
		name: "order: spread what nobody asked for",
		edit: edit{
			file: "shardactor/router.go",
			old:  "if spread && key == \"\" {", new: "if (spread || true) && key == \"\" {",
		},
		also:   []edit{{file: "shard/settings.go", old: "q.settings.Spread && q.freezes == 0", new: "q.freezes == 0"}},
		caught: []string{"a queue has its tasks at home", "a request is answered as the protocol says", "every event has a cause", "every change has its event"},
	}, mutant{
		name: "order: make a task while the home decides",
		edit: edit{
			file: "shard/settings.go",
			old:  "q.settings.Spread && q.freezes == 0", new: "q.settings.Spread",
		},
		caught: []string{"every event has a cause", "every effect has a cause", "a request is answered as the protocol says",
			"a queue has its tasks at home", "a task moves as its lifecycle says", "a task leaves the place it was in"},
	}, mutant{
		name: "order: ask nobody but the home",
		edit: edit{
			file: "shardactor/change.go",
			old:  "c.What.Settings != nil && !c.What.Settings.Spread)", new: "false)",
		},
		caught: []string{"a queue has its tasks at home"},
	}, mutant{
		name: "order: freeze over ended tasks",
		edit: edit{
			file: "shard/settings.go",
			old:  "m.Delete == nil && !counters.IsZero():", new: "m.Delete == nil && counters.ReadyTotal() > 0:",
		},
		caught: []string{"a request is answered as the protocol says", "a queue has its tasks at home"},
	}, mutant{
		name: "order: stay frozen",
		edit: edit{
			file: "shard/settings.go",
			old:  "	if m.Thaw {\n", new: "	if false {\n",
		},
		caught: []string{"a task moves as its lifecycle says", "every request is answered", "every change has its event", "a request is answered as the protocol says",
			"every event has a cause"},
	}, mutant{
		name: "order: spread a queue before every shard knows it",
		edit: edit{
			file: "shard/settings.go",
			old:  "here = q.atHome || q.settings.Spread && q.freezes == 0", new: "here = q.atHome || q.freezes == 0",
		},
		caught: []string{"a request is answered as the protocol says", "every event has a cause", "a queue has its tasks at home"},
	}, mutant{
		name: "ended: delete a key and forget the others in it",
		edit: edit{
			file: "store/batch_ended.go",
			old:  "		if len(k.left) > 0 {\n", new: "		if false {\n",
		},
		caught: []string{"a cleanup removes what it was asked to", "the database agrees with itself"},
	}, mutant{
		name: "ended: delete only what is in the database",
		edit: edit{
			file: "store/batch_ended.go",
			old:  "	if b.ended.take(queue, k) {\n		return\n	}\n", new: "",
		},
		caught: []string{"the database agrees with itself"},
	})
}
