package auth

import (
	"slices"

	"codeq/wire"
)

// The scopes of a credential. Each of them allows to read the tasks and results of the
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
)

// Scopes lists every scope.
func Scopes() []string {
	return []string{ScopeProducer, ScopeWorker, ScopeAdmin, ScopeOperator, ScopeRead}
}

// CheckScope is forbidden if the principal does not have a scope, else nil.
func (p *Principal) CheckScope(scope string) *wire.Error {
	if p.Has(scope) {
		return nil
	}
	return wire.Refuse(wire.CodeForbidden, "this credential lacks the scope "+scope)
}

// Has reports whether the principal has a scope.
func (p *Principal) Has(scope string) bool {
	return p.Scopes == nil || slices.Contains(p.Scopes, scope)
}
