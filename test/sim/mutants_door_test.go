package sim

const (
	doorHolds   = "a limit of a tenant holds"
	isLetIn     = "a tenant that has some left is let in"
	pendingAdds = "what waits of a tenant is counted"
)

// Faults about the new work of several tenants in a mailbox.
func init() {
	mutants = append(mutants, mutant{
		name:   "admission: let one tenant have all while others wait",
		edit:   edit{file: "mailbox/lane.go", old: "	return own < half && (", new: "	return own < most && ("},
		caught: []string{"a queue that stands does not grow"},
	}, mutant{
		name:   "admission: keep others out for what one tenant has",
		edit:   edit{file: "mailbox/lane.go", old: "l.upTo(half) < most)", new: "l.upTo(most) < most)"},
		caught: []string{"a refusal has its reason"},
	}, mutant{
		name: "admission: fill a mailbox for one tenant while others wait",
		edit: edit{
			file: "mailbox/mailbox.go",
			old:  "if own > 0 && (messages > most.Messages/2-own || bytes > most.Bytes/2-ownBytes) {", new: "if own > 0 && ownBytes < 0 {",
		},
		caught: []string{"no tenant has more than half while another waits"},
	}, mutant{
		name:   "admission: stay with the new work of one tenant",
		edit:   edit{file: "mailbox/lane.go", old: "			l.at++\n", new: "			l.at += 0\n"},
		caught: []string{"no new work waits for that of others"},
	}, mutant{
		name:   "admission: take a claim for work of nobody",
		edit:   edit{file: "shardactor/door.go", old: "		return m.Consumer.Tenant\n", new: "		return \"\"\n"},
		caught: []string{"a refusal has its reason", "a queue that stands does not grow", "no tenant has more than half while another waits"},
	})
}

// Faults about the limits of tenants.
func init() {
	mutants = append(mutants, mutant{
		name:   "door: begin with a full bucket",
		edit:   edit{file: "internal/credit/rate.go", old: "r.nextNs.Store(sinceMs*millisecondNs + every)", new: "r.nextNs.Store(sinceMs*millisecondNs - slack)"},
		caught: []string{doorHolds, "a limit of starts in a second holds", "a limit of starts of a key holds"},
	}, mutant{
		name:   "door: give nothing back for a task that was not made",
		edit:   edit{file: "internal/limit/table.go", old: "	k.untake(1)\n", new: ""},
		caught: []string{isLetIn, doorHolds},
	}, mutant{
		name:   "door: keep the place of a task that was not made",
		edit:   edit{file: "internal/limit/table.go", old: "		k.tenant.uncount(1, int64(bytes))\n", new: "		_ = bytes\n"},
		caught: []string{pendingAdds},
	}, mutant{
		name:   "door: forget at a start what waits",
		edit:   edit{file: "shard/pending.go", old: "		t.backlog.Hold(t.waiting, t.bytes)\n", new: ""},
		caught: []string{pendingAdds},
	}, mutant{
		name:   "door: count nothing that comes back from a worker",
		edit:   edit{file: "shard/pending.go", old: "	case waits(to):\n		s.beginsToWait(q, bytes, false)\n", new: "	case waits(to):\n		s.beginsToWait(q, bytes, true)\n"},
		caught: []string{pendingAdds},
	}, mutant{
		name:   "mailbox: take pushes whole while owners share",
		edit:   edit{file: "mailbox/lane.go", old: "	whole, share := l.shared == 0, (most", new: "	whole, share := true, (most"},
		caught: []string{"rounds are short while tenants share a shard"},
	}, mutant{
		name:   "door: free places without their bytes",
		edit:   edit{file: "shard/pending.go", old: "	t.freed.Bytes += bytes\n", new: ""},
		caught: []string{pendingAdds},
	}, mutant{
		name:   "door: forget at a start how large what waits is",
		edit:   edit{file: "shard/shard.go", old: "			q.tenant.bytes += found.Counters.WaitingBytes\n", new: ""},
		caught: []string{pendingAdds},
	}, mutant{
		name:   "index: keep the bytes of a task that ceases to wait",
		edit:   edit{file: "shard/pending.go", old: "	q.index.AddWaitingBytes(-bytes)\n", new: ""},
		caught: []string{"the database agrees with itself"},
	}, mutant{
		name:   "door: let in more bytes than may wait",
		edit:   edit{file: "internal/limit/table.go", old: "	if !addUpTo(&t.bytes, bytes, l.PendingBytes) {", new: "	if !addUpTo(&t.bytes, bytes, 2*l.PendingBytes) {"},
		caught: []string{doorHolds, "no more wait than the limit of a tenant says"},
	}, mutant{
		name:   "door: take of the tenant what its subject refuses",
		edit:   edit{file: "internal/limit/table.go", old: "			all.UnstartMany(n)\n", new: ""},
		caught: []string{isLetIn, doorHolds},
	}, mutant{
		name:   "door: begin every rate anew with each change",
		edit:   edit{file: "internal/limit/table.go", old: "	if was != nil && sameRates(&was.limits.DoorLimits, &l.DoorLimits) {\n", new: "	if was != nil && false {\n"},
		caught: []string{isLetIn, doorHolds},
	}, mutant{
		name:   "door: give each tenant the same turns",
		edit:   edit{file: "shard/grant.go", old: "t.inRow >= t.tenants[t.at].weight {", new: "t.inRow >= 1 {"},
		caught: []string{"a tenant has as many turns as its weight"},
	}, mutant{
		name:   "door: copy no limits to other shards at a start",
		edit:   edit{file: "shardactor/named.go", old: "		r.Named = settle(r.Named, truth)\n", new: "		_ = r\n"},
		caught: []string{"the database agrees with itself", pendingAdds, "limits that were set are those", "a tenant has as many turns as its weight"},
	})
}
