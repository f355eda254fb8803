package httpapi

import (
	"net/http"

	"codeq/wire"
)

// What a client has not taken of an answer is in memory until it has, at the pace of
// package paced. The answers of all requests together have a budget for that, as the
// tasks that sessions push have theirs: beyond it what can be large is refused before it
// is made.

const (
	// smallAnswer is what a request may answer, and be answered, whatever is held.
	smallAnswer = 16 << 10
	// pageBytes is what a page counts as until it is made: what is read for it, and as
	// much again for the answer. anyBytes is for an answer of which nobody knows the size:
	// it is refused where nothing is left.
	pageBytes = 2 * listMostBytes
	anyBytes  = 1
)

// hold counts bytes for the call, instead of what it held until now. It reports false, and
// changes nothing, when that is more than all may hold together.
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

// holdFor counts what a verb may answer, or refuses the request.
func (a *api) holdFor(c *call, v *verb) *wire.Error {
	small := v.echoes && c.r.ContentLength >= 0 && c.r.ContentLength <= smallAnswer
	if v.holds == 0 || small || a.hold(c, v.holds) {
		return nil
	}
	return answersHeld()
}

// holdAnswer counts an answer that is made. One that changed nothing is dropped where
// there is no room for it. What anybody may ask for is small, or one page for all.
func (a *api) holdAnswer(c *call, ans *answer) {
	if c.who == nil {
		return
	}
	bytes := int64(len(ans.body))
	if a.hold(c, bytes) {
		return
	}
	if bytes > smallAnswer && c.r.Method == http.MethodGet {
		*ans = refuse(answersHeld())
		bytes = int64(len(ans.body))
	}
	a.held.Add(bytes - c.held)
	c.held = bytes
}

// letGo counts nothing more for the call.
func (a *api) letGo(c *call) { a.hold(c, 0) }

func answersHeld() *wire.Error {
	return wire.Refuse(wire.CodeOverloaded,
		"clients have not taken as many bytes of answers as there is memory for; take the answers that were asked for, and try again in a second")
}
