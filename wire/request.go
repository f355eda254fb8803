package wire

import (
	"cmp"
	"fmt"
	"strings"
)

// EnqueueRequest is what a producer asks: the body of POST /tasks and the
// fields of an enqueue frame. The parser has checked every field against its
// limit; an absent field has its default, unless that is the queue's to say.
type EnqueueRequest struct {
	Command string
	// Payload is the JSON value as posted, byte for byte; `null` is a payload.
	Payload  []byte
	Priority int
	// MaxAttempts is 0 when the client left it to the queue.
	MaxAttempts    int
	IdempotencyKey string
	// RunAtMs is the absolute time asked for, DelaySeconds the relative one;
	// at most one of them is not 0.
	RunAtMs      int64
	DelaySeconds int64
	// TimeoutSeconds is how long one delivery may run, ExpiresAtMs or TTLSeconds
	// when the task expires, as a time or counted from its acceptance. 0 leaves it
	// to the queue; at most one of the last two is not 0.
	TimeoutSeconds int64
	ExpiresAtMs    int64
	TTLSeconds     int64
	TraceParent    string
	TraceState     string
}

// Times are when a task that is accepted at nowMs may begin, and when it expires,
// 0 for never, all in Unix milliseconds. queueTTLSeconds counts for a request that
// says nothing of an expiry, 0 is none. It refuses times more than MaxDelaySeconds
// away, and a task that would expire before it may begin. It may be called from
// any goroutine.
func (r *EnqueueRequest) Times(nowMs, queueTTLSeconds int64) (dueMs, expiresMs int64, refusal *Error) {
	const mostMs = MaxDelaySeconds * 1000
	if r.RunAtMs-nowMs > mostMs {
		return 0, 0, Refuse(CodeInvalidTime, "runAt must be at most ten years from now")
	}
	if r.ExpiresAtMs-nowMs > mostMs {
		return 0, 0, Refuse(CodeInvalidTime, "expiresAt must be at most ten years from now")
	}
	dueMs, expiresMs = max(nowMs, r.RunAtMs, nowMs+r.DelaySeconds*1000), r.ExpiresAtMs
	if ttlSeconds := cmp.Or(r.TTLSeconds, queueTTLSeconds); expiresMs == 0 && ttlSeconds != 0 {
		expiresMs = nowMs + ttlSeconds*1000
	}
	if expiresMs != 0 && expiresMs <= dueMs {
		return 0, 0, Refuse(CodeInvalidTime, fmt.Sprintf("the task would expire at %s and may begin at %s; "+
			"give an expiresAt or ttlSeconds that ends later, or an earlier runAt or delaySeconds",
			timeText(expiresMs), timeText(dueMs)))
	}
	return dueMs, expiresMs, nil
}

// timeText is a time as it stands in a sentence.
func timeText(unixMs int64) string { return strings.Trim(string(AppendTimeMs(nil, unixMs)), `"`) }

// ResultRequest is what a worker reports: the body of POST /tasks/{id}/result
// and the fields of a result frame. Status is COMPLETED or FAILED, already
// derived from the other fields when the client left it out.
type ResultRequest struct {
	Status Status
	// Result is the JSON object as sent, byte for byte; required when
	// COMPLETED.
	Result    []byte
	Error     string
	Artifacts []Artifact
	Exit      Exit
}

// Exit is how the program that worked on a delivery ended, as its worker tells it:
// by a signal, or with a code. Its zero value says nothing.
type Exit struct {
	Signal string
	Code   int
	// Coded says that there is a code, which may be 0.
	Coded bool
}

// Holder is how a call over HTTP shows that a delivery is its own: by the token,
// zero when the body has none, and without it by the name of its worker, empty
// when the body names none.
type Holder struct {
	Token    Token
	WorkerID string
}

// ClaimRequest is what a worker asks over HTTP: the body of POST /tasks/claim
// and /tasks/claim/batch. Commands nil means all that the credential is good
// for. Count is 1 for a single claim.
type ClaimRequest struct {
	Commands []string
	// LeaseSeconds is 0 when the client leaves it to the queue of each task.
	LeaseSeconds int
	WaitSeconds  int
	WorkerID     string
	Count        int
}

// ReleaseRequest is the body of a release: why a delivery is handed back.
// NotStarted: the work never began. Stopping: the worker ends. Either says
// nothing about the task, so such a hand-back does not count towards
// RELEASED_TOO_OFTEN.
type ReleaseRequest struct {
	NotStarted bool
	Stopping   bool
}

// Counts reports whether the hand-back counts towards RELEASED_TOO_OFTEN. It
// may be called from any goroutine.
func (r ReleaseRequest) Counts() bool { return !r.NotStarted && !r.Stopping }

// NackRequest is the body of a nack. DelaySeconds is negative when the client
// left the delay to the backoff policy.
type NackRequest struct {
	DelaySeconds int64
	Reason       string
	Exit         Exit
}
