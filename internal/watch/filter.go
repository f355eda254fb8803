package watch

import (
	"slices"
	"strings"

	"codeq/internal/auth"
	"codeq/wire"
)

// rights are what a principal may see.
type rights struct {
	tenant string
	// all: queues of every tenant.
	all bool
	// admin: it may change queues. contents: it sees payloads and errors of tasks.
	admin, contents bool
	// commands are the queues that the credential names, with commas between them; "" for all.
	commands string
}

// rightsOf are the rights of a principal, or forbidden: producers and workers read their tasks
// and no figures.
func rightsOf(who *auth.Principal) (rights, *wire.Error) {
	r := rights{
		tenant: who.Tenant, all: who.Has(auth.ScopeAdminAll), admin: who.Has(auth.ScopeAdmin), contents: who.SeesContents(),
		commands: strings.Join(who.Commands, ","),
	}
	if r.all || who.Has(auth.ScopeRead) {
		return r, nil
	}
	return r, who.CheckScope(auth.ScopeView)
}

// sees reports whether the rights cover a queue.
func (r *rights) sees(name *wire.SlotName) bool {
	if !r.all && name.Tenant != r.tenant {
		return false
	}
	return r.commands == "" || wire.CommandIsAmong(strings.Split(r.commands, ","), name.Command)
}

// whose is the tenant whose queues all are covered, "" for all tenants.
func (r *rights) whose() string {
	if r.all {
		return ""
	}
	return r.tenant
}

// filter decides which queues and causes a subscription is about, and remembers it by slot.
type filter struct {
	rights   rights
	commands []string
	causes   []string
	// joined is the text of commands.
	joined string
	// decided has, by slot, the version of the name and in the lowest bit the decision.
	decided []uint64
}

// takes reports whether the subscription is about the queue of a slot.
func (f *filter) takes(b *Board, slot uint32) bool {
	name := b.nameOf(slot)
	if name == nil {
		return false
	}
	for int(slot) >= len(f.decided) {
		f.decided = append(f.decided, 0)
	}
	key := b.rows[slot].named << 1
	if f.decided[slot]&^1 != key {
		f.decided[slot] = key
		if f.rights.sees(name) && matches(f.commands, name.Command) {
			f.decided[slot] |= 1
		}
	}
	return f.decided[slot]&1 == 1
}

// takesCause reports whether the subscription is about a cause.
func (f *filter) takesCause(cause string) bool {
	return len(f.causes) == 0 || slices.Contains(f.causes, cause)
}

// matches reports whether a command is one of the patterns; none are all.
func matches(patterns []string, command string) bool {
	return len(patterns) == 0 || wire.CommandIsAmong(patterns, command)
}
