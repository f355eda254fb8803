package auth

import "slices"

// The scopes a credential can have. Whoever has any of them may read the tasks
// and results of its tenant.
const (
	// ScopeProducer may post tasks and cancel them.
	ScopeProducer = "producer"
	// ScopeWorker may take tasks and answer for them.
	ScopeWorker = "worker"
	// ScopeAdmin may see and change the queues of its tenant.
	ScopeAdmin = "admin"
	// ScopeOperator may copy the whole server, every tenant's tasks in it, and see its
	// settings.
	ScopeOperator = "operator"
	// ScopeRead may read, and nothing besides.
	ScopeRead = "read"
)

// Scopes lists every scope.
func Scopes() []string {
	return []string{ScopeProducer, ScopeWorker, ScopeAdmin, ScopeOperator, ScopeRead}
}

// Has reports whether the principal has a scope.
func (p *Principal) Has(scope string) bool {
	return p.Scopes == nil || slices.Contains(p.Scopes, scope)
}
