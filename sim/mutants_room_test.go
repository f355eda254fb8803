//go:build mutants

package sim

// Faults about the room of sessions.
func init() {
	mutants = append(mutants, mutant{
		name: "room: keep what was answered for over HTTP",
		edit: edit{
			file: "shardactor/owed.go",
			old:  "		s.tell(mb.seat.Sink, &Answered{TaskRef: ref})\n", new: "",
		},
		caught: []string{"room adds up"},
	}, mutant{
		name: "room: forget what is out of a lease that ended",
		edit: edit{
			file: "shardactor/cancel.go",
			old:  "		s.owe(mb, e)\n", new: "",
		},
		caught: []string{"room adds up"},
	}, mutant{
		name: "room: give back for a stranger",
		edit: edit{
			file: "shardactor/owed.go",
			old:  "	return mb.seat.Tenant == owner.Tenant && mb.seat.Subject == owner.Subject\n", new: "	return mb.seat.Tenant == owner.Tenant\n",
		},
		caught: []string{"room adds up"},
	}, mutant{
		name: "room: do not hear that somebody answered",
		edit: edit{
			file: "session/delivery.go",
			old:  "	c.out.Give += units\n", new: "	_ = units\n",
		},
		caught: []string{"no ready task sits beside an open session with room", "room adds up"},
	})
}
