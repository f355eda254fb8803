package sim

// Faults of those who watch: events lost in silence, twice or of others, and figures that are
// not those of the positions.
func init() {
	const stream = "internal/watch/stream.go"
	said := []string{"what a client does not get is said"}
	others := []string{"no event of another tenant"}
	mutants = append(mutants, mutant{
		name: "watch: give the last event again to who resumes",
		edit: edit{
			file: stream, old: "	foreign := w.ask.CreationID",
			new: "	for i := range w.after {\n		w.after[i] -= min(1, w.after[i])\n	}\n	foreign := w.ask.CreationID",
		},
		caught: append([]string{"a client gets every event once and in order"}, said...),
	}, mutant{
		name:   "watch: pass over an event",
		edit:   edit{file: stream, old: "			w.after[shard] = r.Number\n", new: "			w.after[shard] = r.Number + r.Number%2\n"},
		caught: append([]string{"a client gets every event once and in order"}, said...),
	}, mutant{
		name:   "watch: do not say what was evicted",
		edit:   edit{file: stream, old: "	s.put(gap)\n", new: "	if gap.Reason != wire.GapEvicted {\n		s.put(gap)\n	}\n"},
		caught: said,
	}, mutant{
		name:   "watch: do not say what a slow client has missed",
		edit:   edit{file: stream, old: "	s.put(gap)\n", new: "	if gap.Reason != wire.GapSlow {\n		s.put(gap)\n	}\n"},
		caught: said,
	}, mutant{
		name:   "watch: do not say what is over the rate",
		edit:   edit{file: stream, old: "	if skipped.Missed > 0 {\n", new: "	if skipped.Missed > 1 {\n"},
		caught: said,
	}, mutant{
		name: "watch: show events of another tenant",
		edit: edit{
			file: stream, old: "w.filter.takesCause(r.Cause.String()) && w.filter.takes(s.board, r.Slot)",
			new: "w.filter.takesCause(r.Cause.String()) && s.board.nameOf(r.Slot) != nil && matches(w.filter.commands, s.board.nameOf(r.Slot).Command)",
		},
		caught: others,
	}, mutant{
		name:   "watch: show rows of another tenant",
		edit:   edit{file: "internal/watch/filter.go", old: "f.rights.sees(name) && matches", new: "matches"},
		caught: others,
	}, mutant{
		name:   "watch: show events before their queue has its figures",
		edit:   edit{file: stream, old: "	now := s.board.At\n", new: "	now := s.board.Events.Positions()\n"},
		caught: append([]string{"no event before its batch is durable"}, said...),
	})
}

// Faults of tables and rights.
func init() {
	const stream, tables, subscriber = "internal/watch/stream.go", "internal/watch/tables.go", "internal/watch/subscriber.go"
	figures := []string{"who watches has the figures"}
	mutants = append(mutants, mutant{
		name:   "watch: give a snapshot the positions of now",
		edit:   edit{file: tables, old: "At: b.At, More: !done", new: "At: b.Events.Positions(), More: !done"},
		caught: []string{"a snapshot has the events up to its positions"},
	}, mutant{
		name:   "watch: leave out a row that changed",
		edit:   edit{file: tables, old: "r.changed <= t.sent && !t.snapshot", new: "r.changed <= t.sent+1 && !t.snapshot"},
		caught: figures,
	}, mutant{
		name:   "watch: have the queues of all tenants in a total",
		edit:   edit{file: tables, old: "		if r.name.Command == \"\" || !f.takes(b, uint32(i)) {\n			continue\n		}\n		for", new: "		if r.name.Command == \"\" {\n			continue\n		}\n		for"},
		caught: figures,
	}, mutant{
		name:   "watch: tell names in snapshots alone",
		edit:   edit{file: tables, old: "		if s.learns(r) {\n", new: "		if t.snapshot && s.learns(r) {\n"},
		caught: []string{"names come before rows"},
	}, mutant{
		name:   "watch: mark what the board does not have",
		edit:   edit{file: subscriber, old: "	least := slices.Clone(s.board.At)\n", new: "	least := s.board.Events.Positions()\n"},
		caught: []string{"a mark says what was sent"},
	}, mutant{
		name: "watch: keep the rights of an older token",
		edit: edit{
			file: subscriber, old: "		w.filter = s.filterOf(w.ask)\n", new: "",
		},
		caught: []string{"no event of another tenant", "who watches has the figures"},
	}, mutant{
		name:   "watch: go on without a snapshot with other rights",
		edit:   edit{file: subscriber, old: "		if changed {\n", new: "		if changed && w.history {\n"},
		caught: []string{"a subscription is served", "a snapshot comes before its ticks"},
	}, mutant{
		name:   "watch: show payloads to all",
		edit:   edit{file: subscriber, old: "	if s.rights.contents {\n", new: "	if s.rights.tenant != \"\" {\n"},
		caught: []string{"a task is shown as the rights say"},
	}, mutant{
		name:   "watch: go on with the positions of another database",
		edit:   edit{file: stream, old: "	if w.after == nil || foreign {\n", new: "	if w.after == nil {\n"},
		caught: []string{"a subscription is served", "frames are of a subscription"},
	}, mutant{
		name:   "watch: keep the percentiles of a total while no row changes",
		edit:   edit{file: "internal/watch/board.go", old: " && r.times == times {", new: " {"},
		caught: []string{"who watches has the figures"},
	}, mutant{
		name:   "watch: number the changes of a forgotten roster again",
		edit:   edit{file: "internal/watch/roster.go", old: "			b.forgotten = max(b.forgotten, r.version+1)\n", new: ""},
		caught: []string{"who watches has the figures"},
	})
}

// Faults of what the log forgets, and of its history.
func init() {
	const log, history = "internal/events/log.go", "internal/events/history.go"
	addsUp := []string{"figures of events add up", "points are what happened"}
	points := []string{"points are what happened"}
	mutants = append(mutants, mutant{
		name:   "events: forget the counts of a queue for one quiet shard",
		edit:   edit{file: log, old: "			return false, false\n", new: "			continue\n"},
		caught: addsUp,
	}, mutant{
		name:   "events: drop a quiet queue that has tasks",
		edit:   edit{file: log, old: "ends = ends && p.tasks == [places]int64{} && s.ring", new: "ends = ends && s.ring"},
		caught: addsUp,
	}, mutant{
		name:   "events: drop a quiet queue that has events",
		edit:   edit{file: log, old: "p.tasks == [places]int64{} && s.ring.oldestMs() >= int64(p.atS+1)*1000", new: "p.tasks == [places]int64{}"},
		caught: addsUp,
	}, mutant{
		name:   "events: go on in the points of a queue that comes back",
		edit:   edit{file: history, old: "				s.begun[n] = counts{}.since(&came)\n", new: "				_ = came\n"},
		caught: points,
	}, mutant{
		name:   "events: lose what an old event was in its step",
		edit:   edit{file: history, old: "				s.begun[n] = counts{}.since(&came)\n", new: "				_, s.begun[n] = came, counts{}\n"},
		caught: points,
	}, mutant{
		name:   "events: have the tasks of a tenant in the total of another",
		edit:   edit{file: history, old: "	if t := h.total(name.Tenant, nowMs); t != nil {\n		t.add(&more, &came)\n", new: "	if t := h.total(name.Tenant, nowMs); t != nil {\n		t.add(&h.held[name.Slot], &came)\n"},
		caught: points,
	}, mutant{
		name:   "events: leave the times of a queue out of the totals",
		edit:   edit{file: history, old: "		s.now.run[i] += came.run[i]\n", new: ""},
		caught: points,
	}, mutant{
		name:   "events: count a second again in the next one",
		edit:   edit{file: history, old: "		s.begun[n] = s.now\n", new: "		if n > 0 {\n			s.begun[n] = s.now\n		}\n"},
		caught: points,
	})
}
