package httpapi

import "codeq/wire"

// sessionsPage bounds the sessions on a page.
const sessionsPage = 500

// getSessions lists the open sessions of the tenant, a page at a time. The cursor is the id
// of the last session on the page.
func (a *api) getSessions(c *call) answer {
	after, refusal := c.afterSession()
	if refusal != nil {
		return refuse(refusal)
	}
	page, more := a.o.Sessions.List(c.who.Tenant, after, sessionsPage)
	body := appendList([]byte(`{"sessions":[`), len(page), func(dst []byte, i int) []byte {
		return wire.AppendSessionFigures(dst, &page[i])
	})
	body = append(body, ']')
	if more {
		body = append(body, `,"cursor":"`...)
		body = append(page[len(page)-1].ID.AppendTo(body), '"')
	}
	return okay(append(body, '}'))
}

// afterSession reads the cursor; without one the list begins at its beginning.
func (c *call) afterSession() (after wire.SessionID, refusal *wire.Error) {
	text := c.query.Get("cursor")
	after, ok := wire.ParseSessionID(text)
	if !ok && text != "" {
		return after, badSessionCursor
	}
	return after, nil
}

// onSession makes the handler of what an admin does to a session.
func (a *api) onSession(do func(on Sessions, tenant string, id wire.SessionID) (wire.SessionFigures, bool)) func(c *call) answer {
	return parsed(parseBare, func(c *call, _ struct{}) answer {
		id, _ := wire.ParseSessionID(c.r.PathValue("session")) // no session has the zero id
		f, ok := do(a.o.Sessions, c.who.Tenant, id)
		if !ok {
			return refuse(unknownSession)
		}
		return okay(wire.AppendSessionFigures(nil, &f))
	})
}
