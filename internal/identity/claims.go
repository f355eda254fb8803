package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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
	if !ok || len(commands) > wire.MaxSubscribeCommands {
		return forbid("the claim eventTypes of the token must be a list of commands")
	}
	if problem := commandsProblem(commands); problem != "" {
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
	_, hasScope := all["scope"]
	_, hasScp := all["scp"]
	if !hasScope && !hasScp {
		return c.scopes, true
	}
	for _, name := range []string{"scope", "scp"} {
		if raw, there := all[name]; there {
			list, ok := words(raw)
			if !ok {
				return nil, false
			}
			for _, word := range list {
				if strings.HasPrefix(word, "codeq:") {
					named = append(named, word)
				}
			}
		}
	}
	return auth.ExpandScopes(named), true
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
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errJSON
	}
	if err := checkRest(d, true, 1); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errJSON
	}
	return nil
}

// checkRest reads an object or a list that has begun to its end.
func checkRest(d *json.Decoder, isObject bool, depth int) error {
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if name, isName := t.(string); err == nil && isObject && isName {
			if seen[name] {
				return errTwice
			}
			seen[name] = true
			t, err = d.Token()
		}
		if err != nil || depth > maxDepth {
			return errJSON
		}
		if begins := t == json.Delim('{'); begins || t == json.Delim('[') {
			if err := checkRest(d, begins, depth+1); err != nil {
				return err
			}
		}
	}
	if _, err := d.Token(); err != nil {
		return errJSON
	}
	return nil
}
