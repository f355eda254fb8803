package wire

import (
	"bytes"
	"math"
)

// EndedRequest says which ended tasks a request is about: the body of POST
// /admin/tasks/cleanup. BeforeMs is 0 when the request does not say, Limit never
// 0.
type EndedRequest struct {
	BeforeMs int64
	Limit    int
}

// MaxEndedTasks bounds how many tasks one request removes or replays, and is
// what holds when it does not say.
const MaxEndedTasks = 10_000

const (
	endedBefore = iota
	endedLimit
)

var (
	endedNames     = []string{endedBefore: "before", endedLimit: "limit"}
	endedLimitRule = integerRule{code: CodeInvalidArgument, low: 1, high: MaxEndedTasks, absent: MaxEndedTasks}
)

// ParseEndedRequest reads the body, which may be empty.
func ParseEndedRequest(body []byte) (*EndedRequest, *Error) {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	o := object{names: endedNames}
	o.scanBody(body, math.MaxUint64)
	r := &EndedRequest{
		BeforeMs: o.beforeMs(endedBefore),
		Limit:    int(o.integer(endedLimit, &endedLimitRule)),
	}
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}
