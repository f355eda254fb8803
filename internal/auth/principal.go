package auth

import (
	"context"
	"slices"

	"codeq/wire"
)

// Principal is the subject that a credential stands for. It does not change, so several
// goroutines may use it.
type Principal struct {
	// Tenant and Subject are never empty.
	Tenant  string
	Subject string
	// Scopes are the kinds of requests that the credential allows; nil is all.
	Scopes []string
	// Commands are the commands that the credential allows; nil is all.
	Commands []string
	// ExpiresAtMs is when the credential ends, Unix milliseconds; 0 is never.
	ExpiresAtMs int64

	// token is the token of this principal; nil for a credential that cannot be revoked.
	token *tokenRef
}

// Current is the principal that the credential stands for now: p itself, a newer one, or
// nil once the credential was revoked. It does not look at the end of the credential;
// ExpiredAt does. Any goroutine.
func (p *Principal) Current() *Principal {
	if p.token == nil {
		return p
	}
	return p.token.current()
}

// SameRights reports whether two principals are the same subject of the same tenant with
// the same scopes and commands. It does not compare when they end.
func (p *Principal) SameRights(q *Principal) bool {
	return p.Tenant == q.Tenant && p.Subject == q.Subject &&
		sameList(p.Scopes, q.Scopes) && sameList(p.Commands, q.Commands)
}

// sameList compares two lists. nil, which allows everything, differs from the empty list,
// which allows nothing.
func sameList(a, b []string) bool {
	return (a == nil) == (b == nil) && slices.Equal(a, b)
}

// MayUse reports whether the principal may enqueue and take tasks of a command.
// wire.AllCommands is not a command: Allowed replaces it by the commands of the
// principal.
func (p *Principal) MayUse(command string) bool {
	return p.Commands == nil || slices.Contains(p.Commands, command)
}

// Allowed is the list of commands that a client asks for, with wire.AllCommands replaced by
// the commands of the principal, or forbidden.
func (p *Principal) Allowed(asked []string) ([]string, *wire.Error) {
	if slices.Contains(asked, wire.AllCommands) {
		if p.Commands == nil {
			return []string{wire.AllCommands}, nil
		}
		return p.Commands, nil
	}
	for _, command := range asked {
		if refusal := p.CheckCommand(command); refusal != nil {
			return nil, refusal
		}
	}
	return asked, nil
}

// CheckCommand is forbidden if the principal may not use a command, else nil.
func (p *Principal) CheckCommand(command string) *wire.Error {
	if p.MayUse(command) {
		return nil
	}
	return wire.Refuse(wire.CodeForbidden, "this credential may not use the command "+command)
}

// ExpiredAt reports whether the credential has ended at a moment, Unix milliseconds.
func (p *Principal) ExpiredAt(nowMs int64) bool {
	return p.ExpiresAtMs != 0 && nowMs >= p.ExpiresAtMs
}

// Authenticator finds the principal of a credential. Any goroutine.
type Authenticator interface {
	// Authenticate returns the principal of a bearer credential ("" if the client sent
	// none), or the refusal unauthenticated.
	Authenticate(ctx context.Context, credential string) (*Principal, *wire.Error)
}
