package httpapi

import (
	"net/http"

	"codeq/wire"
)

// sessionsPage is how many sessions one answer lists.
const sessionsPage = 500

// getSessions lists the open sessions of the caller's tenant, a page at a time.
// The cursor is the id of the last one listed.
func (a *api) getSessions(c *call) answer {
	after, refusal := c.afterSession()
	if refusal != nil {
		return refuse(refusal)
	}
	page, more := a.o.Sessions.List(c.who.Tenant, after, sessionsPage)
	body := append([]byte(nil), `{"sessions":[`...)
	for i := range page {
		if i > 0 {
			body = append(body, ',')
		}
		body = wire.AppendSessionFigures(body, &page[i])
	}
	body = append(body, ']')
	if more {
		body = append(body, `,"cursor":"`...)
		body = append(page[len(page)-1].ID.AppendTo(body), '"')
	}
	return answer{status: http.StatusOK, body: append(body, '}')}
}

// afterSession reads where a list goes on; absent is its beginning.
func (c *call) afterSession() (after wire.SessionID, refusal *wire.Error) {
	text := c.query.Get("cursor")
	if text == "" {
		return after, nil
	}
	after, ok := wire.ParseSessionID(text)
	if !ok {
		return after, wire.Refuse(wire.CodeInvalidArgument, "cursor must be the one that came with the page before, or left out")
	}
	return after, nil
}
