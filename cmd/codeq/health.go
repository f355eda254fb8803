package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"codeq/client"
	"codeq/config"
)

type healthCmd struct {
	Wait time.Duration `help:"Wait this long until the server is ready."`
}

// Help is the longer text of "codeq health --help".
func (h *healthCmd) Help() string {
	return `The exit code is 0 when the server grants tasks, and 75 when it does not: it starts, stops, its disk is nearly full, or
no server answers. The command needs no token and no shell, so a container can check itself with it:

  HEALTHCHECK CMD ["codeq", "health"]`
}

// Run asks the server whether it hands out work.
func (h *healthCmd) Run(a *app) error {
	return show(a, func(ctx context.Context, c *client.Client) (string, error) {
		answer, err := c.Ready(ctx, h.Wait)
		if err != nil {
			return "", tryAgain("not ready: %w", err)
		}
		if answer.Role != "" {
			return fmt.Sprintf("ready: %s passes requests to the leader of its cluster\n", c.URL()), nil
		}
		return fmt.Sprintf("ready: %s, %d shards, durability %s, disk %s\n", c.URL(), answer.Shards, answer.Durability, answer.DiskGuard), nil
	}, a.printText)
}

type configCmd struct {
	Show          configShowCmd    `cmd:"" eg:"codeq config show" help:"Show the settings of the server and the origin of each."`
	WebhookSecret webhookSecretCmd `cmd:"" eg:"codeq config webhook-secret" help:"Print the secret with which the outcomes that are posted to webhooks are signed."`
}

type configShowCmd struct{}

// Run shows the settings that the server was started with.
func (s *configShowCmd) Run(a *app) error {
	return show(a, func(ctx context.Context, c *client.Client) (string, error) {
		answer, err := c.Settings(ctx)
		if err != nil {
			return "", err
		}
		var settings config.Listing
		if err := json.Unmarshal(answer, &settings); err != nil {
			return "", fmt.Errorf("read the settings of %s: %w", c.URL(), err)
		}
		return string(settings.AppendYAML(nil)), nil
	}, a.printText)
}
