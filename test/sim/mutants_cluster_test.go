package sim

const (
	leadsNoMore = "a node that leads no more says nothing"
	isWritten   = "what the leader commits is written"
	sameOnAll   = "all nodes have the same"
	inTheLog    = "what the database has not is in the log"
	takesOver   = "a node takes a snapshot over"
	noRunBack   = "time does not run back"
	canResume   = "a session can resume at every node"
	nodeStops   = "only a fault of the disk ends the process"
	noGaps      = "events are numbered without gaps"
	agrees      = "the database agrees with itself"
)

// unlikeLeader lets a node go on whose database differs from that of the leader, which would stop
// it before anybody sees what follows.
var unlikeLeader = edit{
	file: "internal/replica/fsm.go",
	old:  "h.checked > 0 && known.digest != h.digest {", new: "false {",
}

func init() { mutants = append(mutants, clusterMutants...) }

// clusterMutants are faults of a cluster.
var clusterMutants = []mutant{{
	nodes: true, name: "cluster: believe entries of every epoch",
	edit: edit{
		file: "internal/replica/fsm.go",
		old:  "if epoch != m.at.epoch || p.number != m.at.numbers[p.shard]+1 {", new: "if p.number != m.at.numbers[p.shard]+1 {",
	},
	caught: []string{noGaps, isWritten, sameOnAll},
}, {
	nodes: true, name: "cluster: believe batches in any order",
	edit: edit{
		file: "internal/replica/fsm.go",
		old:  "if epoch != m.at.epoch || p.number != m.at.numbers[p.shard]+1 {", new: "if epoch != m.at.epoch {",
	},
	caught: []string{nodeStops, sameOnAll},
}, {
	nodes: true, name: "cluster: apply again what the database has",
	edit: edit{
		file: "internal/replica/fsm.go",
		old:  "l.Type != raft.LogCommand || l.Index <= m.at.index {", new: "l.Type != raft.LogCommand {",
	},
	also:   []edit{unlikeLeader},
	caught: []string{sameOnAll},
}, {
	nodes: true, name: "cluster: leave the position in the log out of the batch",
	edit: edit{
		file: "store/replicated.go",
		old:  "if err := joined.Set([]byte(record.PositionKey), position, nil); err != nil {", new: "if err := error(nil); err != nil {",
	},
	caught: []string{inTheLog},
}, {
	nodes: true, name: "cluster: let effects out that were not committed",
	edit: edit{
		file: "store/replicated.go",
		old:  "b.pebble.Repr()); err != nil {", new: "b.pebble.Repr()); err != nil && false {",
	},
	caught: []string{leadsNoMore},
}, {
	nodes: true, name: "cluster: say that it leads without asking",
	edit: edit{
		file: "shardactor/loop.go",
		old:  "if err == nil && applied == l.applied && len(out.Effects) > 0 {", new: "if false {",
	},
	caught: []string{leadsNoMore},
}, {
	nodes: true, name: "cluster: write one batch of those that are applied together",
	edit: edit{
		file: "store/replicated.go",
		old:  "for _, bytes := range batches {", new: "for _, bytes := range batches[:min(1, len(batches))] {",
	},
	caught: []string{agrees, sameOnAll},
}, {
	nodes: true, name: "cluster: number the batches of a leader after those before",
	edit: edit{
		file: "internal/replica/fsm.go",
		old:  "m.at.epoch, m.at.numbers = l.Index, position{}.numbers", new: "m.at.epoch = l.Index",
	},
	caught: []string{isWritten},
}, {
	nodes: true, name: "cluster: take a snapshot without its position",
	edit: edit{
		file: "internal/replica/snapshots.go",
		old:  "	k.meta.Position = position\n	return k.measure()", new: "	return k.measure()",
	},
	caught: []string{inTheLog, takesOver},
}, {
	nodes: true, name: "cluster: start behind the newest snapshot",
	edit: edit{
		file: "internal/replica/node.go",
		old:  "if m.at.index < newest.Position {", new: "if false {",
	},
	caught: []string{inTheLog},
}, {
	nodes: true, name: "cluster: go on at the old position after a snapshot",
	edit: edit{
		file: "internal/replica/fsm.go",
		old:  "	if err == nil {\n		err = m.load()\n	}\n", new: "",
	},
	caught: []string{takesOver},
}, {
	nodes: true, name: "cluster: keep the database before a snapshot",
	edit: edit{
		file: "store/replicated_swap.go",
		old:  "	if err == nil && ready {", new: "	if false && ready {",
	},
	caught: []string{takesOver, inTheLog},
}, {
	nodes: true, name: "cluster: keep the secret of the node",
	edit: edit{
		file: "store/manifest.go",
		old:  "	s.secret, s.creationID = c.Secret, c.CreationID\n", new: "	if s.secret == nil {\n		s.secret = c.Secret\n	}\n	s.creationID = c.CreationID\n",
	},
	caught: []string{canResume},
}, {
	nodes: true, name: "cluster: end the leases of lost sockets at a takeover",
	edit: edit{
		file: "shard/shard.go",
		old:  "		if takeover {", new: "		if false {",
	},
	caught: []string{"a lease lasts as long as promised"},
}, {
	nodes: true, name: "cluster: give who resumes the lease from before the takeover",
	edit: edit{
		file: "shard/shard.go",
		old:  "			e.AckedUntilMs = max(e.AckedUntilMs, expires)\n", new: "",
	},
	caught: []string{"credit adds up"},
}, {
	nodes: true, name: "cluster: do not extend leases over HTTP at a takeover",
	edit: edit{
		file: "shard/shard.go",
		old:  "expires := max(found.Lease.DeadlineMs, nowMs+resumeGraceMs)", new: "expires := found.Lease.DeadlineMs",
	},
	caught: []string{"a lease lasts as long as promised"},
}, {
	nodes: true, name: "cluster: start the clock where the shards were",
	edit: edit{
		file: "store/replicated.go",
		old:  "return s.replicator.LatestMs(), true", new: "return 0, true",
	},
	caught: []string{noRunBack},
}, {
	nodes: true, name: "cluster: sleep as long as if the commit took no time",
	edit: edit{
		file: "shardactor/loop.go",
		old:  "out.NextAtMs-l.nowMs()", new: "out.NextAtMs-now",
	},
	caught: []string{"what is due happens"},
}, {
	nodes: true, name: "cluster: lead with a clock that is off",
	edit: edit{
		file: "internal/peer/look.go",
		old:  "if middle.Abs() <= mostApart {", new: "if middle.Abs() <= 1000*mostApart {",
	},
	caught: []string{"the clock of a leader is that of the others"},
}, {
	nodes: true, name: "cluster: stop for the lowest space of the voters",
	edit: edit{
		file: "internal/peer/look.go",
		old:  "return free[min(1, len(free)-1)]", new: "return free[0]",
	},
	caught: []string{"one full disk of a cluster stops nobody else, and two stop all"},
}, {
	// Only a shard that waits while another one goes on shows it.
	nodes: true, name: "cluster: let effects out with those of the shard that is committed first",
	edit: edit{
		file: "shardactor/loop.go",
		old:  "		applied, err := apply()\n", new: "		early := len(out.Events) > 0\n		if early {\n			l.gate.put(l.applied+1, &out)\n		}\n		applied, err := apply()\n",
	},
	also: []edit{{
		file: "shardactor/loop.go",
		old:  "		if free := l.gate.put(applied, &out); free != nil {", new: "		if early {\n		} else if free := l.gate.put(applied, &out); free != nil {",
	}, {
		file: "store/replicated.go",
		old:  "		s.options.Synced(sp.shard, number)\n", new: "		for i := range s.spans {\n			s.options.Synced(i, s.Submitted(i))\n		}\n",
	}},
	caught: []string{"an effect is delivered once", "every durable event is observed", "events are observed once and in order", noGaps},
}}
