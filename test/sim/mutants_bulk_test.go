package sim

// Faults about what admins do with tasks that wait, and about the end of a queue.
func init() {
	const ahead = "shard/admin.go"
	const deletes = "shard/settings.go"
	mutants = append(mutants, mutant{
		name: "bulk: run what is ready once more",
		edit: edit{
			file: ahead, old: "	if t.Location != wire.LocationDelayed {\n", new: "	if !waits(t.Location) {\n",
		},
		caught: []string{"a request is answered as the protocol says", "every event has a cause", "a task moves as its lifecycle says"},
	}, mutant{
		name: "bulk: run now at the old place",
		edit: edit{
			file: ahead, old: "	to := s.placeAt(s.now, record.CauseRunNow)\n",
			new: "	to := s.placeAt(s.now, record.CauseRunNow)\n	to.toOldPlace = true\n",
		},
		caught: []string{"first in, first out, by priority", "the database agrees with itself"},
	}, mutant{
		name: "bulk: move to the tail",
		edit: edit{
			file: ahead, old: "toOldPlace: true, ", new: "",
		},
		caught: []string{"first in, first out, by priority"},
	}, mutant{
		name: "bulk: move a delayed task to now",
		edit: edit{
			file: ahead, old: "dueAtMs: t.DueAtMs,", new: "dueAtMs: s.now,",
		},
		caught: []string{"nothing is delivered before it is due", "the store says what happened"},
	}, mutant{
		name: "bulk: cancel what has moved on",
		edit: edit{
			file: "shard/admin.go", old: "	case !isMeant(m.Only, t):\n", new: "	case false:\n",
		},
		caught: []string{"a request is answered as the protocol says", "every event has a cause", "a task moves as its lifecycle says"},
	})
	mutants = append(mutants, mutant{
		name: "delete: leave what is delayed",
		edit: edit{
			file: deletes, old: "if counters := q.index.Counters(); !counters.IsZero() {", new: "if counters := q.index.Counters(); counters.ReadyTotal()+counters.Done+counters.Dead > 0 {",
		},
		also:   []edit{{file: deletes, old: "left(c.Delayed))", new: "0)"}},
		caught: []string{"a request is answered as the protocol says", "every effect has a cause", "every request is answered"},
	}, mutant{
		name: "delete: keep the keys",
		edit: edit{
			file: deletes, old: "		s.transition(t, move{to: removed,", new: "		t.IdempotencyKey = \"\"\n		s.transition(t, move{to: removed,",
		},
		caught: []string{"the database agrees with itself", "one key makes one task"},
	}, mutant{
		name: "delete: forget it after a crash",
		edit: edit{
			file: "shardactor/engine.go", old: "found.Settings.Deleting {", new: "false {",
		},
		caught: []string{"everything ends"},
	}, mutant{
		name: "delete: take new tasks meanwhile",
		edit: edit{
			file: "shard/settings.go", old: "here := false\n	if q != nil && q.settings.Deleting {\n", new: "here := false\n	if false {\n",
		},
		caught: []string{"a request is answered as the protocol says", "every event has a cause", "a task moves as its lifecycle says"},
	}, mutant{
		name: "delete: ask the home first",
		edit: edit{
			file: "shardactor/deletion.go", old: "	if len(e.loops) > 1 {\n", new: "	if false {\n",
		},
		caught: []string{"the home forgets a deleted queue last"},
	})
}
