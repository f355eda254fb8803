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
	issuer                    string
	audience                  []string
	keysURL, keysFile, askURL string
	clientID                  string
	secret                    string // a file
	prefix                    string
	algs                      []string
	tenant                    string // the claim; "" for tenantClaims
	scopes, commands          []string
}

const (
	maxNameBytes = 100
	maxURLBytes  = 2048
	maxList      = 64
)

// fieldNames are the names of the fields of a provider.
var fieldNames = []string{
	"name", "issuer", "audience", "keys", "keysFile", "introspection", "clientId", "clientSecretFile", "prefix",
	"tenantClaim", "algorithms", "scopesIfAbsent", "commandsIfAbsent",
}

// read reads the field of a name, and says what is wrong with it, "" for nothing.
func (c *config) read(name string, list []string) string {
	text := map[string]*string{
		"name": &c.name, "issuer": &c.issuer, "keys": &c.keysURL, "keysFile": &c.keysFile, "introspection": &c.askURL,
		"clientId": &c.clientID, "clientSecretFile": &c.secret, "prefix": &c.prefix, "tenantClaim": &c.tenant,
	}[name]
	if text != nil && len(list) != 1 {
		return "must be one text"
	}
	if text != nil {
		*text = list[0]
	}
	switch name {
	case "keys", "introspection":
		return addressProblem(list[0])
	case "audience":
		c.audience = list
	case "algorithms":
		c.algs = list
		if slices.ContainsFunc(list, func(alg string) bool { return !slices.Contains(algorithms, alg) }) {
			return "must be among " + strings.Join(algorithms, ", ")
		}
	case "scopesIfAbsent":
		c.scopes = auth.ExpandScopes(list)
		if slices.ContainsFunc(list, func(word string) bool { return len(auth.ExpandScopes([]string{word})) == 0 }) {
			return "must be scopes such as " + auth.ScopeProduce
		}
	case "commandsIfAbsent":
		c.commands = list
		return auth.CommandsProblem(list)
	}
	return ""
}

// addressProblem says why requests may not go to a URL, "" if they may: over https, or to this
// machine.
func addressProblem(text string) string {
	u, err := url.Parse(text)
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
			if !slices.Contains(fieldNames, f.Name) {
				return nil, at(f.Line, "%s", wire.NotKnown("", f.Name, fieldNames))
			}
			list, problem := texts(f.Value)
			if problem == "" {
				problem = c.read(f.Name, list)
			}
			if problem != "" {
				return nil, at(f.Line, "%s %s", f.Name, problem)
			}
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
