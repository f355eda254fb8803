package auth

import (
	"slices"

	"codeq/wire"
)

// The scopes of a credential. All but ScopeView allow to read the tasks and results of the
// tenant.
const (
	// ScopeProducer may enqueue tasks and cancel them.
	ScopeProducer = "producer"
	// ScopeWorker may take tasks and answer for them.
	ScopeWorker = "worker"
	// ScopeAdmin may see and change the queues of its tenant.
	ScopeAdmin = "admin"
	// ScopeOperator may copy all data of the server, the tasks of all tenants included, and
	// see the settings.
	ScopeOperator = "operator"
	// ScopeRead may only read.
	ScopeRead = "read"
	// ScopeView may see queues, lists and tasks of its tenant, and nothing of what producers
	// and workers put into them. ScopeAdmin has it too.
	ScopeView = "codeq:read"
)

// Scopes lists every scope.
func Scopes() []string {
	return []string{ScopeProducer, ScopeWorker, ScopeAdmin, ScopeOperator, ScopeRead, ScopeView}
}

// CheckScope is forbidden if the principal does not have a scope, else nil.
func (p *Principal) CheckScope(scope string) *wire.Error {
	if p.Has(scope) {
		return nil
	}
	sentence := "this credential lacks the scope " + scope
	if scope == ScopeView {
		sentence += "; " + ScopeAdmin + " has it too"
	}
	return wire.Refuse(wire.CodeForbidden, sentence)
}

// Has reports whether the principal has a scope.
func (p *Principal) Has(scope string) bool {
	return p.Scopes == nil || slices.Contains(p.Scopes, scope) || scope == ScopeView && slices.Contains(p.Scopes, ScopeAdmin)
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
