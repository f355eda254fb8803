package sim

// Faults about what people do to tasks that are not theirs to work on.
func init() {
	const admin = "shard/admin.go"
	mutants = append(mutants, mutant{
		name: "take back: to the tail",
		edit: edit{
			file: admin, old: "	to := putBack(record.CauseTakenBack)\n", new: "	to := s.placeAt(s.now, record.CauseTakenBack)\n",
		},
		caught: []string{"first in, first out, by priority", "the database agrees with itself"},
	}, mutant{
		name: "take back: believe the worker all the same",
		edit: edit{
			file: admin, old: "	t.LastToken = wire.Token{}\n	to := putBack(", new: "	openToLateCompletion(t, e)\n	to := putBack(",
		},
		caught: []string{"a request is answered as the protocol says", "every event has a cause", "a task moves as its lifecycle says"},
	}, mutant{
		name: "take back: tell no worker",
		edit: edit{
			file: admin, old: "	s.revoke(e, wire.RevokedTakenBack)\n", new: "",
		},
		caught: []string{"a worker is told what it lost", "every request is answered", "every effect has a cause"},
	}, mutant{
		name: "hands: forget who it was",
		edit: edit{
			file: "shard/transition.go", old: "m.cause).String(), By: m.by})\n", new: "m.cause).String()})\n",
		},
		caught: []string{"the history says who did what"},
	}, mutant{
		name: "hands: note what was refused",
		edit: edit{
			file: admin, old: "	if refusal != nil {\n		s.tell(m.Sink, &Refused{",
			new: "	if refusal != nil {\n		if t != nil {\n			s.span.Batch().AddHistory(t.ID, wire.HistoryLine{ToMs: s.now, Cause: \"move\", By: m.By})\n		}\n		s.tell(m.Sink, &Refused{",
		},
		caught: []string{"the history says who did what", "the database agrees with itself"},
	}, mutant{
		name: "hands: leave the history behind",
		edit: edit{
			file: "shard/transition.go", old: "	t.Handled = true\n", new: "",
		},
		caught: []string{"the database agrees with itself"},
	})
}
