package wire

import (
	"bytes"
	"math"
	"strconv"
)

// DeadRequest says which dead letters of a queue a replay or a purge is about,
// oldest first.
type DeadRequest struct {
	EndedRequest
	// Worker is who had it last, ErrorPart a text that its error contains; empty
	// leaves out none.
	Worker    string
	ErrorPart string
	// Cursor is where a request before has stopped to look, empty for the
	// beginning.
	Cursor string
}

// HasFilter reports whether letters may be left out by what they are.
func (r *DeadRequest) HasFilter() bool { return r.Worker != "" || r.ErrorPart != "" }

const (
	deadBefore = iota
	deadLimit
	deadWorker
	deadError
	deadCursor
)

var (
	deadNames      = []string{deadBefore: "before", deadLimit: "limit", deadWorker: "worker", deadError: "error", deadCursor: "cursor"}
	deadFilterRule = textRule{code: CodeInvalidArgument, high: MaxErrorBytes, filled: true}
	deadCursorRule = textRule{code: CodeInvalidArgument, high: math.MaxInt, filled: true}
)

// ParseDeadRequest reads the body of a replay of a queue, which may be empty.
// absent is the limit that holds when it does not say.
func ParseDeadRequest(body []byte, absent int) (*DeadRequest, *Error) {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	o := object{names: deadNames}
	o.scanBody(body, math.MaxUint32)
	limit := endedLimitRule
	limit.absent = int64(absent)
	r := &DeadRequest{
		EndedRequest: EndedRequest{BeforeMs: o.beforeMs(deadBefore), Limit: int(o.integer(deadLimit, &limit))},
		Worker:       o.text(deadWorker, &deadFilterRule),
		ErrorPart:    o.text(deadError, &deadFilterRule),
		Cursor:       o.text(deadCursor, &deadCursorRule),
	}
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}

// AppendDeadRequest appends the body that asks for it; a limit of 0 is left out.
func AppendDeadRequest(dst []byte, r *DeadRequest) []byte {
	dst = append(dst, '{')
	start := len(dst)
	if r.BeforeMs != 0 {
		dst = AppendTimeMs(append(dst, `,"before":`...), r.BeforeMs)
	}
	if r.Limit != 0 {
		dst = strconv.AppendInt(append(dst, `,"limit":`...), int64(r.Limit), 10)
	}
	dst = optText(dst, `,"worker":`, r.Worker)
	dst = optText(dst, `,"error":`, r.ErrorPart)
	dst = optText(dst, `,"cursor":`, r.Cursor)
	if len(dst) > start {
		dst = append(dst[:start], dst[start+1:]...)
	}
	return append(dst, '}')
}

// beforeMs reads a moment before which something ended, 0 for none. Nothing ended
// before 1970, but whoever says so does not mean everything.
func (o *object) beforeMs(field int) int64 {
	if o.given(field) == nil {
		return 0
	}
	return max(1, o.timeMs(field, CodeInvalidTime))
}
