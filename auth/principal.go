package auth

import (
	"context"
	"slices"

	"codeq/wire"
)

// Principal is who acts, as established by an Authenticator. It is never
// changed once made, so it may be shared between goroutines.
type Principal struct {
	// Tenant and Subject are never empty.
	Tenant  string
	Subject string
	// Scopes names the kinds of work the credential is good for; nil means
	// all of them.
	Scopes []string
	// Commands names the commands the credential is good for; nil means all
	// of them.
	Commands []string
	// ExpiresAtMs is when the credential ends, Unix milliseconds; 0 is never.
	ExpiresAtMs int64

	// held is the token that the principal was made for; nil for a credential
	// that can not be taken back.
	held *holding
}

// Current is what the credential of the principal stands for now: the
// principal itself, a newer one, or nil once the credential was taken back.
// That a credential has ended by its time is not looked at; ExpiredAt says so.
// Any goroutine.
func (p *Principal) Current() *Principal {
	if p.held == nil {
		return p
	}
	return p.held.tokens.find(p.held.digest)
}

// SameRights reports whether two principals are the same subject of the same
// tenant and may do the same; when that ends is not compared.
func (p *Principal) SameRights(q *Principal) bool {
	return p.Tenant == q.Tenant && p.Subject == q.Subject &&
		sameList(p.Scopes, q.Scopes) && sameList(p.Commands, q.Commands)
}

// sameList tells the empty list, which is nothing, from nil, which is all.
func sameList(a, b []string) bool {
	return (a == nil) == (b == nil) && slices.Equal(a, b)
}

// MayUse reports whether the principal may post to and take from a command.
// wire.AllCommands is not a command: a caller that meets it replaces it by
// what the principal may use.
func (p *Principal) MayUse(command string) bool {
	return p.Commands == nil || slices.Contains(p.Commands, command)
}

// ExpiredAt reports whether the credential has ended at a time in Unix
// milliseconds.
func (p *Principal) ExpiredAt(nowMs int64) bool {
	return p.ExpiresAtMs != 0 && nowMs >= p.ExpiresAtMs
}

// Authenticator establishes principals. An implementation may be called from
// many goroutines at once.
type Authenticator interface {
	// Authenticate reads a bearer credential ("" when the client sent none)
	// and answers with its principal, or with unauthenticated.
	Authenticate(ctx context.Context, credential string) (*Principal, *wire.Error)
}
