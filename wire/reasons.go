package wire

import "strconv"

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

// AppendDeadReason appends a reason for the answer of GET …/dlq/reasons.
func AppendDeadReason(dst []byte, r *DeadReason) []byte {
	dst = AppendQuoted(append(dst, `{"error":`...), r.Error)
	dst = optText(dst, `,"example":`, r.Example)
	dst = optText(dst, `,"cause":`, r.Cause.String())
	dst = strconv.AppendInt(append(dst, `,"count":`...), int64(r.Count), 10)
	dst = r.TaskID.AppendTo(append(dst, `,"newestTaskId":"`...))
	dst = AppendTimeMs(append(dst, `","newestEndedAt":`...), r.EndedAtMs)
	return append(dst, '}')
}

// DeadReasons is a part of the reasons of a queue, the newest letters first.
type DeadReasons struct {
	Reasons []DeadReason
	// Read is the number of letters that were read.
	Read int64
	// Cursor goes on with older letters; it is empty if there are none.
	Cursor string
}
