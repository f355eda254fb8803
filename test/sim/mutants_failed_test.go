package sim

// Faults about tasks that ended FAILED, and about what a replay takes back.
func init() {
	const admin = "shard/admin.go"
	mutants = append(mutants, mutant{
		name: "failed: keep the result token over a replay",
		edit: edit{
			file: admin,
			old:  "	t.Attempts, t.Releases, t.Losses, t.ResultToken = 0, 0, 0, wire.Token{}\n",
			new:  "	t.Attempts, t.Releases, t.Losses = 0, 0, 0\n",
		},
		caught: []string{"a request is answered as the protocol says"},
	}, mutant{
		name: "failed: keep the attempts over a replay",
		edit: edit{
			file: admin,
			old:  "	t.Attempts, t.Releases, t.Losses, t.ResultToken = 0, 0, 0, wire.Token{}\n",
			new:  "	t.Releases, t.Losses, t.ResultToken = 0, 0, wire.Token{}\n",
		},
		caught: []string{"attempts stay below their limit", "a task moves as its lifecycle says", "a task comes out as it went in",
			"the store says what happened", "every event has a cause"},
	}, mutant{
		name: "failed: remove what was replayed in the same round",
		edit: edit{
			file: admin, old: "{\n	s.dropFromBatches(t)\n", new: "{\n",
		},
		caught: []string{"a task leaves the place it was in", "ended tasks stay as long as promised", "a cleanup removes what it was asked to",
			"every event has a cause"},
	}, mutant{
		name: "failed: count the causes of what is removed on",
		edit: edit{
			file: "index/queue.go",
			old:  "	q.decrement(&c.DeadBy[cause], \"dead because of \"+cause.String())\n", new: "",
		},
		caught: []string{"dead letters are counted by cause", "the database agrees with itself"},
	})
}

// The bound of letters that failed, and what goes with one.
func init() {
	mutants = append(mutants, mutant{
		name: "failed: keep any number of letters",
		edit: edit{
			file: "shard/retention.go",
			old:  "	return max(0, count-int64(s.limits.Failed))\n", new: "	return 0 * count\n",
		},
		caught: []string{"no more failed letters than are kept"},
	}, mutant{
		name: "failed: keep one letter less",
		edit: edit{
			file: "shard/retention.go",
			old:  "count-int64(s.limits.Failed))", new: "count-int64(s.limits.Failed)+1)",
		},
		caught: []string{"ended tasks stay as long as promised"},
	}, mutant{
		name: "failed: keep the key of a letter that is gone",
		edit: edit{
			file: "shard/retention.go",
			old:  "e.Status == \"\" || e.HasKey || e.Labelled || e.HasFiles {", new: "e.Status == \"\" || e.HasKey && e.Cause == 0 || e.Labelled || e.HasFiles {",
		},
		caught: []string{"the database agrees with itself", "one key makes one task"},
	}, mutant{
		name: "failed: is no dead letter",
		edit: edit{
			file: "shard/delivery.go",
			old:  "		ends.to, ends.dead = wire.LocationDead, wire.DeadFailed\n", new: "",
		},
		caught: []string{"a task moves as its lifecycle says"},
	})
}
