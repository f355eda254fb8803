package sim

// Faults of pages: rows that are not told, or told wrong, and new tasks that are counted wrong.
func init() {
	const page = "internal/watch/page.go"
	rights := []string{"a task is shown as the rights say"}
	above := []string{"a page counts what is new"}
	mutants = append(mutants, mutant{
		name:   "page: do not say what has left",
		edit:   edit{file: page, old: "	p.left = append(p.left, id.String())\n", new: ""},
		caught: []string{"what leaves a page is said"},
	}, mutant{
		name:   "page: do not read again what changes at its place",
		edit:   edit{file: page, old: "		p.changed, p.moved = append(p.changed, id), true\n", new: "		p.moved = true\n"},
		caught: []string{"what changes in a page is said"},
	}, mutant{
		name:   "page: count its own rows as new",
		edit:   edit{file: page, old: "		if !p.rows[t.ID] {\n", new: "		if t != nil {\n"},
		caught: above,
	}, mutant{
		name:   "page: count new tasks upwards alone",
		edit:   edit{file: page, old: "w.tells || above != w.above, above", new: "w.tells || above > w.above, max(above, w.above)"},
		caught: above,
	}, mutant{
		name:   "page: count what comes behind the last row",
		edit:   edit{file: page, old: "		if !p.whole && p.rows[list[i].ID] {\n", new: "		if !p.whole && p.rows[list[i].ID] && i > len(list) {\n"},
		caught: above,
	}, mutant{
		name:   "page: show errors to all",
		edit:   edit{file: page, old: "	if s.rights.contents {\n", new: "	if s.rights.tenant != \"\" {\n"},
		caught: rights,
	}, mutant{
		name:   "page: show payloads",
		edit:   edit{file: page, old: "	row.Payload, row.History, row.Error, row.Progress = nil, nil, \"\", t.Progress.Outline()\n", new: "	row.History, row.Error, row.Progress = nil, \"\", t.Progress.Outline()\n"},
		caught: rights,
	})
}

// Faults of sessions, of the server, and of the figures that no event tells.
func init() {
	const roster, overview, figures = "internal/watch/roster.go", "internal/watch/overview.go", "internal/watch/figures.go"
	has := []string{"who watches has the figures"}
	needed := []string{"what is needed is said"}
	mutants = append(mutants, mutant{
		name:   "workers: keep a session that has ended",
		edit:   edit{file: roster, old: "			old.leftAtMs, old.changed = nowMs, version\n", new: "			old.changed = version\n"},
		caught: has,
	}, mutant{
		name:   "workers: pass over what a session holds",
		edit:   edit{file: roster, old: "	return !reflect.DeepEqual(&seen, now)\n", new: "	seen.Held = now.Held\n	return !reflect.DeepEqual(&seen, now)\n"},
		caught: has,
	}, mutant{
		name:   "server: say what queues of another tenant need",
		edit:   edit{file: overview, old: "n.Command != \"\" && !rights.sees(", new: "n.Command == \"none\" && !rights.sees("},
		caught: needed,
	}, mutant{
		name:   "server: tell reasons of dead letters to all",
		edit:   edit{file: overview, old: "		if rights.contents {\n", new: "		if rights.tenant != \"\" {\n"},
		caught: []string{"a need is told as the rights say"},
	}, mutant{
		name:   "server: show figures that are a minute old",
		edit:   edit{file: overview, old: "nowMs < o.lookedAtMs+secondMs", new: "nowMs < o.lookedAtMs+60*secondMs"},
		caught: []string{"the server is shown as it is"},
	}, mutant{
		name:   "server: miss a worker that has just taken tasks",
		edit:   edit{file: "internal/needs/needs.go", old: " || c.Beside.Started > 0)\n", new: ")\n"},
		caught: needed,
	}, mutant{
		name:   "figures: do not say that a queue is paused",
		edit:   edit{file: figures, old: "		if all[i].Paused {\n", new: "		if all[i].Paused && all[i].Deleting {\n"},
		caught: has,
	}, mutant{
		name:   "figures: show an oldest task that is stale",
		edit:   edit{file: figures, old: "	s.tablesAt = max(nowMs+secondMs,", new: "	s.tablesAt = max(nowMs+5*secondMs,"},
		caught: has,
	}, mutant{
		name:   "figures: take percentiles of another histogram",
		edit:   edit{file: figures, old: "percentiles(&q.counts.Run, &q.window.Run)", new: "percentiles(&q.counts.Wait, &q.window.Wait)"},
		caught: has,
	}, mutant{
		name: "figures: take percentiles of another queue",
		edit: edit{
			file: figures, old: "		*q.second = *q.counts\n",
			new: "		if o := &s.queues[0]; o.counts != nil {\n			q.figures[wire.FigureWaitP50], q.figures[wire.FigureWaitP99] = percentiles(&o.counts.Wait, &o.window.Wait)\n		}\n		*q.second = *q.counts\n",
		},
		caught: has,
	}, mutant{
		name:   "figures: count what came since the last look as that of a second",
		edit:   edit{file: figures, old: "*secondMs + tookMs/2) / tookMs", new: "*secondMs + tookMs/2) / secondMs"},
		caught: has,
	})
}
