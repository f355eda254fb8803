package wire

import "strconv"

// DeadReason is why some dead letters of a queue died: the cause and the first line
// of the error that they have in common, in which # and "…" stand for what varies;
// that line as the newest of them has it; how many they are, which is the newest
// and when that one ended, in Unix milliseconds.
type DeadReason struct {
	Error     string
	Example   string
	Cause     DeadCause
	Count     int
	TaskID    TaskID
	EndedAtMs int64
}

// AppendDeadReason appends a reason as GET …/dlq/reasons has it.
func AppendDeadReason(dst []byte, r *DeadReason) []byte {
	dst = AppendQuoted(append(dst, `{"error":`...), r.Error)
	dst = optText(dst, `,"example":`, r.Example)
	dst = optText(dst, `,"cause":`, r.Cause.String())
	dst = strconv.AppendInt(append(dst, `,"count":`...), int64(r.Count), 10)
	dst = r.TaskID.AppendTo(append(dst, `,"newestTaskId":"`...))
	dst = AppendTimeMs(append(dst, `","newestEndedAt":`...), r.EndedAtMs)
	return append(dst, '}')
}

// DeadReasons is a part of the reasons of a queue. Read is how many letters they
// are of; Cursor leads to older ones and is empty when there are none.
type DeadReasons struct {
	Reasons []DeadReason
	Read    int64
	Cursor  string
}
