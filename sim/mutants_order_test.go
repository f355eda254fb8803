package sim

// Faults about queues that have one order over all shards.
func init() {
	mutants = append(mutants, mutant{
		name: "order: make a task anywhere",
		edit: edit{
			file: "shardactor/placement.go",
			old:  "		return q.atHome\n", new: "		return true\n",
		},
		caught: []string{"an ordered queue has its tasks at home", "a misplaced task goes back"},
	}, mutant{
		name: "order: make a task while the home decides",
		edit: edit{
			file: "shardactor/placement.go",
			old:  "q == nil || q.freezes > 0 || m.RoutedBy", new: "q == nil || m.RoutedBy",
		},
		caught: []string{"every event has a cause", "every effect has a cause", "a request is answered as the protocol says",
			"the order changes while there is no task", "a task moves as its lifecycle says", "a task leaves the place it was in"},
	}, mutant{
		name: "order: ask nobody but the home",
		edit: edit{
			file: "shardactor/change.go",
			old:  "c.What.Settings.Ordered && len(e.loops) > 1 {", new: "false {",
		},
		caught: []string{"the order changes while there is no task", "an ordered queue has its tasks at home"},
	}, mutant{
		name: "order: change it over tasks",
		edit: edit{
			file: "shardactor/configure.go",
			old:  "next.Ordered != q.settings.Ordered && !counters.IsZero() {",
			new:  "next.Ordered != q.settings.Ordered && counters.InProgress > 0 {",
		},
		caught: []string{"a request is answered as the protocol says"},
	}, mutant{
		name: "order: freeze over ended tasks",
		edit: edit{
			file: "shardactor/freeze.go",
			old:  "!counters.IsZero() {", new: "counters.ReadyTotal() > 0 {",
		},
		caught: []string{"a request is answered as the protocol says"},
	}, mutant{
		name: "order: stay frozen",
		edit: edit{
			file: "shardactor/copysettings.go",
			old:  "	if m.Thaw {\n", new: "	if false {\n",
		},
		caught: []string{"a task moves as its lifecycle says", "every request is answered", "every change has its event", "a request is answered as the protocol says",
			"a misplaced task goes back"},
	}, mutant{
		name: "order: keep who waits",
		edit: edit{
			file: "shardactor/copysettings.go",
			old:  "	s.unpark(m.Queue)\n", new: "",
		},
		caught: []string{"every request is answered", "every change has its event", "a request is answered as the protocol says",
			"a misplaced task goes back"},
	}, mutant{
		name: "order: take any key",
		edit: edit{
			file: "shardactor/placement.go",
			old:  "case q.settings.Version == 0 || m.IdempotencyKey == \"\":", new: "case true:",
		},
		caught: []string{"a key has its place", "a misplaced task goes back"},
	})
}
