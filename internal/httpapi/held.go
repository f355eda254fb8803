package httpapi

import (
	"net/http"

	"codeq/wire"
)

// An answer is in memory until its client has taken it, at the pace of package paced. The
// answers of all requests share one budget, as the tasks that sessions push share another
// one: beyond it a request whose answer can be large is refused before the answer is made.

const (
	// smallAnswer bounds bodies and answers that are taken whatever is held.
	smallAnswer = 16 << 10
	// pageBytes is the share of a page until it is made: the bytes that are read for it, and
	// as many for the answer. anyBytes is the share of an answer of unknown size: it is
	// refused only when nothing is left.
	pageBytes = 2 * listMostBytes
	anyBytes  = 1
)

// hold sets the share of a call, in bytes. It reports false, and changes nothing, if the sum of
// all shares would be over the budget.
func (a *api) hold(c *call, bytes int64) bool {
	more := bytes - c.held
	total := a.held.Add(more)
	if more > 0 && a.o.AnswerBytes > 0 && total > a.o.AnswerBytes {
		a.held.Add(-more)
		return false
	}
	c.held = bytes
	return true
}

// holdFor sets the share of a verb, or refuses the request.
func (a *api) holdFor(c *call, v *verb) *wire.Error {
	small := v.echoes && c.r.ContentLength >= 0 && c.r.ContentLength <= smallAnswer
	if v.holds == 0 || small || a.hold(c, v.holds) {
		return nil
	}
	return answersHeld
}

// holdAnswer sets the share to the size of the answer. A large answer to a GET is dropped if
// the budget has no room for it. Answers without a principal do not count: they are small,
// or the one page of metrics.
func (a *api) holdAnswer(c *call, ans *answer) {
	if c.who == nil {
		return
	}
	bytes := int64(len(ans.body))
	if a.hold(c, bytes) {
		return
	}
	if bytes > smallAnswer && c.r.Method == http.MethodGet {
		*ans = refuse(answersHeld)
		bytes = int64(len(ans.body))
	}
	a.held.Add(bytes - c.held)
	c.held = bytes
}
