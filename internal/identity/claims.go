package identity

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"io"
	"slices"
	"strings"

	"codeq/internal/auth"
	"codeq/wire"
)

const (
	maxSubjectBytes = 200
	maxDepth        = 16
	// latestEnd is the last second of the year 9999.
	latestEnd = 253_402_300_799
)

// tenantClaims are the claims that may name the tenant. Those that are there must agree.
var tenantClaims = []string{"tid", "tenantId", "tenant_id", "organizationId", "organization_id"}

// claims are what a token says.
type claims map[string]any

// principal is what a token stands for by its claims, which are those of a good token.
func (c *config) principal(all claims) (*auth.Principal, *wire.Error) {
	forbid := func(sentence string) (*auth.Principal, *wire.Error) {
		return nil, wire.Refuse(wire.CodeForbidden, sentence)
	}
	subject, _ := all["sub"].(string)
	if problem := wire.NameProblem(subject, maxSubjectBytes); problem != "" {
		return forbid("the claim sub of the token " + problem)
	}
	tenant, problem := c.tenantOf(all)
	if problem != "" {
		return forbid(problem)
	}
	scopes, ok := c.scopesOf(all)
	if !ok {
		return forbid("the claims scope and scp of the token must be texts with spaces between the scopes, or lists of them")
	}
	if len(scopes) == 0 {
		return forbid("the token has no scope of this server, such as " + auth.ScopeProduce)
	}
	commands, ok := c.commands, true
	if raw, there := all["eventTypes"]; there {
		commands, ok = words(raw)
	}
	if !ok {
		return forbid("the claim eventTypes of the token must be a list of commands")
	}
	if problem := auth.CommandsProblem(commands); problem != "" {
		return forbid("the claim eventTypes of the token " + problem)
	}
	end, _ := all["exp"].(float64)
	return &auth.Principal{
		Tenant: tenant, Subject: subject, Scopes: scopes, Commands: auth.CommandsOf(commands), ExpiresAtMs: int64(min(end, latestEnd)) * 1000,
	}, nil
}

// tenantOf is the tenant that a token names; the subject is never taken for it.
func (c *config) tenantOf(all claims) (tenant, problem string) {
	names := tenantClaims
	if c.tenant != "" {
		names = []string{c.tenant}
	}
	for _, name := range names {
		raw, there := all[name]
		if !there {
			continue
		}
		text, _ := raw.(string)
		if problem := wire.NameProblem(text, wire.MaxTenantBytes); problem != "" {
			return "", "the claim " + name + " of the token " + problem
		}
		if tenant != "" && tenant != text {
			return "", "the token names two tenants: its claims " + strings.Join(names, ", ") + " must agree"
		}
		tenant = text
	}
	if tenant == "" {
		return "", "the token names no tenant: it needs the claim " + strings.Join(names, " or ")
	}
	return tenant, ""
}

// scopesOf are the scopes that a token has. Other words, which other servers mean, are none.
func (c *config) scopesOf(all claims) (scopes []string, ok bool) {
	var named []string
	absent := true
	for _, name := range []string{"scope", "scp"} {
		raw, there := all[name]
		if !there {
			continue
		}
		list, ok := words(raw)
		if !ok {
			return nil, false
		}
		absent, named = false, append(named, list...)
	}
	if absent {
		return c.scopes, true
	}
	return auth.ExpandScopes(slices.DeleteFunc(named, func(word string) bool { return !strings.HasPrefix(word, "codeq:") })), true
}

// words are the texts of a list, or those in a text with spaces between.
func words(raw any) (list []string, ok bool) {
	switch raw := raw.(type) {
	case string:
		return strings.Fields(raw), true
	case []any:
		for _, one := range raw {
			text, isText := one.(string)
			if !isText {
				return nil, false
			}
			list = append(list, text)
		}
		return list, true
	}
	return nil, false
}

var (
	errTwice = errors.New("has a name twice in one object")
	errJSON  = errors.New("is no JSON object")
)

// checkOnce refuses a text that is no JSON object, or has a name twice: two readers could take
// different ones.
func checkOnce(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if d.PeekKind() != jsontext.KindBeginObject {
		return errJSON
	}
	for {
		_, err := d.ReadToken()
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			return errTwice
		case err != nil || d.StackDepth() > maxDepth:
			return errJSON
		case d.StackDepth() == 0:
			if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
				return errJSON
			}
			return nil
		}
	}
}
