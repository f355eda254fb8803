package sim

// Faults about what people do to tasks that are not theirs to work on.
func init() {
	const admin = "shard/admin.go"
	mutants = append(mutants, mutant{
		name: "take back: to the tail",
		edit: edit{
			file: admin, old: "	s.transition(t, putBack(record.CauseTakenBack))\n", new: "	s.transition(t, s.placeAt(s.now, record.CauseTakenBack))\n",
		},
		caught: []string{"first in, first out, by priority", "the database agrees with itself"},
	}, mutant{
		name: "take back: believe the worker all the same",
		edit: edit{
			file: admin, old: "	t.LastToken = wire.Token{}\n	s.transition(t, putBack(record.CauseTakenBack))\n", new: "	openToLateCompletion(t, e)\n	s.transition(t, putBack(record.CauseTakenBack))\n",
		},
		caught: []string{"a request is answered as the protocol says", "every event has a cause", "a task moves as its lifecycle says"},
	}, mutant{
		name: "take back: tell no worker",
		edit: edit{
			file: admin, old: "	s.revoke(e, wire.RevokedTakenBack)\n", new: "",
		},
		caught: []string{"a worker is told what it lost", "every request is answered", "every effect has a cause"},
	})
}
