package sim

const (
	endpointNow = "a callback goes where its endpoint is now"
	endpointOff = "an endpoint that is disabled or removed gets nothing"
	silentAlone = "a silent target is tried with one task"
	aimedEnds   = "a target ends its tasks by its answers"
	reportShown = "the newest report is shown"
)

// Faults of endpoints and targets that worlds show.
func init() {
	const target = "internal/callback/target.go"
	mutants = append(mutants, mutant{
		name: "endpoint: tell the home of the tenant alone",
		edit: edit{
			file: "shard/named.go", old: "	s.follow(r.NamedKey, t)\n",
			new: "	if r.Kind != record.KindWebhook || wire.ShardOfTenant(r.Tenant, s.shards) == s.shard {\n		s.follow(r.NamedKey, t)\n	}\n",
		},
		caught: []string{endCalls},
	}, mutant{
		name:   "endpoint: post what was held to where it went",
		edit:   edit{file: "internal/callback/endpoint.go", old: "	if d.version != 0 && d.version == n.Version {\n", new: "	if d.version != 0 {\n"},
		caught: []string{endpointNow, endpointOff},
	}, mutant{
		name:   "target: leave its places closed",
		edit:   edit{file: target, old: "	if w.targets[s.key] == s && !w.stopped {\n", new: "	if false {\n"},
		caught: []string{nothingWaits, silentAlone, "credit adds up"},
	}, mutant{
		name:   "target: try a silent one with two tasks",
		edit:   edit{file: target, old: "		size = 1\n", new: "		size = 2\n"},
		caught: []string{silentAlone, "credit adds up"},
	})
}

// Faults of reports, files and notifications that worlds show.
func init() {
	const notify = "internal/callback/notify.go"
	mutants = append(mutants, mutant{
		name:   "notify: tell of a queue that is full",
		edit:   edit{file: notify, old: "(most == 0 || f.InProgress < int64(most))", new: "(most >= 0)"},
		caught: []string{"nobody is told of work that may not begin"},
	}, mutant{
		name:   "notify: choose another by each hash",
		edit:   edit{file: notify, old: "s.weight(q.Command) > hashed.weight(q.Command):", new: "nowMs%2 == 0:"},
		caught: []string{"a queue chooses the same subscriber"},
	}, mutant{
		name:   "report: show that of an earlier delivery",
		edit:   edit{file: "shard/transition.go", old: "cmp.Or(e.Lease.Progress, t.Progress), t.Printed", new: "cmp.Or(t.Progress, e.Lease.Progress), t.Printed"},
		caught: []string{reportShown},
	}, mutant{
		name:   "report: never write what has waited",
		edit:   edit{file: "shard/report.go", old: "		s.unsavedReports = append(s.unsavedReports, e)\n", new: ""},
		caught: []string{reportShown, "a crash loses the last second of reports"},
	}, mutant{
		name:   "file: let a result name what an earlier delivery has uploaded",
		edit:   edit{file: "shard/grant.go", old: "Files: record.Files{Begun: t.Files.Begun},", new: "Files: t.Files,"},
		caught: []string{"a request is answered as the protocol says", "files are numbered and named as they come"},
	}, mutant{
		name:   "file: count what an earlier delivery has listed",
		edit:   edit{file: "shard/file.go", old: "	case m.to == removed, m.to == wire.LocationInProgress:\n", new: "	case m.to == removed:\n"},
		caught: []string{"the database agrees with itself"},
	}, mutant{
		name:   "file: keep those of a task that is removed",
		edit:   edit{file: "shard/retention.go", old: "e.HasKey || e.Labelled || e.HasFiles {", new: "e.HasKey || e.Labelled {"},
		caught: []string{lifecycle, "a file that no result names goes", filesAdd, "the database agrees with itself"},
	})
}

// Faults of trace contexts.
func init() {
	const file = "shard/callback.go"
	mutants = append(mutants, mutant{
		name:   "trace: give a delivery what its task was posted with",
		edit:   edit{file: "shard/grant.go", old: "	task.TraceParent = s.traceAfter(t, e.Lease.Delivery)\n", new: ""},
		caught: []string{traceGoesOn},
	}, mutant{
		name:   "trace: hang a callback below the producer",
		edit:   edit{file: file, old: "TraceParent: s.traceAfter(t, t.Deliveries),", new: "TraceParent: t.TraceParent,"},
		caught: []string{traceGoesOn},
	}, mutant{
		name:   "trace: lose the state on the way to a callback",
		edit:   edit{file: file, old: "TraceState: t.TraceState,", new: ""},
		caught: []string{traceGoesOn},
	}, mutant{
		name:   "trace: post without one",
		edit:   edit{file: "internal/callback/worker.go", old: "TraceParent: g.Task.TraceParent, ", new: ""},
		caught: []string{traceGoesOn},
	})
}
