package wire

import (
	"bytes"
	"math"
)

// CleanupRequest is the body of POST /admin/tasks/cleanup. BeforeMs is 0 for
// what is past its retention, Limit never 0.
type CleanupRequest struct {
	BeforeMs int64
	Limit    int
}

// MaxCleanupTasks bounds how many tasks one request removes, and is what holds
// when it does not say.
const MaxCleanupTasks = 10_000

const (
	cleanupBefore = iota
	cleanupLimit
)

var (
	cleanupNames     = []string{cleanupBefore: "before", cleanupLimit: "limit"}
	cleanupLimitRule = integerRule{code: CodeInvalidArgument, low: 1, high: MaxCleanupTasks, absent: MaxCleanupTasks}
)

// ParseCleanupRequest reads the body, which may be empty.
func ParseCleanupRequest(body []byte) (*CleanupRequest, *Error) {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	o := object{names: cleanupNames}
	o.scanBody(body, math.MaxUint32)
	r := &CleanupRequest{
		BeforeMs: max(0, o.timeMs(cleanupBefore, CodeInvalidTime)),
		Limit:    int(o.integer(cleanupLimit, &cleanupLimitRule)),
	}
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}
