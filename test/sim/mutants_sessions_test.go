package sim

// Faults about sessions that lose their socket and come back.
var sessionMutants = []mutant{{
	name: "resume within the grace only",
	edit: edit{
		file: "shard/subscribers.go",
		old:  "s.leases.Move(e, e.AckedUntilMs)\n", new: "",
	},
	caught: []string{"a lease lasts as long as promised", "after a stall clients speak first"},
}, {
	name: "forget what is held",
	edit: edit{
		file: "shard/subscribers.go",
		old:  "answer.Held = append(answer.Held,", new: "_ = append(answer.Held,",
	},
	caught: []string{"a resumed session has its tasks"},
}, {
	name: "hold what never arrived",
	edit: edit{
		file: "shard/subscribers.go",
		old:  "	s.socketEnded(m.Consumer, 0)\n", new: "",
	},
	also:   []edit{{file: "shard/subscribers.go", old: "if !e.Confirmed {\n			// The task is to be put back", new: "if false {\n			// The task is to be put back"}},
	caught: []string{"a resumed session has its tasks", "every change has its event", "what never arrived goes back at once"},
}, {
	name: "hear the end of an older socket",
	edit: edit{
		file: "shard/subscribers.go",
		old:  "sub != nil && sub.consumer.Epoch > m.Consumer.Epoch {\n		return\n", new: "sub != nil && false {\n		return\n",
	},
	caught: []string{"a lease lasts as long as promised", "no ready task sits beside an open session with credit",
		"every change has its event", "every event has a cause", "a task moves as its lifecycle says",
		"a task leaves the place it was in", "a request is answered as the protocol says", "a reason is the one that holds",
		"credit adds up", "after a stall clients speak first"},
}, {
	name: "grant beyond what is held",
	edit: edit{
		file: "session/resume.go",
		old:  "c.out.InFlight = len(g.welcome.Held)", new: "c.out.InFlight = 0",
	},
	caught: []string{"credit adds up"},
}, {
	name: "confirm what a heartbeat does not name",
	edit: edit{
		file: "shard/lease.go",
		old:  "if m.Tasks != nil {\n		// Only", new: "if true {\n		// Only",
	},
	caught: []string{"a resumed session has its tasks", "every change has its event", "what never arrived goes back at once",
		"a task moves as its lifecycle says"},
}, {
	name: "take a task over without a word",
	edit: edit{
		file: "shard/lease.go",
		old:  "		s.revoke(e, wire.RevokedSuperseded)\n", new: "",
	},
	caught: []string{"a request is answered as the protocol says", "every request is answered"},
}, {
	name: "no grace for what arrived",
	edit: edit{
		file: "shard/subscribers.go",
		old:  "if !e.Confirmed && s.space < store.OnlyDelete {", new: "if s.space < store.OnlyDelete {",
	},
	caught: []string{"every event has a cause", "a task moves as its lifecycle says", "a lease lasts as long as promised",
		"every change has its event", "a request is answered as the protocol says", "what never arrived goes back at once",
		"a task leaves the place it was in", "a resumed session has its tasks"},
}, {
	name: "never count what does not arrive",
	edit: edit{
		file: "shard/suspect.go",
		old:  "return t.Undelivered >= maxUndelivered }", new: "return t.Undelivered > maxUndelivered }",
	},
	caught: []string{"a task moves as its lifecycle says", "every event has a cause", "a task leaves the place it was in",
		"first in, first out, by priority", "a task comes out as it went in", "the store says what happened"},
}}

func init() { mutants = append(mutants, sessionMutants...) }
