package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"codeq/record"
	"codeq/store"
	"codeq/wire"
)

const (
	// reasonsMostRead is how many dead letters one answer groups at most,
	// reasonsMostBytes how many bytes of reasons are in it but for the last.
	reasonsMostRead  = 10_000
	reasonsMostBytes = 2 << 20
)

// getReasons groups dead letters of one queue by their error and cause: the newest first,
// a part of them at a time, the most frequent reason of the part first.
func (a *api) getReasons(c *call) answer {
	q, refusal := c.queueOf()
	if refusal != nil {
		return refuse(refusal)
	}
	query, refusal := reasonsQueryOf(c, q)
	if refusal != nil {
		return refuse(refusal)
	}
	page, err := a.o.Store.DeadReasons(query)
	if errors.Is(err, store.ErrListPlace) {
		return refuse(badCursor())
	}
	if err == nil {
		err = a.allDurable(c)
	}
	if err != nil {
		return a.failedRead(c, err)
	}
	slices.SortStableFunc(page.Reasons, func(x, y wire.DeadReason) int { return cmp.Compare(y.Count, x.Count) })
	body := append([]byte(nil), `{"reasons":[`...)
	for i := range page.Reasons {
		if i > 0 {
			body = append(body, ',')
		}
		body = wire.AppendDeadReason(body, &page.Reasons[i])
	}
	body = strconv.AppendInt(append(body, `],"read":`...), int64(page.Read), 10)
	if page.Places != nil {
		body = appendCursorMember(body, q, store.ListDead, page.Places)
	}
	return answer{status: http.StatusOK, body: append(body, '}')}
}

func reasonsQueryOf(c *call, q record.QueueKey) (*store.ReasonsQuery, *wire.Error) {
	limit, refusal := c.limit(reasonsMostRead, reasonsMostRead)
	if refusal != nil {
		return nil, refusal
	}
	causes, refusal := c.causes()
	if refusal != nil {
		return nil, refusal
	}
	query := &store.ReasonsQuery{Queue: q, MostRead: limit, MostBytes: reasonsMostBytes, Causes: causes}
	if cursor := c.query.Get("cursor"); cursor != "" {
		query.After, refusal = decodeCursor(cursor, q, store.ListDead)
	}
	return query, refusal
}
