package wire

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

var (
	endedLimitRule = integerRule{code: CodeInvalidArgument, low: 1, high: MaxEndedTasks, absent: MaxEndedTasks}
	endedShape     = shapeOf(new([]string), func(c *coder) { new(EndedRequest).members(c, &endedLimitRule) })
)

func (r *EndedRequest) members(c *coder, limit *integerRule) {
	c.optTime(`,"before":`, &r.BeforeMs, &sinceRule)
	optInteger(c, `,"limit":`, &r.Limit, limit)
}

// ParseEndedRequest reads the body, which may be empty.
func ParseEndedRequest(body []byte) (*EndedRequest, *Error) {
	o, r := endedShape.object(), &EndedRequest{}
	o.scanBody(orEmptyObject(body), endedShape.bits)
	r.members(&coder{in: &o, shape: endedShape}, &endedLimitRule)
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}
