package sim

// Faults about the room of sessions.
func init() {
	mutants = append(mutants, mutant{
		name: "room: keep what was answered for over HTTP",
		edit: edit{
			file: "shard/credit.go",
			old:  "		s.tell(mb.consumer.Sink, &Answered{TaskRef: ref})\n", new: "",
		},
		caught: []string{"credit adds up"},
	}, mutant{
		name: "room: forget what is out of a lease that ended",
		edit: edit{
			file: "shard/admin.go",
			old:  "		s.leak(mb, e)\n", new: "",
		},
		caught: []string{"credit adds up"},
	}, mutant{
		name: "room: give back for a stranger",
		edit: edit{
			file: "shard/credit.go",
			old:  "	return mb.consumer.Tenant == owner.Tenant && mb.consumer.Subject == owner.Subject\n", new: "	return mb.consumer.Tenant == owner.Tenant\n",
		},
		caught: []string{"credit adds up"},
	}, mutant{
		name: "room: do not hear that somebody answered",
		edit: edit{
			file: "session/delivery.go",
			old:  "	c.out.Credit += credits\n", new: "	_ = credits\n",
		},
		caught: []string{"no ready task sits beside an open session with credit", "credit adds up"},
	}, mutant{
		name: "room: give back with a refusal what an earlier word may keep",
		edit: edit{
			file: "session/answer.go",
			old:  "	if !r.hasCredit {\n", new: "	if r.task.Token.IsZero() {\n",
		},
		caught: []string{"credit adds up"},
	}, mutant{
		name: "fence: answer to a window of 0 at once",
		edit: edit{
			file: "session/barrier.go",
			old:  "	case !r.ref.Present:\n", new: "	case true:\n",
		},
		caught: []string{"no task comes behind the ok to a window of 0"},
	}, mutant{
		name: "fence: wait for one shard",
		edit: edit{
			file: "session/barrier.go",
			old:  "	if b.waits > 0 {\n", new: "	if b.waits < c.facts.Router.Shards()-1 {\n",
		},
		caught: []string{"no task comes behind the ok to a window of 0"},
	}, mutant{
		name: "fence: grant with a unit on its way",
		edit: edit{
			file: "shard/grant.go",
			old:  "	case mb.credit > 0 && !credit.InDebt() && ", new: "	case mb.credit > 0 && ",
		},
		caught: []string{"no task comes behind the ok to a window of 0"},
	})
}
