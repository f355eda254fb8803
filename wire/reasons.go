package wire

// DeadReason is a group of dead letters of a queue with the same cause and error.
type DeadReason struct {
	// Error is the first line of the error, with # and "…" in place of what varies.
	Error string
	// Example is that line of the newest letter.
	Example string
	Cause   DeadCause
	// Count is the number of letters.
	Count int
	// TaskID is the newest letter.
	TaskID TaskID
	// EndedAtMs is when the newest letter ended, in Unix milliseconds.
	EndedAtMs int64
}

func (r *DeadReason) members(c *coder) {
	c.text(`,"error":`, &r.Error, &anyTextRule)
	c.optText(`,"example":`, &r.Example, &anyTextRule)
	c.cause(`,"cause":`, &r.Cause)
	integer(c, `,"count":`, &r.Count, true, &anyIntegerRule)
	c.taskID(`,"newestTaskId":`, &r.TaskID)
	c.time(`,"newestEndedAt":`, &r.EndedAtMs, &anyTimeRule)
}

var reasonShape = shapeOf(new([]string), new(DeadReason).members)

// AppendDeadReason appends a reason for the answer of GET …/dlq/reasons.
func AppendDeadReason(dst []byte, r *DeadReason) []byte {
	c := writing(&dst)
	r.members(&c)
	return c.done()
}

// DeadReasons is a part of the reasons of a queue, the newest letters first.
type DeadReasons struct {
	Reasons []DeadReason
	// Read is the number of letters that were read.
	Read int64
	// Cursor goes on with older letters; it is empty if there are none.
	Cursor string
}
