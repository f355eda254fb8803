package identity

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"codeq/internal/auth"
	"codeq/internal/yamlfile"
	"codeq/wire"
)

// config is one provider in the file.
type config struct {
	name string
	// issuer and audience are what its JSON web tokens must say.
	issuer    string
	audience  []string
	keysURL   string
	keysFile  string
	askURL    string
	clientID  string
	secret    string // a file
	prefix    string
	algs      []string
	tenant    string // the claim; "" for tenantClaims
	scopes    []string
	commands  []string
	hasScopes bool
}

const (
	maxNameBytes = 100
	maxURLBytes  = 2048
	maxList      = 64
)

// fields read the fields of a provider from its file.
var fields = map[string]func(c *config, list []string) string{
	"name":             one(func(c *config) *string { return &c.name }),
	"issuer":           one(func(c *config) *string { return &c.issuer }),
	"audience":         func(c *config, list []string) string { c.audience = list; return "" },
	"keys":             address(func(c *config) *string { return &c.keysURL }),
	"keysFile":         one(func(c *config) *string { return &c.keysFile }),
	"introspection":    address(func(c *config) *string { return &c.askURL }),
	"clientId":         one(func(c *config) *string { return &c.clientID }),
	"clientSecretFile": one(func(c *config) *string { return &c.secret }),
	"prefix":           one(func(c *config) *string { return &c.prefix }),
	"tenantClaim":      one(func(c *config) *string { return &c.tenant }),
	"algorithms": func(c *config, list []string) string {
		c.algs = list
		for _, alg := range list {
			if !slices.Contains(algorithms, alg) {
				return "must be among " + strings.Join(algorithms, ", ")
			}
		}
		return ""
	},
	"scopesIfAbsent": func(c *config, list []string) string {
		c.scopes = auth.ExpandScopes(list)
		for _, word := range list {
			if len(auth.ExpandScopes([]string{word})) == 0 {
				return "must be scopes such as " + auth.ScopeProduce
			}
		}
		return ""
	},
	"commandsIfAbsent": func(c *config, list []string) string { c.commands = list; return commandsProblem(list) },
}

// commandsProblem says what is wrong with a list of commands, "" for nothing.
func commandsProblem(list []string) string {
	for _, command := range list {
		if command != wire.AllCommands && wire.CheckCommand(strings.TrimSuffix(command, ".*")) != nil {
			return "must be names of commands, prefixes like build.*, or *"
		}
	}
	return ""
}

// one reads a field that has one value.
func one(of func(c *config) *string) func(*config, []string) string {
	return func(c *config, list []string) string {
		if len(list) != 1 {
			return "must be one text"
		}
		*of(c) = list[0]
		return ""
	}
}

// address reads a URL to which requests may go: over https, or to this machine.
func address(of func(c *config) *string) func(*config, []string) string {
	return func(c *config, list []string) string {
		if len(list) != 1 {
			return "must be one URL"
		}
		*of(c) = list[0]
		u, err := url.Parse(list[0])
		if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
			return "must be a URL like https://id.example/keys, without a password"
		}
		ip, err := netip.ParseAddr(u.Hostname())
		local := err == nil && ip.IsLoopback() || u.Hostname() == "localhost"
		if u.Scheme != "https" && !(u.Scheme == "http" && local) {
			return "must begin with https://, or with http:// for a loopback address"
		}
		return ""
	}
}

// parse reads the text of a file of providers. The error names file and line.
func parse(file string, text []byte) ([]config, error) {
	v, err := yamlfile.Parse(file, text)
	if err != nil {
		return nil, err
	}
	at := func(line int, format string, args ...any) error {
		return &yamlfile.Error{File: file, Line: line, Sentence: fmt.Sprintf(format, args...)}
	}
	if v.Kind != yamlfile.List {
		return nil, at(v.Line, "the file must be a list of providers, each with name, and issuer with keys or introspection")
	}
	var all []config
	for _, item := range v.Items {
		if item.Kind != yamlfile.Map {
			return nil, at(item.Line, "a provider must be a map with name, and issuer with keys or introspection, got %v", item.Kind)
		}
		c := config{}
		for _, f := range item.Fields {
			read := fields[f.Name]
			if read == nil {
				return nil, at(f.Line, "%s", wire.NotKnown("", f.Name, fieldNames()))
			}
			list, problem := texts(f.Value)
			if problem == "" {
				problem = read(&c, list)
			}
			if problem != "" {
				return nil, at(f.Line, "%s %s", f.Name, problem)
			}
			c.hasScopes = c.hasScopes || f.Name == "scopesIfAbsent"
		}
		problem := c.problem()
		for i := range all {
			switch other := &all[i]; {
			case other.name == c.name:
				problem = "two providers are named " + c.name
			case c.issuer != "" && other.issuer == c.issuer:
				problem = "two providers have this issuer, and only one may decide about a token"
			case c.askURL != "" && other.askURL != "" && (strings.HasPrefix(c.prefix, other.prefix) || strings.HasPrefix(other.prefix, c.prefix)):
				problem = "two providers with introspection have prefixes of one another, and only one may decide about a token"
			}
		}
		if problem != "" {
			return nil, at(item.Line, "%s", problem)
		}
		all = append(all, c)
	}
	return all, nil
}

func fieldNames() []string {
	return []string{"name", "issuer", "audience", "keys", "keysFile", "introspection", "clientId", "clientSecretFile", "prefix",
		"tenantClaim", "algorithms", "scopesIfAbsent", "commandsIfAbsent"}
}

// texts are the values of a field: one text, or a list of them.
func texts(v yamlfile.Value) (list []string, problem string) {
	items := v.Items
	if v.Kind == yamlfile.Scalar {
		items = []yamlfile.Value{v}
	}
	if len(items) > maxList || len(items) == 0 {
		return nil, fmt.Sprintf("must be a text or a list of 1 to %d texts", maxList)
	}
	for _, item := range items {
		if item.Kind != yamlfile.Scalar {
			return nil, "must be a text or a list of texts"
		}
		if problem := wire.NameProblem(item.Text, maxURLBytes); problem != "" {
			return nil, problem
		}
		list = append(list, item.Text)
	}
	return list, ""
}

// problem says what a provider lacks or has too much, "" for nothing.
func (c *config) problem() string {
	ways := 0
	for _, way := range []string{c.keysURL, c.keysFile, c.askURL} {
		if way != "" {
			ways++
		}
	}
	switch {
	case c.name == "" || len(c.name) > maxNameBytes:
		return fmt.Sprintf("this provider has no name of 1 to %d bytes", maxNameBytes)
	case ways != 1:
		return "this provider must have one of keys, keysFile and introspection"
	case c.askURL == "" && (c.issuer == "" || len(c.audience) == 0):
		return "a provider with keys needs issuer and audience: the tokens of other issuers, and those for other servers, are refused"
	case c.askURL == "" && (c.clientID != "" || c.secret != "" || c.prefix != ""):
		return "clientId, clientSecretFile and prefix are for a provider with introspection"
	case c.askURL != "" && (c.clientID == "" || c.secret == ""):
		return "a provider with introspection needs clientId and clientSecretFile, with which the server asks"
	case c.askURL != "" && c.issuer != "":
		return "a provider with introspection recognises tokens by their prefix, and has no issuer"
	case c.askURL != "" && c.algs != nil:
		return "algorithms are for a provider with keys"
	case c.askURL != "" && strings.HasPrefix(c.prefix, auth.TokenPrefix):
		return "the prefix " + auth.TokenPrefix + " is for the tokens of the token file"
	}
	return ""
}
