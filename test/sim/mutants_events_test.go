package sim

// Faults of events: shown too early, twice, not at all, or with figures that do not belong
// to them.
func init() {
	const tally, log, gate = "internal/events/tally.go", "internal/events/log.go", "shardactor/gate.go"
	addsUp := []string{"figures of events add up"}
	once := []string{
		"events are observed once and in order", "every durable event is observed", "events are observed before the effects of their round",
	}
	mutants = append(mutants, mutant{
		name: "events: show them before their sync",
		edit: edit{
			file: gate, old: "		o.pending = append(o.pending, round)\n",
			new: "		o.observe(&round)\n		round.events, round.notes = nil, nil\n		o.pending = append(o.pending, round)\n",
		},
		caught: []string{"no event before its batch is durable"},
	}, mutant{
		name: "events: show them twice",
		edit: edit{
			file: gate, old: "		o.events.Observe(o.shard, round.events)\n",
			new: "		o.events.Observe(o.shard, round.events)\n		o.events.Observe(o.shard, round.events)\n",
		},
		caught: once,
	}, mutant{
		name:   "events: forget those of a round without effects",
		edit:   edit{file: gate, old: "len(round.effects) == 0 && len(round.events) == 0 && len(round.notes) == 0 {", new: "len(round.effects) == 0 {"},
		caught: once,
	}, mutant{
		name: "events: show effects first",
		edit: edit{
			file: gate, old: "		o.observe(&round)\n		deliver(round.effects)\n", new: "		deliver(round.effects)\n		o.observe(&round)\n",
		},
		test: "shardactor TestEventsLeaveAfterTheirSyncInOrderAndBeforeTheEffectsOfTheirRound",
	}, mutant{
		name: "events: use their memory again before they are shown",
		edit: edit{
			file: "shardactor/loop.go", old: "			l.core.ReuseEvents(free)\n		}\n",
			new: "			l.core.ReuseEvents(free)\n		}\n		l.core.ReuseEvents(out.Events)\n",
		},
		caught: once,
	}, mutant{
		name:   "events: begin after a restart without the tasks",
		edit:   edit{file: log, old: "			p.tasks[place] += tasks\n", new: "			p.tasks[place] += tasks * 0\n"},
		caught: addsUp,
	}, mutant{
		name:   "events: begin after a restart with number 1",
		edit:   edit{file: log, old: "	s.number = number\n", new: ""},
		caught: []string{"events are numbered without gaps"},
	}, mutant{
		name:   "events: count a queue of another tenant",
		edit:   edit{file: tally, old: "record.QueueKey{Command: e.Command, Tenant: e.Tenant}", new: "record.QueueKey{Command: e.Command, Tenant: \"blue\"}"},
		caught: addsUp,
	}, mutant{
		name:   "events: leave a task where it was",
		edit:   edit{file: tally, old: "	if from != nowhere {\n", new: "	if from != nowhere && to != nowhere {\n"},
		caught: addsUp,
	}, mutant{
		name:   "events: do not say that a queue changed",
		edit:   edit{file: tally, old: "	t.changed[p.slot] = version\n", new: ""},
		caught: addsUp,
	}, mutant{
		name:   "events: forget what changes after a look",
		edit:   edit{file: log, old: "	l.version.Store(version + 1)\n", new: ""},
		caught: addsUp,
	}, mutant{
		name:   "events: read the ring one further",
		edit:   edit{file: "internal/events/ring.go", old: "	i := r.next - 1 - after\n", new: "	i := r.next - 2 - after\n"},
		caught: []string{"the ring has the last events"},
	})
}

// Faults below the gate, in the core and in the log.
func init() {
	mutants = append(mutants, mutant{
		name: "events: count a run from the record after a restart",
		edit: edit{
			file: "shard/transition.go", old: "cmp.Or(s.leases.Get(t.ID).Lease.GrantedAtMs, t.UpdatedAtMs)", new: "cmp.Or(t.UpdatedAtMs)",
		},
		caught: []string{"a task moves as its lifecycle says"},
	}, mutant{
		name: "events: take another queue in the same place for this one",
		edit: edit{file: "internal/events/tally.go", old: "r.queue != e.Queue || r.part == nil {", new: "r.part == nil {"},
		test: "internal/events TestTallyAndRingAgreeWithAllEvents",
	}, mutant{
		name: "events: give a worker's number away that an event still has",
		edit: edit{file: "internal/events/ring.go", old: "k.events--; k.events == 0 && n != 0 {", new: "k.events--; n != 0 {"},
		test: "internal/events TestTallyAndRingAgreeWithAllEvents",
	}, mutant{
		name: "events: leave an unreadable task out",
		edit: edit{file: "shard/grant.go", old: "	s.eventUnreadable(q, k.ID, wire.LocationPending)\n", new: ""},
		test: "shard TestATaskWhoseRecordIsGoneLeavesWithAnEvent",
	})
}
