package sim

// Faults of the credit of sessions.
func init() {
	mutants = append(mutants, mutant{
		name: "credit: keep that of a delivery answered over HTTP",
		edit: edit{
			file: "shard/credit.go",
			old:  "		s.tell(sub.consumer.Sink, &Answered{TaskRef: h.TaskRef})\n", new: "",
		},
		caught: []string{"credit adds up"},
	}, mutant{
		name: "credit: forget that of a lease that ended",
		edit: edit{
			file: "shard/admin.go",
			old:  "		s.leak(sub, e)\n", new: "",
		},
		caught: []string{"credit adds up"},
	}, mutant{
		name: "credit: return that of another subject",
		edit: edit{
			file: "shard/credit.go",
			old:  "	return sub.consumer.Tenant == owner.Tenant && sub.consumer.Subject == owner.Subject\n", new: "	return sub.consumer.Tenant == owner.Tenant\n",
		},
		caught: []string{"credit adds up"},
	}, mutant{
		name: "credit: do not return what was answered elsewhere",
		edit: edit{
			file: "session/delivery.go",
			old:  "	c.out.Credit += credits\n", new: "	_ = credits\n",
		},
		caught: []string{"no ready task sits beside an open session with credit", "credit adds up"},
	}, mutant{
		name: "credit: return with a refusal what an earlier answer may reuse",
		edit: edit{
			file: "session/answer.go",
			old:  "	if !r.hasCredit {\n", new: "	if r.task.Token.IsZero() {\n",
		},
		caught: []string{"credit adds up"},
	}, mutant{
		name: "barrier: answer to a window of 0 at once",
		edit: edit{
			file: "session/barrier.go",
			old:  "	case !r.ref.Present:\n", new: "	case true:\n",
		},
		caught: []string{"no task comes behind the ok to a window of 0"},
	}, mutant{
		name: "barrier: wait for one shard",
		edit: edit{
			file: "session/barrier.go",
			old:  "	if b.waits > 0 {\n", new: "	if b.waits < c.facts.Router.Shards()-1 {\n",
		},
		caught: []string{"no task comes behind the ok to a window of 0"},
	}, mutant{
		name: "barrier: grant while a credit is on its way",
		edit: edit{
			file: "shard/grant.go",
			old:  "	case sub.credit > 0 && !credit.InDebt() && ", new: "	case sub.credit > 0 && ",
		},
		caught: []string{"no task comes behind the ok to a window of 0"},
	})
}
