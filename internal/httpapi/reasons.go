package httpapi

import (
	"cmp"
	"slices"
	"strconv"

	"codeq/store"
	"codeq/wire"
)

const (
	// reasonsMostRead bounds the dead letters that one answer groups, reasonsMostBytes the
	// bytes of its reasons but for the last one. reasonsDefault takes a quarter of a second
	// where 10,000 take 450 ms, beside 2,000,000 tasks.
	reasonsDefault   = 5000
	reasonsMostRead  = 10_000
	reasonsMostBytes = 2 << 20
)

// reasonsQuery are the parameters of getReasons.
var reasonsQuery = []string{"limit", "cursor", "cause"}

// getReasons groups the dead letters of one queue by error and cause. Each answer groups the
// next part of the letters, newest first, and has the most frequent reason first.
func (a *api) getReasons(c *call) answer {
	query, refusal := c.reasonsOf()
	if refusal != nil {
		return refuse(refusal)
	}
	page, err := a.o.Store.DeadReasons(query)
	if err = a.durable(c, err); err != nil {
		return a.failedRead(c, err)
	}
	slices.SortStableFunc(page.Reasons, func(x, y wire.DeadReason) int { return cmp.Compare(y.Count, x.Count) })
	body := appendList([]byte(`{"reasons":[`), len(page.Reasons), func(dst []byte, i int) []byte {
		return wire.AppendDeadReason(dst, &page.Reasons[i])
	})
	body = strconv.AppendInt(append(body, `],"read":`...), int64(page.Read), 10)
	return okay(append(appendCursorMember(body, encodeCursor(c.queue, store.ListDead, page.Places)), '}'))
}

func (c *call) reasonsOf() (*store.ListQuery, *wire.Error) {
	limit, refusal := c.integer("limit", reasonsDefault, 1, reasonsMostRead)
	if refusal != nil {
		return nil, refusal
	}
	query := &store.ListQuery{Queue: c.queue, State: store.ListDead, Limit: limit, MostRead: limit, MostBytes: reasonsMostBytes}
	if query.Filter.Causes, refusal = c.causes(); refusal != nil {
		return nil, refusal
	}
	if cursor := c.query.Get("cursor"); cursor != "" {
		query.After, refusal = decodeCursor(cursor, c.queue, store.ListDead)
	}
	return query, refusal
}
