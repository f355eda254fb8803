package main

import (
	"context"

	"codeq/client"
)

type webhookSecretCmd struct{}

// Run prints the secret of the tenant.
func (w *webhookSecretCmd) Run(a *app) error {
	return show(a, func(ctx context.Context, c *client.Client) (string, error) { return c.WebhookSecret(ctx) },
		func(secret string) error { return a.writeLine([]byte(secret)) })
}
