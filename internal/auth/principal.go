package auth

import (
	"context"
	"net/http"
	"slices"
	"strings"

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
	// Commands are the commands that the credential allows, as names and as prefixes like
	// "build.*"; nil is all.
	Commands []string
	// ExpiresAtMs is when the credential ends, Unix milliseconds; 0 is never.
	ExpiresAtMs int64

	// Source says what the credential stands for by now; nil for one that cannot be revoked.
	Source Source
	// untilMs is when the cookie of a page ends, Unix milliseconds; 0 for the credential itself.
	untilMs int64
	// acting: Tenant is not that of the credential.
	acting bool
}

// Current is the principal that the credential stands for now: p itself, a newer one, or
// nil once the credential was revoked. It does not look at the end of the credential;
// ExpiredAt does. Any goroutine.
func (p *Principal) Current() *Principal {
	if p.Source == nil {
		return p
	}
	now := p.Source.Current()
	if now != nil && p.untilMs != 0 {
		now = now.until(p.untilMs)
	}
	if now != nil && p.acting {
		now, _ = now.For(p.Tenant) // without the scope it is as if it was revoked
	}
	return now
}

// until is the principal by a cookie that ends at a time.
func (p *Principal) until(endMs int64) *Principal {
	paged := *p
	paged.untilMs = endMs
	if p.ExpiresAtMs == 0 || endMs < p.ExpiresAtMs {
		paged.ExpiresAtMs = endMs
	}
	return &paged
}

// HeaderTenant is the header that names the tenant for which a request, or a socket, acts.
const HeaderTenant = "X-Codeq-Tenant"

// NamedTenant is the tenant that a header names, "" if it names none, or invalid_argument.
func NamedTenant(h http.Header) (string, *wire.Error) {
	named := h.Values(HeaderTenant)
	if len(named) == 0 {
		return "", nil
	}
	if len(named) > 1 {
		return "", wire.Refuse(wire.CodeInvalidArgument, "a request names one tenant, this one has "+HeaderTenant+" several times")
	}
	if problem := wire.NameProblem(named[0], wire.MaxTenantBytes); problem != "" {
		return "", wire.Refuse(wire.CodeInvalidArgument, "the name of the tenant "+problem)
	}
	return named[0], nil
}

// For is the principal while it acts for a tenant, or forbidden; "" is its own. Only ScopeAdminAll
// may act for another one.
func (p *Principal) For(tenant string) (*Principal, *wire.Error) {
	if tenant == "" || tenant == p.Tenant {
		return p, nil
	}
	if refusal := p.CheckScope(ScopeAdminAll); refusal != nil {
		refusal.Sentence += ", and acts only for its own tenant"
		return nil, refusal
	}
	acting := *p
	acting.Tenant, acting.acting = tenant, true
	return &acting, nil
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

// CommandsOf are the Commands of a principal whose credential has a list of commands: nil if
// wire.AllCommands is among them, and none without a list.
func CommandsOf(list []string) []string {
	if slices.Contains(list, wire.AllCommands) {
		return nil
	}
	return append([]string{}, list...)
}

// MayUse reports whether the principal may enqueue and take tasks of a command.
// wire.AllCommands is not a command: Allowed replaces it by the commands of the
// principal.
func (p *Principal) MayUse(command string) bool {
	return p.Commands == nil || wire.CommandIsAmong(p.Commands, command)
}

// MaySee reports whether the principal may see a queue and its tasks: one that it may use, and
// any if its credential names no command, as those of people who only watch.
func (p *Principal) MaySee(command string) bool { return len(p.Commands) == 0 || p.MayUse(command) }

// Allowed is the list of commands that a client asks for, with wire.AllCommands replaced by
// the commands of the principal, or forbidden.
func (p *Principal) Allowed(asked []string) ([]string, *wire.Error) {
	if slices.Contains(asked, wire.AllCommands) {
		if p.Commands == nil {
			return []string{wire.AllCommands}, nil
		}
		for _, command := range p.Commands {
			if strings.HasSuffix(command, wire.AllCommands) {
				return nil, wire.Refuse(wire.CodeForbidden, "this credential may use commands by their prefix, "+command+
					"; a client that has it names the commands whose tasks it takes, and not *")
			}
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
	return mayNotUse(command)
}

func mayNotUse(command string) *wire.Error {
	return wire.Refuse(wire.CodeForbidden, "this credential may not use the command "+command)
}

// CheckSight is forbidden if the principal may not see the tasks of a command, else nil.
func (p *Principal) CheckSight(command string) *wire.Error {
	if p.MaySee(command) {
		return nil
	}
	return mayNotUse(command)
}

// ExpiredAt reports whether the credential has ended at a moment, Unix milliseconds.
func (p *Principal) ExpiredAt(nowMs int64) bool {
	return p.ExpiresAtMs != 0 && nowMs >= p.ExpiresAtMs
}

// Source knows what a credential stands for. Any goroutine.
type Source interface {
	// Current is the principal of the credential now, nil once it was revoked. It does not block.
	Current() *Principal
}

// TokenRequired is the sentence for a client without a credential.
const TokenRequired = "this server requires a token: send it as Authorization: Bearer TOKEN, or as token in the hello of a session"

// Authenticator finds the principal of a credential. Any goroutine.
type Authenticator interface {
	// Authenticate returns the principal of a bearer credential ("" if the client sent
	// none; then that of WithCertificate), or the refusal unauthenticated.
	Authenticate(ctx context.Context, credential string) (*Principal, *wire.Error)
}
