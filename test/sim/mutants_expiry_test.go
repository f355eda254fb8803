package sim

// Faults about when a task expires.
func init() {
	mutants = append(mutants, mutant{
		name: "expiry: hand out what has expired",
		edit: edit{
			file: "shard/grant.go", old: "	if t.Expires(s.now) {\n", new: "	if false {\n",
		},
		caught: []string{"nothing is handed out that has expired"},
	}, mutant{
		name: "expiry: hand out at the very moment",
		edit: edit{
			file: "record/task.go", old: "r.ExpiresAtMs <= byMs }", new: "r.ExpiresAtMs < byMs }",
		},
		caught: []string{"nothing is handed out that has expired", "a task moves as its lifecycle says", "a task leaves the place it was in"},
	}, mutant{
		name: "expiry: forget it at a retry",
		edit: edit{
			file: "shard/transition.go",
			old:  "	if waits(m.to) && t.Expires(s.now) {\n", new: "	if waits(m.to) && t.Expires(s.now) && from != wire.LocationInProgress {\n",
		},
		caught: []string{"a task moves as its lifecycle says"},
	}, mutant{
		name: "expiry: keep it over a replay",
		edit: edit{
			file: "shard/admin.go", old: "	t.ExpiresAtMs = 0\n", new: "",
		},
		caught: []string{"a task moves as its lifecycle says", "a task expires when its time is over, where it waits", "the store says what happened",
			"a task comes out as it went in"},
	}, mutant{
		name: "expiry: forget it with a restart",
		edit: edit{
			file: "index/index.go", old: "	q.expiring.restore()\n", new: "",
		},
		caught: []string{"what is due happens"},
	}, mutant{
		name: "expiry: let the queue decide before the task",
		edit: edit{
			file: "wire/request.go", old: "cmp.Or(r.TTLSeconds, queueTTLSeconds)", new: "cmp.Or(queueTTLSeconds, r.TTLSeconds)",
		},
		caught: []string{"the store says what happened", "a request is answered as the protocol says", "every request is answered", "every change has its event"},
	})
}

// Faults about how long a delivery may run.
func init() {
	mutants = append(mutants, mutant{
		name: "run: let a heartbeat or a resume pass its end",
		edit: edit{
			file: "lease/table.go", old: "	t.setDue(e, e.UntilMs(expiresAtMs))\n", new: "	t.setDue(e, expiresAtMs)\n",
		},
		caught: []string{"what is due happens"},
	}, mutant{
		name: "lease: tell its stored end",
		edit: edit{
			file: "shard/admin.go", old: "		told.LeaseUntilMs, told.RunUntilMs = e.Promise()\n", new: "		told.LeaseUntilMs, told.RunUntilMs = e.Lease.DeadlineMs, e.Lease.RunUntilMs\n",
		},
		caught: []string{"a lease is told as it was promised"},
	}, mutant{
		name: "run: begin with the next heartbeat",
		edit: edit{
			file: "lease/table.go", old: "	t.Move(e, e.ExpiresAtMs)\n", new: "",
		},
		caught: []string{"what is due happens", "a task moves as its lifecycle says", "a retry waits as long as promised"},
	}, mutant{
		name: "run: begin with the grant",
		edit: edit{
			file: "shard/lease.go", old: "		s.leases.Run(e, s.now+runForMs)\n", new: "		s.leases.Run(e, e.Lease.RunUntilMs)\n",
		},
		caught: []string{"a lease lasts as long as promised", "a heartbeat extends as promised"},
	}, mutant{
		name: "run: begin anew with a restart",
		edit: edit{
			file: "shard/shard.go", old: "	if until := found.Lease.RunUntilMs; until != 0 {\n", new: "	if until := found.Lease.RunUntilMs; until < 0 {\n",
		},
		caught: []string{"what is due happens", "a heartbeat extends as promised"},
	}, mutant{
		name: "run: end without the grace after a restart",
		edit: edit{
			file: "shard/shard.go", old: "		s.leases.Run(e, max(until, nowMs+resumeGraceMs))\n", new: "		s.leases.Run(e, until)\n",
		},
		caught: []string{"a lease lasts as long as promised", "a heartbeat extends as promised"},
	}, mutant{
		name: "run: count its end as a lost lease",
		edit: edit{
			file: "shard/lease.go", old: "	case e.IsRunOver():\n", new: "	case false:\n",
		},
		caught: []string{"a task moves as its lifecycle says"},
	})
}
