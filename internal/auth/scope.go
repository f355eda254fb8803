package auth

import (
	"slices"

	"codeq/wire"
)

// The scopes of a credential. All but ScopeView allow to read the tasks and results of the
// tenant.
const (
	// ScopeProduce may enqueue tasks and cancel them.
	ScopeProduce = "codeq:produce"
	// ScopeClaim may take tasks over HTTP, ScopeSubscribe over a session. The others may answer
	// for tasks; ScopeAbandon may also hand them back unharmed.
	ScopeClaim     = "codeq:claim"
	ScopeSubscribe = "codeq:subscribe"
	ScopeHeartbeat = "codeq:heartbeat"
	ScopeResult    = "codeq:result"
	ScopeNack      = "codeq:nack"
	ScopeAbandon   = "codeq:abandon"
	// ScopeView may see queues, lists and tasks of its tenant, and nothing of what producers
	// and workers put into them.
	ScopeView = "codeq:read"
	// ScopeAdmin may see and change the queues of its tenant; it has ScopeView too.
	ScopeAdmin = "codeq:admin"
	// ScopeAdminAll is ScopeAdmin for every tenant, and may copy all data of the server and see
	// the settings.
	ScopeAdminAll = "codeq:admin:all"
	// ScopeRead may watch the events of its tenant, and changes nothing.
	ScopeRead = "read"
)

// Scopes lists every scope.
func Scopes() []string {
	return append(WorkerScopes(), ScopeProduce, ScopeView, ScopeAdmin, ScopeAdminAll, ScopeRead)
}

// WorkerScopes are the six scopes of a worker.
func WorkerScopes() []string {
	return []string{ScopeClaim, ScopeSubscribe, ScopeHeartbeat, ScopeResult, ScopeNack, ScopeAbandon}
}

// scopeGroups lists the words that stand for one or several scopes.
func scopeGroups() []string { return []string{"producer", "worker", "admin", "operator"} }

// ExpandScopes replaces the words that stand for several scopes, and drops what is no scope.
// Each scope is there once.
func ExpandScopes(words []string) []string {
	scopes := []string{}
	for _, word := range words {
		switch word {
		case "producer":
			scopes = append(scopes, ScopeProduce)
		case "worker":
			scopes = append(scopes, WorkerScopes()...)
		case "admin":
			scopes = append(scopes, ScopeAdmin)
		case "operator":
			scopes = append(scopes, ScopeAdminAll)
		default:
			if slices.Contains(Scopes(), word) {
				scopes = append(scopes, word)
			}
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// CheckScope is forbidden if the principal does not have a scope, else nil.
func (p *Principal) CheckScope(scope string) *wire.Error {
	if p.Has(scope) {
		return nil
	}
	sentence := "this credential lacks the scope " + scope
	switch scope {
	case ScopeView:
		sentence += "; " + ScopeAdmin + " has it too"
	case ScopeAdmin:
		sentence += "; " + ScopeAdminAll + " has it too"
	}
	return wire.Refuse(wire.CodeForbidden, sentence)
}

// Has reports whether the principal has a scope.
func (p *Principal) Has(scope string) bool {
	if p.Scopes == nil || slices.Contains(p.Scopes, scope) {
		return true
	}
	return scope == ScopeView && p.Has(ScopeAdmin) || scope == ScopeAdmin && slices.Contains(p.Scopes, ScopeAdminAll)
}

// SeesContents reports whether the principal may see the payloads, results and errors of
// tasks: it has a scope besides ScopeView.
func (p *Principal) SeesContents() bool {
	return p.Scopes == nil || slices.ContainsFunc(p.Scopes, func(scope string) bool { return scope != ScopeView })
}

// CheckContents is forbidden if the principal may not see the contents of tasks, else nil.
func (p *Principal) CheckContents() *wire.Error {
	if p.SeesContents() {
		return nil
	}
	return wire.Refuse(wire.CodeForbidden, "this credential has the scope "+ScopeView+
		" alone, with which nobody sees or searches the payloads, results and errors of tasks; one that also has "+ScopeRead+" may")
}
