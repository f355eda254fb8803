package main

import (
	"fmt"
	"os"
	"time"

	"codeq/internal/auth"
	"codeq/internal/identity"
)

type tokenMintCmd struct {
	Key       string        `required:"" type:"path" placeholder:"FILE" help:"File of the Ed25519 key that signs. It is made if it does not exist."`
	Keys      string        `type:"path" placeholder:"FILE" help:"File that gets the key set, for keysFile of the provider. Without it the key set is printed."`
	Issuer    string        `default:"codeq-dev" help:"Issuer of the provider."`
	Audience  string        `default:"codeq" help:"Audience of the provider."`
	Subject   string        `required:"" placeholder:"SUBJECT" help:"Who uses the token."`
	Scope     []string      `default:"producer,worker" placeholder:"SCOPE" choice:"producer,worker,admin,operator,codeq:read,codeq:produce,codeq:claim,codeq:subscribe,codeq:heartbeat,codeq:result,codeq:nack,codeq:abandon,codeq:admin,codeq:admin:all" help:"What the token allows, as for token new. Repeat the flag or use commas."`
	Command   []string      `default:"*" placeholder:"COMMAND" help:"Commands that the token is good for; build.* is all that begin so. Repeat the flag or use commas."`
	ExpiresIn time.Duration `default:"1h" least:"1s" most:"8760h" help:"How long the token is valid, like 8h."`
}

// Help is the longer text of "codeq token mint --help".
func (*tokenMintCmd) Help() string {
	return `This makes JSON web tokens for development, as an identity provider would. A server takes them that was started with
--providers FILE, in which a provider has this issuer and audience, and the key set as keysFile.

  codeq token mint --key dev.key --keys dev-keys.json --subject ada --tenant acme --scope worker --command build`
}

// Run signs a token and prints it with the key set.
func (m *tokenMintCmd) Run(a *app) error {
	if a.outIsNull {
		return errNoOutput
	}
	key, err := identity.OpenKey(m.Key)
	if err != nil {
		return err
	}
	now := time.Now()
	mint := identity.Mint{
		Issuer: m.Issuer, Audience: m.Audience, Tenant: a.tokenTenant(), Subject: m.Subject,
		Scopes: auth.ExpandScopes(m.Scope), Commands: m.Command, At: now, Until: now.Add(m.ExpiresIn),
	}
	token, keys, err := mint.Token(key)
	if err != nil {
		return wrong("%w", err)
	}
	if m.Keys != "" {
		if err := os.WriteFile(m.Keys, append([]byte(keys), '\n'), 0o644); err != nil {
			return fmt.Errorf("write key set: %w", err)
		}
	}
	switch {
	case a.JSON:
		return a.writeJSON(struct {
			Token string `json:"token"`
			Keys  string `json:"keys"`
		}{token, keys})
	case m.Keys != "":
		return a.writeLine([]byte(token))
	}
	return a.writeLine(fmt.Appendf(nil, "token:\n\n  %s\n\nkey set, for the file that keysFile of the provider names:\n\n%s", token, keys))
}
