package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"codeq/client"
	"codeq/wire"
)

type webhookSecretCmd struct{}

// Run prints the secret of the tenant.
func (w *webhookSecretCmd) Run(a *app) error {
	return show(a, func(ctx context.Context, c *client.Client) (string, error) { return c.WebhookSecret(ctx) },
		func(secret string) error { return a.writeLine([]byte(secret)) })
}

type webhooksCmd struct {
	List      webhooksListCmd      `cmd:"" eg:"codeq webhooks list" help:"Show the webhooks of the tenant and how they fare."`
	Set       webhooksSetCmd       `cmd:"" eg:"codeq webhooks set billing --to https://example.com/hook --command order.*" help:"Make a webhook, or change one. Prints the secret of a new one."`
	Rotate    webhooksRotateCmd    `cmd:"" eg:"codeq webhooks rotate billing" help:"Give a webhook another secret and print it. The old one signs as well for a day."`
	Enable    webhooksEnableCmd    `cmd:"" eg:"codeq webhooks enable billing" help:"Enable a webhook, and post what waits for it."`
	Test      webhooksTestCmd      `cmd:"" eg:"codeq webhooks test billing" help:"Post a signed message to a webhook and show the status of the answer."`
	Redeliver webhooksRedeliverCmd `cmd:"" eg:"codeq webhooks redeliver 01a21f90-2a40-7c11-a000-0b0b0b0b0b00" help:"Post a callback again; the history of a task names its callbacks."`
	Remove    webhooksRemoveCmd    `cmd:"" eg:"codeq webhooks remove billing" help:"Remove a webhook. What waits for it is not posted."`
}

type webhooksListCmd struct{}

// Run lists the webhooks of the tenant.
func (w *webhooksListCmd) Run(a *app) error {
	return show(a, func(ctx context.Context, c *client.Client) ([]wire.EndpointFigures, error) { return c.Endpoints(ctx) },
		func(all []wire.EndpointFigures) error {
			if len(all) == 0 {
				a.say("the tenant has no webhooks")
				return nil
			}
			t := a.table(column{name: "NAME", least: 10}, column{name: "STATE"}, column{name: "FAILURES", spare: 1},
				column{name: "COMMANDS", spare: 2}, column{name: "STATUSES", spare: 3}, column{name: "URL"})
			for i := range all {
				f := &all[i]
				t.row(f.Name, f.State, f.Failures, anyOr(f.Commands), anyOr(f.Statuses), f.URL)
			}
			return t.write()
		})
}

func anyOr(list []string) string { return cmp.Or(strings.Join(list, ","), "any") }

// namedWebhook is the webhook that a command is about.
type namedWebhook struct {
	Name string `arg:"" help:"Name of the webhook."`
}

type webhooksSetCmd struct {
	namedWebhook
	To         *string  `placeholder:"URL" help:"The http or https URL that gets the outcomes."`
	Command    []string `placeholder:"COMMAND" help:"Only outcomes of these commands: names, prefixes such as build.*, or * for all. It may be given several times."`
	Status     []string `placeholder:"STATUS" help:"Only outcomes with these statuses: COMPLETED, FAILED, CANCELLED. It may be given several times."`
	State      *string  `enum:"enabled,disabled" help:"enabled or disabled. A disabled one gets nothing; what it would get waits."`
	SecretFile string   `placeholder:"FILE" help:"Sign with the secret in this file, whsec_ and base64; - is standard input. Without it a new webhook gets a secret of the server's."`
}

// Run changes what is named and leaves the rest.
func (w *webhooksSetCmd) Run(a *app) error {
	if w.To == nil && w.State == nil && w.SecretFile == "" && len(w.Command)+len(w.Status) == 0 {
		return wrong("nothing is changed: give a flag, like --to https://example.com/hook; \"codeq webhooks list\" shows the webhooks")
	}
	secret, err := a.readSecret(w.SecretFile)
	if err != nil {
		return err
	}
	return a.showWebhook(!a.Quiet, func(ctx context.Context, c *client.Client) (*wire.EndpointFigures, error) {
		now, err := c.Endpoint(ctx, w.Name)
		var refusal *wire.Error
		if errors.As(err, &refusal) && refusal.Code == wire.CodeNotFound && w.To != nil {
			now, err = &wire.EndpointFigures{}, nil
		}
		if err != nil {
			return nil, err
		}
		change := &wire.EndpointChange{Version: now.Version, Endpoint: wire.Endpoint{
			URL: now.URL, Commands: now.Commands, Statuses: now.Statuses, State: now.State, Secret: secret,
		}}
		if w.To != nil {
			change.URL = *w.To
		}
		if w.State != nil {
			change.State = *w.State
		}
		if len(w.Command) > 0 {
			change.Commands = w.Command
		}
		if len(w.Status) > 0 {
			change.Statuses = w.Status
		}
		return c.SetEndpoint(ctx, w.Name, change)
	})
}

// readSecret reads a secret from a file, from standard input if that is -; no file is none.
func (a *app) readSecret(file string) (string, error) {
	var text []byte
	var err error
	switch file {
	case "":
		return "", nil
	case "-":
		text, err = io.ReadAll(a.in)
	default:
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

type webhooksRotateCmd struct {
	namedWebhook
	SecretFile string `placeholder:"FILE" help:"Sign with the secret in this file, whsec_ and base64; - is standard input. Without it the server makes one."`
}

// Run prints the new secret.
func (w *webhooksRotateCmd) Run(a *app) error {
	secret, err := a.readSecret(w.SecretFile)
	if err != nil {
		return err
	}
	return a.showWebhook(true, func(ctx context.Context, c *client.Client) (*wire.EndpointFigures, error) {
		return c.RotateEndpoint(ctx, w.Name, secret)
	})
}

type webhooksEnableCmd struct{ namedWebhook }

// Run enables a webhook.
func (w *webhooksEnableCmd) Run(a *app) error {
	return a.showWebhook(!a.Quiet, func(ctx context.Context, c *client.Client) (*wire.EndpointFigures, error) {
		return c.EnableEndpoint(ctx, w.Name)
	})
}

type webhooksTestCmd struct{ namedWebhook }

// Run shows what came of a test.
func (w *webhooksTestCmd) Run(a *app) error {
	return show(a, func(ctx context.Context, c *client.Client) (*wire.EndpointTest, error) {
		return c.TestEndpoint(ctx, w.Name)
	},
		func(t *wire.EndpointTest) error {
			f := &fields{}
			if t.Status != 0 {
				f.add("status", fmt.Sprint(t.Status))
			}
			f.add("problem", t.Problem)
			f.add("took", (time.Duration(t.Ms) * time.Millisecond).String())
			return f.write(a)
		})
}

type webhooksRedeliverCmd struct {
	ID string `arg:"" name:"id" help:"Id of the callback."`
}

// Run has one callback posted again.
func (w *webhooksRedeliverCmd) Run(a *app) error {
	id, err := parseID(w.ID)
	if err != nil {
		return err
	}
	return a.showTask(id, !a.Quiet, (*client.Client).Redeliver)
}

type webhooksRemoveCmd struct{ namedWebhook }

// Run removes a webhook.
func (w *webhooksRemoveCmd) Run(a *app) error {
	return a.showWebhook(false, func(ctx context.Context, c *client.Client) (*wire.EndpointFigures, error) {
		return c.RemoveEndpoint(ctx, w.Name)
	})
}

// showWebhook shows the webhook that do returns, to people only if they want that.
func (a *app) showWebhook(wanted bool, do func(context.Context, *client.Client) (*wire.EndpointFigures, error)) error {
	return showFields(a, wanted, do, webhookFields)
}

// webhookFields is a webhook for people.
func webhookFields(e *wire.EndpointFigures) *fields {
	f := &fields{}
	f.add("webhook", e.Name)
	f.add("url", e.URL)
	f.add("commands", anyOr(e.Commands))
	f.add("statuses", anyOr(e.Statuses))
	f.add("state", e.State)
	f.add("reason", e.Reason)
	f.add("secret", e.Secret)
	if e.OldSecretUntilMs != 0 {
		f.add("old secret", "signs until "+string(wire.AppendTimeMs(nil, e.OldSecretUntilMs)))
	}
	return f
}
