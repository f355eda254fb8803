package httpapi

import (
	"codeq/internal/callback"
	"codeq/wire"
)

// getWebhookSecret answers with the secret that signs the callbacks of the tenant.
func (a *api) getWebhookSecret(c *call) answer {
	return okay(append(wire.AppendQuoted([]byte(`{"secret":`), callback.Secrets(a.o.Store.Secret()).Of(c.who.Tenant)), '}'))
}
