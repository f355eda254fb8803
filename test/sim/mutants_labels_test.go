package sim

// Faults about the labels of tasks.
func init() {
	mutants = append(mutants, mutant{
		name: "labels: write no key",
		edit: edit{
			file: "shard/enqueue.go", old: "	batch.PutLabels(t)\n", new: "",
		},
		caught: []string{"a label finds the tasks that have it", "the database agrees with itself"},
	}, mutant{
		name: "labels: leave the keys of what retention removes",
		edit: edit{
			file: "shard/retention.go", old: "	if e.Status == \"\" || e.HasKey || e.Labelled || e.HasFiles {\n", new: "	if e.Status == \"\" || e.HasKey || e.HasFiles {\n",
		},
		caught: []string{"a label finds the tasks that have it", "the database agrees with itself"},
	}, mutant{
		name: "labels: leave the keys of a purge",
		edit: edit{
			file: "shard/admin.go",
			old:  "	s.transition(t, move{to: removed, status: t.Status, cause: record.CausePurge})\n",
			new:  "	t.Labels = \"\"\n	s.transition(t, move{to: removed, status: t.Status, cause: record.CausePurge})\n",
		},
		caught: []string{"a label finds the tasks that have it", "the database agrees with itself"},
	}, mutant{
		name: "labels: leave the keys of dead letters",
		edit: edit{
			file: "shard/retention.go", old: "	batch.DeleteLabels(t)\n",
			new: "	if t.Status != wire.StatusFailed {\n		batch.DeleteLabels(t)\n	}\n",
		},
		caught: []string{"a label finds the tasks that have it", "the database agrees with itself"},
	}, mutant{
		name: "labels: find those of another tenant",
		edit: edit{
			file: "store/read_order.go", old: "record.AppendLabel(start(), q.Tenant, label)", new: "record.AppendLabel(start(), \"red\", label)",
		},
		caught: []string{"a label finds the tasks that have it"},
	}, mutant{
		name: "labels: lose them over a replay",
		edit: edit{
			file: "shard/admin.go", old: "	t.ExpiresAtMs = 0\n", new: "	t.ExpiresAtMs, t.Labels = 0, \"\"\n",
		},
		caught: []string{"a label finds the tasks that have it", "the database agrees with itself", "the store says what happened", "a task comes out as it went in"},
	}, mutant{
		name: "labels: do not note them in the entry of the end",
		edit: edit{
			file: "shard/transition.go", old: "Labelled: t.Labels != \"\",\n", new: "\n",
		},
		caught: []string{"a label finds the tasks that have it", "the database agrees with itself"},
	})
}
