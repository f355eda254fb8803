package wire

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

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

const (
	reasonError = iota
	reasonCount
	reasonTaskID
	reasonEndedAt
	reasonCause
	reasonExample
)

var reasonNames = []string{
	reasonError: "error", reasonCount: "count", reasonTaskID: "newestTaskId", reasonEndedAt: "newestEndedAt",
	reasonCause: "cause", reasonExample: "example",
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

// ParseDeadReasons reads the answer of GET …/dlq/reasons.
func ParseDeadReasons(data []byte) (*DeadReasons, error) {
	o := object{names: []string{"reasons", "read", "cursor"}}
	if problem := o.scanAlone(data); problem != "" {
		return nil, errors.New("read reasons: answer " + problem)
	}
	elements, given := o.elements(0, CodeInvalidBody, math.MaxInt)
	if !given {
		o.refuse(CodeInvalidBody, 0, "is required: a list")
	}
	all := &DeadReasons{Read: o.integer(1, &anyIntegerRule), Cursor: o.text(2, &anyTextRule)}
	for i, raw := range elements {
		e := o.element(0, i, raw, reasonNames, CodeInvalidBody)
		all.Reasons = append(all.Reasons, e.deadReason())
		if e.err != nil {
			o.err = e.err
			break
		}
	}
	if o.err != nil {
		return nil, fmt.Errorf("read reasons: %s", o.err.Sentence)
	}
	return all, nil
}

func (o *object) deadReason() DeadReason {
	r := DeadReason{
		Error: o.text(reasonError, &anyTextRule), Example: o.text(reasonExample, &anyTextRule), Count: int(o.integer(reasonCount, &anyIntegerRule)),
		EndedAtMs: o.timeMs(reasonEndedAt, CodeInvalidBody),
	}
	r.Cause, _ = ParseDeadCause(o.text(reasonCause, &anyTextRule))
	id, ok := ParseTaskID(o.text(reasonTaskID, &needTextRule))
	if !ok && o.err == nil {
		o.refuse(CodeInvalidBody, reasonTaskID, "must be the id of a task")
	}
	r.TaskID = id
	return r
}
