package sim

// Faults about whose turn it is, and about what was looked for lately.
func init() {
	mutants = append(mutants, mutant{
		name: "turns: begin with the first tenant",
		edit: edit{
			file: "shard/grant.go",
			old:  "		if t.at >= len(t.tenants) {\n			t.at = 0\n		}\n", new: "		t.at = 0\n",
		},
		caught: []string{"no tenant waits for the backlog of another"},
	}, mutant{
		name: "turns: stay with a tenant",
		edit: edit{
			file: "shard/grant.go",
			old:  "		t.at, t.inRow = t.at+1, 0\n", new: "		t.inRow = 0\n",
		},
		caught: []string{"no tenant waits for the backlog of another"},
	}, mutant{
		name: "turns: begin with the first queue",
		edit: edit{
			file: "shard/grant.go",
			old:  "		if r.at >= len(r.queues) {\n			r.at = 0\n		}\n", new: "		r.at = 0\n",
		},
		caught: []string{"no queue waits for the backlog of another"},
	}, mutant{
		name: "turns: stay with a queue",
		edit: edit{
			file: "shard/grant.go",
			old:  "	t.ring.at++\n", new: "",
		},
		caught: []string{"no queue waits for the backlog of another"},
	}, mutant{
		name: "turns: begin anew with who comes back",
		edit: edit{
			file: "shard/grant.go",
			old:  "		s.turns.tenants = append(s.turns.tenants, t)\n",
			new:  "		s.turns.tenants, s.turns.at = append([]*tenant{t}, s.turns.tenants...), 0\n",
		},
		caught: []string{"no tenant waits for the backlog of another"},
	}, mutant{
		name: "watermarks: advance that of leases beyond the first",
		edit: edit{
			file: "shard/retention.go",
			old:  "				q.AdvanceLeaseWatermark(rank)\n", new: "				q.AdvanceLeaseWatermark(rank + 1)\n",
		},
		caught: []string{"the database agrees with itself", "a request is answered as the protocol says", "figures add up"},
	}, mutant{
		name: "watermarks: advance that of dead letters beyond the first",
		edit: edit{
			file: "shard/retention.go",
			old:  "			q.AdvanceDeadWatermark(keys[0].AtMs)\n", new: "			q.AdvanceDeadWatermark(keys[0].AtMs + 1)\n",
		},
		caught: []string{"the database agrees with itself", "a request is answered as the protocol says", "figures add up", "an ended task leaves in time"},
	})
}
