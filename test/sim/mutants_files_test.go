package sim

const filesAdd = "the files of a tenant are counted"

// Faults about the bytes of files.
func init() {
	const file = "shard/file.go"
	mutants = append(mutants, mutant{
		name:   "files: forget at a start how large they are",
		edit:   edit{file: "shard/shard.go", old: "			q.tenant.fileBytes += found.Counters.FileBytes\n", new: ""},
		caught: []string{filesAdd},
	}, mutant{
		name:   "files: tell no door of those that a first limit finds",
		edit:   edit{file: "shard/pending.go", old: "		t.backlog.HoldFiles(t.fileBytes)\n", new: ""},
		caught: []string{filesAdd},
	}, mutant{
		name:   "files: tell no door of new ones",
		edit:   edit{file: file, old: "		t.backlog.HoldFiles(bytes)\n", new: ""},
		caught: []string{filesAdd},
	}, mutant{
		name:   "files: tell no door of those that are gone",
		edit:   edit{file: file, old: "		t.freed.FileBytes -= bytes\n", new: ""},
		caught: []string{filesAdd},
	}, mutant{
		name:   "files: count those that the delivery before has left",
		edit:   edit{file: file, old: "	case m.to == removed, m.to == wire.LocationInProgress:\n", new: "	case m.to == removed:\n"},
		caught: []string{filesAdd, "the database agrees with itself"},
	}, mutant{
		name:   "files: count those of a result as gone",
		edit:   edit{file: file, old: "		bytes = sizeOf(m.result.Artifacts)\n", new: ""},
		caught: []string{filesAdd},
	}, mutant{
		name:   "files: count both of one name",
		edit:   edit{file: file, old: "		replaced, *had = had.File, *a\n", new: "		replaced = had.File\n		a.SizeBytes += had.SizeBytes\n		*had = *a\n"},
		caught: []string{filesAdd},
	}, mutant{
		name:   "files: keep them in no counters",
		edit:   edit{file: file, old: "		q.index.AddFileBytes(more)\n", new: ""},
		caught: []string{"the database agrees with itself"},
	})
}
