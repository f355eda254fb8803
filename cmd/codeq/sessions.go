package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"codeq/client"
	"codeq/wire"
)

type sessionsCmd struct{}

// Run shows every session of the tenant, all pages of the list. In JSON each
// page is a line as it came.
func (s *sessionsCmd) Run(a *app) error {
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	sessions, err := a.allSessions(ctx, c)
	if err != nil || a.JSON {
		return err
	}
	if len(sessions) == 0 {
		a.say("no session is open")
		return nil
	}
	return a.sessionTable(sessions)
}

func (a *app) allSessions(ctx context.Context, c *client.Client) (all []wire.SessionFigures, err error) {
	for cursor := ""; ; {
		page, err := c.Sessions(ctx, cursor)
		if err != nil {
			return nil, err
		}
		if a.JSON {
			if err := a.writeLine(page.Raw); err != nil {
				return nil, err
			}
		}
		all = append(all, page.Sessions...)
		if cursor = page.Cursor; cursor == "" {
			return all, nil
		}
	}
}

func (a *app) sessionTable(sessions []wire.SessionFigures) error {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tWORKER\tSUBJECT\tSTATE\tHELD\tWINDOW\tCOMMANDS\tCONNECTED\tLAST SEEN")
	for i := range sessions {
		s := &sessions[i]
		fmt.Fprintf(w, "%v\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n",
			s.ID, dashed(oneCell(s.WorkerID)), oneCell(s.Subject), s.State, s.Held, s.Window,
			dashed(oneCell(strings.Join(s.Commands, ","))), moment(s.ConnectedAtMs), moment(s.LastSeenAtMs))
	}
	return flush(w)
}
