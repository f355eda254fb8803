package sim

// Faults that show only where a bound is met, or the wall clock was set back.
var limitMutants = []mutant{
	{
		name: "limits: end a cleanup after its first full slice",
		edit: edit{
			file: "shard/cleanup.go",
			old:  "w.over = w.done == len(w.Queues)\n", new: "w.over = w.done == len(w.Queues) || left == 0\n",
		},
		caught: []string{"a cleanup removes what it was asked to"},
	}, {
		name: "limits: pass over a queue that filled a slice",
		edit: edit{
			file: "shard/cleanup.go",
			old:  "		if left > 0 {\n", new: "		if left >= 0 {\n",
		},
		caught: []string{"a cleanup removes what it was asked to"},
	}, {
		name: "limits: count releases on over a replay",
		edit: edit{
			file: "shard/admin.go",
			old:  "	t.Attempts, t.Releases, t.Losses, t.ResultToken = 0, 0, 0, wire.Token{}\n",
			new:  "	t.Attempts, t.Losses, t.ResultToken = 0, 0, wire.Token{}\n",
		},
		caught: []string{"a task moves as its lifecycle says"},
	}, {
		name: "limits: hand back once too often",
		edit: edit{
			file: "shard/delivery.go",
			old:  "t.Releases > s.limits.Releases*t.MaxAttempts", new: "t.Releases > s.limits.Releases*t.MaxAttempts+1",
		},
		caught: []string{"a task moves as its lifecycle says"},
	}, {
		name: "limits: count a hand-back of work that never began",
		edit: edit{
			file: "shard/delivery.go",
			old:  "	if m.Counts() {\n", new: "	if !m.Stopping {\n",
		},
		caught: []string{"a task moves as its lifecycle says"},
	}, {
		name: "limits: count no hand-back",
		edit: edit{
			file: "shard/delivery.go",
			old:  "	if m.Counts() {\n", new: "	if false {\n",
		},
		caught: []string{"a task moves as its lifecycle says"},
	}, {
		name: "limits: count no bytes for a unit that is used again",
		edit: edit{
			file: "shard/grant.go",
			old:  "case sub.reused > 0 && credit.AddBytes(payloadBytes):", new: "case sub.reused > 0:",
		},
		caught: []string{"credit adds up"},
	}, {
		name: "limits: count no bytes for a unit that a message brought",
		edit: edit{
			file: "shard/grant.go",
			old:  "case sub.credit > 0 && !credit.InDebt() && credit.AddBytes(payloadBytes):", new: "case sub.credit > 0 && !credit.InDebt():",
		},
		caught: []string{"credit adds up"},
	}, {
		name: "limits: begin with the time of the last shard",
		edit: edit{
			file: "shardactor/engine.go",
			old:  "latestMs = max(latestMs, r.Marks.TimeMs)", new: "latestMs = r.Marks.TimeMs",
		},
		caught: []string{"time does not run back"},
	}, {
		name: "limits: stay with what the bound of a pass has left",
		edit: edit{
			file: "shard/grant.go",
			old:  "		cut = granted == s.limits.Grants\n", new: "",
		},
		caught: []string{"a claim gets what there is", "no ready task sits beside an open session with credit"},
	},
}

func init() { mutants = append(mutants, limitMutants...) }
