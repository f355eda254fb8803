package sim

const (
	shareHolds   = "a limit of a key holds"
	notForgotten = "what waits for a key is not forgotten"
	inKeyOrder   = "the tasks of a key go in their order"
	behindOthers = "a task waits for its key behind others of it"
)

// Faults about the limits of concurrency keys.
func init() {
	mutants = append(mutants, mutant{
		name:   "key: start beside a full one",
		edit:   edit{file: "shard/grant.go", old: "	if s.keyIsFull(q, t.ConcurrencyKey) {\n", new: "	if false {\n"},
		caught: []string{shareHolds},
	}, mutant{
		name:   "key: count less at a start",
		edit:   edit{file: "shard/keys.go", old: ", t.ConcurrencyKey).running++\n", new: ", t.ConcurrencyKey).running--\n"},
		caught: []string{shareHolds, behindOthers},
	}, mutant{
		name:   "key: forget at a start who waits",
		edit:   edit{file: "shard/shard.go", old: "	s.restoreKeys(r.LimitedKeys)\n", new: ""},
		caught: []string{notForgotten, behindOthers, allEnds},
	}, mutant{
		name:   "key: keep others waiting when a delivery ends",
		edit:   edit{file: "shard/keys.go", old: "	k.running--\n	if k.waits {\n		s.free(k, 1)\n	}\n", new: "	k.running--\n"},
		caught: []string{notForgotten, allEnds},
	}, mutant{
		name:   "key: keep others waiting when a ready task is cancelled",
		edit:   edit{file: "shard/keys.go", old: "	default:\n		s.freeKey(q, t.ConcurrencyKey)\n", new: "	default:\n"},
		caught: []string{notForgotten, allEnds},
	}, mutant{
		name:   "key: wait for ever behind the last one that was cancelled",
		edit:   edit{file: "shard/keys.go", old: "	if m.to != wire.LocationPending && m.to != wire.LocationLimited {\n", new: "	if false {\n"},
		caught: []string{notForgotten, allEnds, "a task waits for its key only if that holds it"},
	}, mutant{
		name:   "key: overtake those that wait",
		edit:   edit{file: "shard/keys.go", old: "	return k != nil && k.waits || s.startable(q, k) == 0\n", new: "	return s.startable(q, k) == 0\n"},
		caught: []string{behindOthers},
	}, mutant{
		name:   "key: let nobody go on when the limit rises",
		edit:   edit{file: "shard/keys.go", old: "		q.rateSinceMs = s.now\n	}\n	s.freeAll(q)\n", new: "		q.rateSinceMs = s.now\n	}\n"},
		caught: []string{notForgotten, allEnds},
	}, mutant{
		name:   "key: look too late in the order of a key",
		edit:   edit{file: "shard/keys.go", old: "	if e.Compare(&k.first) < 0 {\n", new: "	if false {\n"},
		caught: []string{inKeyOrder, notForgotten, behindOthers, allEnds},
	}, mutant{
		name:   "key: start without a start",
		edit:   edit{file: "shard/keys.go", old: "		k.starts.Start(s.now)\n", new: ""},
		caught: []string{"a limit of starts of a key holds"},
	}, mutant{
		name:   "key: forget the next start",
		edit:   edit{file: "shard/keys.go", old: "		if k.waits {\n			s.free(k, 1)\n		}\n		if at", new: "		if at"},
		caught: []string{notForgotten, allEnds},
	}, mutant{
		name:   "key: name no key in the reason",
		edit:   edit{file: "shard/keys.go", old: "	w.Reason, w.Key = wire.WaitingLimit, key\n", new: "	w.Reason = wire.WaitingLimit\n"},
		caught: []string{reasonHolds},
	}, mutant{
		name:   "key: list what waits for a key nowhere",
		edit:   edit{file: "store/read_order.go", old: "		o.add(limited, limited, c.Limited)\n", new: "		_ = limited\n"},
		caught: []string{"a page has the rows of its list", "a list has its tasks in order"},
	})
}
