package wire

import (
	"cmp"
	"fmt"
	"strings"
)

// EnqueueRequest is the body of POST /tasks and the fields of an enqueue frame. Parsing
// checks every field, and so does Check.
type EnqueueRequest struct {
	Command string
	// Payload is the JSON value as posted, byte for byte; null is a payload.
	Payload  []byte
	Priority int
	// MaxAttempts is how many attempts may fail; 0 means the number of the queue.
	MaxAttempts    int
	IdempotencyKey string
	// RunAtMs is when the task may begin, in Unix milliseconds. At most one of RunAtMs and
	// DelaySeconds is not 0.
	RunAtMs int64
	// DelaySeconds is when the task may begin, counted from its acceptance.
	DelaySeconds int64
	// TimeoutSeconds is how long one delivery may run; 0 means the timeout of the queue.
	TimeoutSeconds int64
	// ExpiresAtMs is when the task expires, in Unix milliseconds. At most one of
	// ExpiresAtMs and TTLSeconds is not 0; if both are, the TTL of the queue holds.
	ExpiresAtMs int64
	// TTLSeconds is when the task expires, counted from its acceptance.
	TTLSeconds int64
	// TraceParent and TraceState are the context of W3C Trace Context that workers and callbacks
	// get, both empty for none.
	TraceParent string
	TraceState  string
	Labels      Labels
	// ConcurrencyKey names what the task must share with others, for example a customer; the
	// limits PerKey of the queue hold for each key.
	ConcurrencyKey string
	// Webhook is the URL that gets the outcome, empty for none.
	Webhook string
}

func (r *EnqueueRequest) members(c *coder) {
	c.text(`,"command":`, &r.Command, &ownCommandRule)
	c.payload(`,"payload":`, &r.Payload)
	if c.in != nil {
		c.in.checkPayload(c.last(), r.Payload)
	}
	optInteger(c, `,"priority":`, &r.Priority, &priorityRule)
	optInteger(c, `,"maxAttempts":`, &r.MaxAttempts, &maxAttemptsRule)
	c.optText(`,"idempotencyKey":`, &r.IdempotencyKey, &keyRule)
	c.optTime(`,"runAt":`, &r.RunAtMs, &runAtRule)
	optInteger(c, `,"delaySeconds":`, &r.DelaySeconds, &delayRule)
	c.notBoth(CodeInvalidTime, r.RunAtMs != 0 && r.DelaySeconds != 0)
	optInteger(c, `,"timeoutSeconds":`, &r.TimeoutSeconds, &timeoutRule)
	c.optTime(`,"expiresAt":`, &r.ExpiresAtMs, &sinceRule)
	optInteger(c, `,"ttlSeconds":`, &r.TTLSeconds, &ttlRule)
	c.notBoth(CodeInvalidTime, r.ExpiresAtMs != 0 && r.TTLSeconds != 0)
	c.optText(`,"traceParent":`, &r.TraceParent, &parentRule)
	c.optText(`,"traceState":`, &r.TraceState, &stateRule)
	c.labels(`,"labels":`, &r.Labels)
	c.optText(`,"concurrencyKey":`, &r.ConcurrencyKey, &concurrencyKeyRule)
	c.optText(`,"webhook":`, &r.Webhook, &webhookRule)
}

// Times returns when a task that is accepted at nowMs may begin and when it expires, 0 for
// never, all in Unix milliseconds. queueTTLSeconds is the TTL of the queue, 0 for none. It
// refuses times more than MaxDelaySeconds away, and a task that would expire before it may
// begin. It may be called from any goroutine.
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

// timeText is a time for a sentence.
func timeText(unixMs int64) string { return strings.Trim(string(AppendTimeMs(nil, unixMs)), `"`) }

// ResultRequest is the body of POST /tasks/{id}/result and the fields of a result frame.
type ResultRequest struct {
	// Status is COMPLETED or FAILED. Parsing derives it from the other fields if it is
	// absent.
	Status Status
	// Result is the JSON object as sent, byte for byte; required for COMPLETED.
	Result    []byte
	Error     string
	Artifacts []Artifact
	Exit      Exit
}

func (r *ResultRequest) members(c *coder) {
	c.optText(`,"status":`, (*string)(&r.Status), &statusRule)
	stated := c.given()
	c.optRaw(`,"result":`, &r.Result)
	c.optText(`,"error":`, &r.Error, &errorRule)
	if c.in != nil {
		c.in.judgeResult(r, stated)
	}
	c.newArtifacts(`,"artifacts":`, &r.Artifacts)
	r.Exit.members(c)
}

// Exit is how the program that worked on a delivery ended: by a signal, or with a code. The
// zero value means that this is not known.
type Exit struct {
	// Signal is the name of the signal, such as SIGKILL.
	Signal string
	Code   int
	// Coded: there is a code, which may be 0.
	Coded bool
}

func (e *Exit) members(c *coder) {
	given := integer(c, `,"exitCode":`, &e.Code, e.Coded, &exitCodeRule)
	if c.in != nil {
		e.Coded = given
	}
	c.optText(`,"signal":`, &e.Signal, &signalRule)
	c.notBoth(CodeInvalidArgument, false)
}

// Holder proves that a request over HTTP is about the caller's delivery: by the token, or
// without one by the name of the worker.
type Holder struct {
	// Token is zero if the body has none.
	Token Token
	// WorkerID is empty if the body has none.
	WorkerID string
}

func (h *Holder) members(c *coder) {
	c.optToken(`,"leaseToken":`, &h.Token, &bodyTokenRule)
	c.optText(`,"workerId":`, &h.WorkerID, &workerRule)
}

// ClaimRequest is the body of POST /tasks/claim and /tasks/claim/batch.
type ClaimRequest struct {
	// Commands are the commands of the tasks; nil means all that the credential allows.
	Commands []string
	// LeaseSeconds is the length of the lease; 0 means that of the queue of each task.
	LeaseSeconds int
	WaitSeconds  int
	WorkerID     string
	// Count is the largest number of tasks; 1 for a single claim.
	Count int
}

func (r *ClaimRequest) members(c *coder) {
	if c.in != nil || r.Commands != nil {
		c.commands(`,"commands":`, &r.Commands)
	}
	optInteger(c, `,"leaseSeconds":`, &r.LeaseSeconds, &leaseRule)
	optInteger(c, `,"waitSeconds":`, &r.WaitSeconds, &claimWaitRule)
	c.optText(`,"workerId":`, &r.WorkerID, &workerRule)
	integer(c, `,"count":`, &r.Count, r.Count > 1, &claimCountRule)
}

// ReleaseRequest is the body of a release: why a task is handed back.
type ReleaseRequest struct {
	// NotStarted: the work never began.
	NotStarted bool
	// Stopping: the worker ends.
	Stopping bool
}

func (r *ReleaseRequest) members(c *coder) {
	started := !r.NotStarted
	given := c.boolean(`,"started":`, &started, r.NotStarted)
	if c.in != nil {
		r.NotStarted = given && !started
	}
	c.boolean(`,"stopping":`, &r.Stopping, r.Stopping)
}

// Counts reports whether the release counts towards RELEASED_TOO_OFTEN: NotStarted and
// Stopping say nothing about the task. It may be called from any goroutine.
func (r ReleaseRequest) Counts() bool { return !r.NotStarted && !r.Stopping }

// NackRequest is the body of a nack.
type NackRequest struct {
	// DelaySeconds is the delay until the next attempt; negative means the backoff.
	DelaySeconds int64
	Reason       string
	Exit         Exit
}

func (r *NackRequest) members(c *coder) {
	integer(c, `,"delaySeconds":`, &r.DelaySeconds, r.DelaySeconds >= 0, &nackDelayRule)
	c.optText(`,"reason":`, &r.Reason, &reasonRule)
	r.Exit.members(c)
}

// AppendEnqueueRequest appends the request as the JSON body of POST /tasks.
func AppendEnqueueRequest(dst []byte, r *EnqueueRequest) []byte {
	c := writing(&dst)
	r.members(&c)
	return c.done()
}

// AppendBatchRequest appends the requests as the JSON body of POST
// /tasks/batch.
func AppendBatchRequest(dst []byte, tasks []EnqueueRequest) []byte {
	dst = append(dst, `{"tasks":[`...)
	for i := range tasks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendEnqueueRequest(dst, &tasks[i])
	}
	return append(dst, "]}"...)
}
