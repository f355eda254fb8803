package client

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"codeq/wire"
)

// OutcomeKind is how a handler ended a delivery.
type OutcomeKind int

// The kinds of outcome, each made by the function of that name.
const (
	Completed OutcomeKind = iota + 1
	Failed
	Nacked
	Released
)

// String is the word for people.
func (k OutcomeKind) String() string {
	switch k {
	case Completed:
		return "completed"
	case Failed:
		return "failed"
	case Nacked:
		return "nacked"
	case Released:
		return "released"
	}
	return fmt.Sprintf("outcome %d", int(k))
}

// Outcome ends a delivery. Make one with Complete, Fail, Nack, NackAfter,
// Release, NotStarted or Stopped.
type Outcome struct {
	Kind OutcomeKind
	// Result is the JSON object of a completion.
	Result []byte
	// Reason goes with a failure, a nack or NotStarted.
	Reason string
	// delaySeconds of a nack; negative leaves it to the server's policy.
	delaySeconds int64
	// why a delivery is released.
	why wire.ReleaseRequest
	// exit is how the program ended, of a failure or a nack.
	exit wire.Exit
}

// Exited says with a failure or a nack that a program had worked on the task, and
// how it ended: it is shown in the history of the task.
func (o Outcome) Exited(exit wire.Exit) Outcome {
	if o.Kind == Failed || o.Kind == Nacked {
		o.exit = exit
	}
	return o
}

// Complete ends the task with a result, which must be one JSON object of at
// most wire.MaxResultBytes. The bytes are handed in as they are. Anything else
// is nacked with what is wrong as the reason.
func Complete(result []byte) Outcome {
	if reason := notAResult(result); reason != "" {
		return Nack(reason)
	}
	return Outcome{Kind: Completed, Result: result}
}

func notAResult(result []byte) string {
	if len(result) > wire.MaxResultBytes {
		return fmt.Sprintf("the result has %d bytes, the limit is %d", len(result), wire.MaxResultBytes)
	}
	if err := wire.CheckJSON(result); err != nil {
		return "the result is not JSON: " + err.Error()
	}
	if trimmed := bytes.TrimLeft(result, " \t\r\n"); trimmed[0] != '{' {
		return "the result is JSON but no object"
	}
	return ""
}

// Fail ends the task as failed for good: it is not tried again. A reason
// longer than wire.MaxErrorBytes keeps its end.
func Fail(reason string) Outcome {
	return Outcome{Kind: Failed, Reason: sayable(reason)}
}

// Nack ends the delivery; the task is tried again after the delay that the
// server's policy gives, until its attempts are used up. A reason longer than
// wire.MaxErrorBytes keeps its end.
func Nack(reason string) Outcome {
	return Outcome{Kind: Nacked, Reason: sayable(reason), delaySeconds: -1}
}

// NackAfter is Nack with a delay of its own, rounded up to whole seconds. The
// longest delay that the policy of the queue gives, 15 minutes if nobody set it,
// is the longest here, too; EndAnswer and Ending have the one that holds.
func NackAfter(reason string, delay time.Duration) Outcome {
	out := Nack(reason)
	out.delaySeconds = wholeSeconds(max(0, delay))
	return out
}

// Release hands the task back untouched: to its old place, no attempt counted. A
// task that is handed back more than ten times for each of its attempts is a
// dead letter; what NotStarted and Stopped hand back is not counted.
func Release() Outcome { return Outcome{Kind: Released} }

// NotStarted hands the task back because the work could not be begun, for a reason
// that says nothing about the task: a program that is missing, no descriptors,
// no memory. The reason is for people on this side. A Worker that is told so
// takes nothing for a pause, 1 s at first and up to 60 s if it goes on.
func NotStarted(reason string) Outcome {
	return Outcome{Kind: Released, Reason: sayable(reason), why: wire.ReleaseRequest{NotStarted: true}}
}

// Stopped hands the task back because this process ends. A Worker that drains
// or stops makes it of Release by itself.
func Stopped() Outcome {
	return Outcome{Kind: Released, why: wire.ReleaseRequest{Stopping: true}}
}

// sayable makes any text one that the protocol takes as a reason: UTF-8, not
// empty, not over the limit.
func sayable(reason string) string {
	reason = wire.Tail(strings.ToValidUTF8(reason, "\uFFFD"), wire.MaxErrorBytes)
	if reason == "" {
		return "no reason given"
	}
	return reason
}

// frame is the outcome as a client frame for that delivery.
func (o Outcome) frame(ref wire.Ref, delivery wire.TaskRef) wire.ClientFrame {
	switch o.Kind {
	case Completed:
		return &wire.Result{Ref: ref, TaskRef: delivery,
			ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: o.Result}}
	case Failed:
		return &wire.Result{Ref: ref, TaskRef: delivery,
			ResultRequest: wire.ResultRequest{Status: wire.StatusFailed, Error: o.Reason, Exit: o.exit}}
	case Nacked:
		return &wire.Nack{Ref: ref, TaskRef: delivery,
			NackRequest: wire.NackRequest{DelaySeconds: o.delaySeconds, Reason: o.Reason, Exit: o.exit}}
	case Released:
		return &wire.Release{Ref: ref, TaskRef: delivery, ReleaseRequest: o.why}
	}
	panic(fmt.Sprintf("outcome kind %d has no frame", o.Kind))
}

// insteadOf is the outcome to try when the server has refused this one for
// what it says: a worker must answer for each delivery somehow, or the task
// and a unit of its window stay out until the lease ends.
func (o Outcome) insteadOf(refusal *wire.Error) (Outcome, bool) {
	switch refusal.Code {
	case wire.CodeInvalidBody, wire.CodeInvalidResult, wire.CodeInvalidArgument,
		wire.CodeInvalidTime, wire.CodeTooLarge:
	default:
		return Outcome{}, false
	}
	switch o.Kind {
	case Completed, Failed:
		return Nack("the server refused the outcome: " + refusal.Sentence), true
	case Nacked:
		return Release(), true
	}
	return Outcome{}, false
}
