package main

import (
	"context"
	"strings"

	"codeq/client"
	"codeq/wire"
)

type sessionCmd struct {
	List       sessionsCmd          `cmd:"" eg:"codeq session list" help:"Show the open sessions and what they hold."`
	Drain      sessionDrainCmd      `cmd:"" eg:"codeq session drain 01a21f90-4242-7abc-8def-000000000001" help:"Give a session no more tasks."`
	Disconnect sessionDisconnectCmd `cmd:"" eg:"codeq session disconnect 01a21f90-4242-7abc-8def-000000000001" help:"End the connection of a session."`
}

type sessionDrainCmd struct {
	ID string `arg:"" name:"id" help:"Id of the session, as codeq session list shows it."`
	times
}

// Help is the longer text of "codeq session drain --help".
func (s *sessionDrainCmd) Help() string {
	return `The worker is told, gets no more tasks and keeps those that it has; its connection stays open. When it holds none it can be stopped without a loss. The drain ends with the connection: a worker that connects again gets tasks again.`
}

// Run drains one session.
func (s *sessionDrainCmd) Run(a *app) error {
	return a.onSession(s.ID, (*client.Client).DrainSession)
}

type sessionDisconnectCmd struct {
	ID string `arg:"" name:"id" help:"Id of the session, as codeq session list shows it."`
	times
}

// Help is the longer text of "codeq session disconnect --help".
func (s *sessionDisconnectCmd) Help() string {
	return `A worker that works connects again at once and goes on with its tasks. Without it they return to their queue after 15 seconds. To keep a worker out, remove its token; to free one task, use codeq task take-back.`
}

// Run ends the connection of one session.
func (s *sessionDisconnectCmd) Run(a *app) error {
	return a.onSession(s.ID, (*client.Client).DisconnectSession)
}

// onSession does something to one session and shows it.
func (a *app) onSession(text string, do func(*client.Client, context.Context, wire.SessionID) (*wire.SessionFigures, error)) error {
	id, ok := wire.ParseSessionID(text)
	if !ok {
		return wrong("%q is not the id of a session: it looks like 01a21f90-4242-7abc-8def-000000000001, as \"codeq session list\" prints it", text)
	}
	return show(a, func(ctx context.Context, c *client.Client) (*wire.SessionFigures, error) { return do(c, ctx, id) },
		func(f *wire.SessionFigures) error {
			if a.Quiet {
				return nil
			}
			return a.sessionTable([]wire.SessionFigures{*f})
		})
}

type sessionsCmd struct{ times }

// Run shows every session of the tenant, all pages of the list. In JSON each
// page is a line as it came.
func (s *sessionsCmd) Run(a *app) error {
	return a.ask(func(ctx context.Context, c *client.Client) error {
		var all []wire.SessionFigures
		for more, cursor := true, ""; more; more = cursor != "" {
			page, err := c.Sessions(ctx, cursor)
			if err == nil && a.JSON {
				err = a.writeLine(a.answer)
			}
			if err != nil {
				return err
			}
			all, cursor = append(all, page.Sessions...), page.Cursor
		}
		switch {
		case a.JSON:
			return nil
		case len(all) == 0:
			a.say("no session is open")
			return nil
		}
		return a.sessionTable(all)
	})
}

func (a *app) sessionTable(sessions []wire.SessionFigures) error {
	t := a.table(
		column{name: "SESSION"}, column{name: "WORKER", least: 10, spare: 2}, column{name: "SUBJECT", least: 10, spare: 5},
		column{name: "STATE", state: true}, column{name: "HELD"}, column{name: "WINDOW", spare: 3},
		column{name: "COMMANDS", least: 12, spare: 1}, column{name: "CONNECTED", spare: 4}, column{name: "LAST SEEN"},
	)
	for i := range sessions {
		s := &sessions[i]
		t.row(s.ID, s.WorkerID, s.Subject, s.State, s.Held, s.Window,
			strings.Join(s.Commands, ","), a.moment(s.ConnectedAtMs), a.moment(s.LastSeenAtMs))
	}
	return t.write()
}
