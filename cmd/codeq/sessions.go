package main

import (
	"context"
	"strings"

	"codeq/client"
	"codeq/wire"
)

type sessionCmd struct {
	List sessionsCmd `cmd:"" eg:"codeq session list" help:"Show the open sessions and what they hold."`
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
