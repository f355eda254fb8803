package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"time"

	"codeq/internal/auth"
	"codeq/internal/yamlfile"
	"codeq/wire"
)

type tokenCmd struct {
	New  tokenNewCmd  `cmd:"" help:"Make a token, and the entry for the token file of the server."`
	Mint tokenMintCmd `cmd:"" help:"Sign a JSON web token for development, and make the key set of its issuer."`
}

type tokenNewCmd struct {
	Name      string        `required:"" placeholder:"NAME" help:"Name of the token in the token file."`
	Subject   string        `placeholder:"SUBJECT" help:"Who uses the token. Without it: the name. Workers of one subject may end one another's tasks."`
	Scope     []string      `default:"producer,worker" placeholder:"SCOPE" choice:"producer,worker,admin,operator,read,codeq:read,codeq:produce,codeq:claim,codeq:subscribe,codeq:heartbeat,codeq:result,codeq:nack,codeq:abandon,codeq:admin,codeq:admin:all" help:"What the token allows: producer, worker (all six of a worker), admin, operator (admin of all tenants), read, codeq:read (queues and tasks without contents), or a single scope like codeq:claim. Repeat the flag or use commas."`
	Command   []string      `default:"*" placeholder:"COMMAND" help:"Queues that the token may post to and claim from; build.* is all whose name begins so. Repeat the flag or use commas."`
	ExpiresIn time.Duration `least:"1ms" help:"How long the token is valid, like 30d. Without it: for ever."`
	File      string        `type:"path" placeholder:"FILE" help:"Token file that gets the entry. It is made if it does not exist."`
}

// Help is the longer text of "codeq token new --help".
func (n *tokenNewCmd) Help() string {
	return `The token is printed once and stored nowhere: the entry holds its SHA-256. A server that was started with
--tokens FILE reads a changed file within a second.

  codeq token new --name ci --scope producer --command build,test --file tokens.yaml`
}

// Run draws a token and prints it with its entry.
func (n *tokenNewCmd) Run(a *app) error {
	if a.outIsNull {
		return errNoOutput
	}
	token, err := auth.NewToken(nil)
	if err != nil {
		return err
	}
	e := &auth.Entry{
		Name: n.Name, SHA256: auth.HashToken(token), Tenant: a.tokenTenant(), Subject: cmp.Or(n.Subject, n.Name),
		Scopes: n.Scope, Commands: n.Command,
	}
	if n.ExpiresIn > 0 {
		e.ExpiresAtMs = time.Now().Add(n.ExpiresIn).UnixMilli()
	}
	text := e.AppendYAML(nil)
	if _, err := auth.ParseEntries("entry", text); err != nil {
		var refused *yamlfile.Error
		if errors.As(err, &refused) {
			return wrong("%s", refused.Sentence)
		}
		return err
	}
	show := func() error { return n.show(a, token, e, text) }
	if n.File == "" {
		return show()
	}
	if err := auth.AppendToFile(n.File, e, show); err != nil {
		return fmt.Errorf("%s is not changed, so a token that was printed is not valid: %w", n.File, err)
	}
	if !a.JSON {
		a.say("the token is not shown again; its entry is in %s", n.File)
	}
	return nil
}

// show prints the token, before any entry is where a server reads it: a token
// that nobody has got must not be good for anything.
func (n *tokenNewCmd) show(a *app, token string, e *auth.Entry, text []byte) error {
	switch {
	case a.JSON:
		return a.writeJSON(struct {
			Token  string `json:"token"`
			Name   string `json:"name"`
			SHA256 string `json:"sha256"`
			Entry  string `json:"entry"`
			File   string `json:"file,omitempty"`
		}{token, e.Name, e.SHA256, string(text), n.File})
	case n.File != "":
		return a.writeLine([]byte(token))
	}
	return a.writeLine(fmt.Appendf(nil, "token (shown only now):\n\n  %s\n\nentry for the file that \"codeq serve --tokens FILE\" reads:\n\n%s",
		token, bytes.TrimSuffix(text, []byte("\n"))))
}

// tokenTenant is the tenant whose tasks a new token gives access to.
func (a *app) tokenTenant() string {
	if a.given["tenant"] {
		return a.Tenant
	}
	return cmp.Or(a.Tenant, wire.DefaultTenant)
}
