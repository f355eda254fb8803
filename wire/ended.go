package wire

import (
	"bytes"
	"math"
)

// EndedRequest is the body of POST /admin/tasks/cleanup.
type EndedRequest struct {
	// BeforeMs selects tasks that ended before it, in Unix milliseconds; 0 is no bound.
	BeforeMs int64
	// Limit is the largest number of tasks, never 0 after parsing.
	Limit int
}

// MaxEndedTasks is the largest number of tasks that one request removes or replays, and
// the default.
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
