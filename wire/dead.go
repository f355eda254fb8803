package wire

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// DeadCause is why a task is a dead letter; 0 is for a task that is none.
type DeadCause uint8

// The causes: the attempts are used up, the task was handed back too often, or a
// worker ended it FAILED.
const (
	DeadExhausted DeadCause = 1 + iota
	DeadReleased
	DeadFailed
	// DeadKinds is the length of a list with a place for each cause, and for 0.
	DeadKinds = 1 + iota
)

// MaxFailedLetters is how many letters with the cause DeadFailed a shard keeps of a
// queue that does not say how long its dead letters stay, and FailedForSeconds how
// long where neither the queue nor the server says.
const (
	MaxFailedLetters = 100_000
	FailedForSeconds = 7 * 86_400
)

var deadCauseTexts = [DeadKinds]string{DeadExhausted: "exhausted", DeadReleased: "released_too_often", DeadFailed: "failed"}

// String is the cause as it stands in JSON, empty for 0.
func (c DeadCause) String() string {
	if c >= DeadKinds {
		return "unknown"
	}
	return deadCauseTexts[c]
}

// ParseDeadCause reads what String makes of a cause.
func ParseDeadCause(text string) (DeadCause, bool) {
	for c := DeadExhausted; c < DeadKinds; c++ {
		if deadCauseTexts[c] == text {
			return c, true
		}
	}
	return 0, false
}

// DeadCauses is a set of causes. Its zero value is for all of them.
type DeadCauses uint8

// OnlyDead is the set of some causes.
func OnlyDead(causes ...DeadCause) (set DeadCauses) {
	for _, c := range causes {
		set |= 1 << c
	}
	return set
}

// Has reports whether a cause is in the set.
func (s DeadCauses) Has(c DeadCause) bool { return s == 0 || s&(1<<c) != 0 }

// AllDeadCauses is the word for the set of all causes.
const AllDeadCauses = "all"

// ParseDeadCauses reads the name of one cause, or AllDeadCauses.
func ParseDeadCauses(text string) (DeadCauses, *Error) {
	c, known := ParseDeadCause(text)
	switch {
	case known:
		return OnlyDead(c), nil
	case text == AllDeadCauses:
		return 0, nil
	}
	return 0, Refuse(CodeInvalidArgument, fmt.Sprintf("cause must be exhausted, released_too_often, failed or all, got %.40q", text))
}

// DeadRequest says which dead letters of a queue a replay or a purge is about,
// oldest first.
type DeadRequest struct {
	EndedRequest
	// Causes are those of the letters.
	Causes DeadCauses
	// Worker is who had it last, ErrorPart a text that its error contains; empty
	// leaves out none.
	Worker    string
	ErrorPart string
	// Cursor is where a request before has stopped to look, empty for the
	// beginning.
	Cursor string
}

const (
	deadBefore = iota
	deadLimit
	deadWorker
	deadError
	deadCursor
	deadCause
)

var (
	deadNames = []string{
		deadBefore: "before", deadLimit: "limit", deadWorker: "worker", deadError: "error", deadCursor: "cursor", deadCause: "cause",
	}
	deadFilterRule = textRule{code: CodeInvalidArgument, high: MaxErrorBytes, filled: true}
	deadCursorRule = textRule{code: CodeInvalidArgument, high: math.MaxInt}
)

// ParseDeadRequest reads the body of a replay of a queue, which may be empty.
// absent are the limit and the causes that hold when it does not say.
func ParseDeadRequest(body []byte, absent DeadRequest) (*DeadRequest, *Error) {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	o := object{names: deadNames}
	o.scanBody(body, math.MaxUint64)
	limit := endedLimitRule
	limit.absent = int64(absent.Limit)
	r := &DeadRequest{
		EndedRequest: EndedRequest{BeforeMs: o.beforeMs(deadBefore), Limit: int(o.integer(deadLimit, &limit))},
		Causes:       o.deadCauses(absent.Causes),
		Worker:       o.text(deadWorker, &deadFilterRule),
		ErrorPart:    o.text(deadError, &deadFilterRule),
		Cursor:       o.text(deadCursor, &deadCursorRule),
	}
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}

func (o *object) deadCauses(absent DeadCauses) DeadCauses {
	if o.given(deadCause) == nil {
		return absent
	}
	causes, refusal := ParseDeadCauses(o.text(deadCause, &deadFilterRule))
	if o.err == nil {
		o.err = refusal
	}
	return causes
}

// AppendDeadRequest appends the body that asks for it with the word for its
// causes; a limit of 0 and an empty word are left out.
func AppendDeadRequest(dst []byte, r *DeadRequest, cause string) []byte {
	dst = append(dst, '{')
	start := len(dst)
	if r.BeforeMs != 0 {
		dst = AppendTimeMs(append(dst, `,"before":`...), r.BeforeMs)
	}
	if r.Limit != 0 {
		dst = strconv.AppendInt(append(dst, `,"limit":`...), int64(r.Limit), 10)
	}
	dst = optText(dst, `,"cause":`, cause)
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
