package client

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"codeq/wire"
)

// OutcomeKind is the way in which a delivery ends.
type OutcomeKind int

// The kinds of outcome, each made by the function of that name.
const (
	Completed OutcomeKind = iota + 1
	Failed
	Nacked
	Released
)

// String is the kind as a word.
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

// Outcome is the end of a delivery. Make it with Complete, Fail, Nack, NackAfter,
// Release, NotStarted or Stopped.
type Outcome struct {
	Kind OutcomeKind
	// Result is the JSON object of a completion.
	Result []byte
	// Reason is the reason of a failure, a nack or NotStarted.
	Reason string
	// delaySeconds is the pause after a nack; negative leaves it to the backoff.
	delaySeconds int64
	// why is the reason of a release.
	why wire.ReleaseRequest
	// exit is how the program of a failure or a nack ended.
	exit wire.Exit
	// artifacts are those of a completion or a failure.
	artifacts []wire.Artifact
}

// Exited adds to a failure or a nack how the program ended that worked on the task. The
// history of the task shows it. Other outcomes stay as they are.
func (o Outcome) Exited(exit wire.Exit) Outcome {
	if o.Kind == Failed || o.Kind == Nacked {
		o.exit = exit
	}
	return o
}

// Complete ends the task with a result, which must be one JSON object of at most
// wire.MaxResultBytes. The bytes are sent as they are. If the result is anything else,
// the outcome is a nack whose reason says so.
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
		return "the result is JSON, but not an object"
	}
	return ""
}

// Fail ends the task as FAILED: it is not tried again. Of a reason over
// wire.MaxErrorBytes the last bytes are kept.
func Fail(reason string) Outcome {
	return Outcome{Kind: Failed, Reason: sayable(reason)}
}

// Nack ends the delivery as a failed attempt. The task is tried again after the backoff of
// its queue, until its attempts are used up. Of a reason over wire.MaxErrorBytes the last
// bytes are kept.
func Nack(reason string) Outcome {
	return Outcome{Kind: Nacked, Reason: sayable(reason), delaySeconds: -1}
}

// NackAfter is Nack with a delay in place of the backoff, rounded up to whole seconds. A
// delay above the longest backoff of the queue, 15 minutes by default, is cut to that;
// EndAnswer.Wait and Ending.Wait have the delay that holds.
func NackAfter(reason string, delay time.Duration) Outcome {
	out := Nack(reason)
	out.delaySeconds = wholeSeconds(max(0, delay))
	return out
}

// Release hands the task back to its old place in the queue and counts no attempt. A task
// that is released more than ten times for each of its attempts becomes a dead letter;
// NotStarted and Stopped do not count.
func Release() Outcome { return Outcome{Kind: Released} }

// NotStarted hands the task back because the work could not start for a reason that is
// not the task's: a program is missing, there are no descriptors, no memory. The reason
// goes to the notices, not to the server. After it a Worker takes no task for a pause,
// which doubles from 1 s to 60 s while this goes on.
func NotStarted(reason string) Outcome {
	return Outcome{Kind: Released, Reason: sayable(reason), why: wire.ReleaseRequest{NotStarted: true}}
}

// Stopped hands the task back because this process ends. A Worker that drains or stops
// turns Release into it.
func Stopped() Outcome {
	return Outcome{Kind: Released, why: wire.ReleaseRequest{Stopping: true}}
}

// sayable makes a text that the protocol accepts as a reason: UTF-8, not empty, not over
// the limit.
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
			ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: o.Result, Artifacts: o.artifacts}}
	case Failed:
		return &wire.Result{Ref: ref, TaskRef: delivery,
			ResultRequest: wire.ResultRequest{Status: wire.StatusFailed, Error: o.Reason, Exit: o.exit, Artifacts: o.artifacts}}
	case Nacked:
		return &wire.Nack{Ref: ref, TaskRef: delivery,
			NackRequest: wire.NackRequest{DelaySeconds: o.delaySeconds, Reason: o.Reason, Exit: o.exit}}
	case Released:
		return &wire.Release{Ref: ref, TaskRef: delivery, ReleaseRequest: o.why}
	}
	panic(fmt.Sprintf("outcome kind %d has no frame", o.Kind))
}

// insteadOf is the outcome to send after the server has refused the content of this one.
// Without an outcome the task, and one place of the window, would be taken until the
// lease ends.
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
