package wire

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// The members that mean something in a request, in bodies and frames alike.
const (
	fieldType = iota
	fieldRef
	fieldToken
	fieldWorkerID
	fieldResume
	fieldMaxMessageBytes
	fieldCommands
	fieldLeaseSeconds
	fieldWindow
	fieldSize
	fieldThrough
	fieldTaskID
	fieldLeaseToken
	fieldStatus
	fieldResult
	fieldError
	fieldArtifacts
	fieldDelaySeconds
	fieldReason
	fieldTasks
	fieldExtendSeconds
	fieldCommand
	fieldPayload
	fieldPriority
	fieldWebhook
	fieldMaxAttempts
	fieldIdempotencyKey
	fieldRunAt
	fieldTraceParent
	fieldTraceState
	fieldStarted
	fieldStopping
	fieldExitCode
	fieldSignal
	fieldTimeoutSeconds
	fieldExpiresAt
	fieldTTLSeconds
)

var requestNames = []string{
	fieldType:            "type",
	fieldRef:             "ref",
	fieldToken:           "token",
	fieldWorkerID:        "workerId",
	fieldResume:          "resume",
	fieldMaxMessageBytes: "maxMessageBytes",
	fieldCommands:        "commands",
	fieldLeaseSeconds:    "leaseSeconds",
	fieldWindow:          "window",
	fieldSize:            "size",
	fieldThrough:         "through",
	fieldTaskID:          "taskId",
	fieldLeaseToken:      "leaseToken",
	fieldStatus:          "status",
	fieldResult:          "result",
	fieldError:           "error",
	fieldArtifacts:       "artifacts",
	fieldDelaySeconds:    "delaySeconds",
	fieldReason:          "reason",
	fieldTasks:           "tasks",
	fieldExtendSeconds:   "extendSeconds",
	fieldCommand:         "command",
	fieldPayload:         "payload",
	fieldPriority:        "priority",
	fieldWebhook:         "webhook",
	fieldMaxAttempts:     "maxAttempts",
	fieldIdempotencyKey:  "idempotencyKey",
	fieldRunAt:           "runAt",
	fieldTraceParent:     "traceParent",
	fieldTraceState:      "traceState",
	fieldStarted:         "started",
	fieldStopping:        "stopping",
	fieldExitCode:        "exitCode",
	fieldSignal:          "signal",
	fieldTimeoutSeconds:  "timeoutSeconds",
	fieldExpiresAt:       "expiresAt",
	fieldTTLSeconds:      "ttlSeconds",
}

// The members of each kind of request, as bits.
const (
	envelopeBits = 1<<fieldType | 1<<fieldRef
	deliveryBits = 1<<fieldTaskID | 1<<fieldLeaseToken
	enqueueBits  = 1<<fieldCommand | 1<<fieldPayload | 1<<fieldPriority | 1<<fieldWebhook |
		1<<fieldMaxAttempts | 1<<fieldIdempotencyKey | 1<<fieldRunAt | 1<<fieldDelaySeconds |
		1<<fieldTraceParent | 1<<fieldTraceState | 1<<fieldTimeoutSeconds | 1<<fieldExpiresAt | 1<<fieldTTLSeconds
	exitBits    = 1<<fieldExitCode | 1<<fieldSignal
	resultBits  = 1<<fieldStatus | 1<<fieldResult | 1<<fieldError | 1<<fieldArtifacts | exitBits
	nackBits    = 1<<fieldDelaySeconds | 1<<fieldReason | exitBits
	releaseBits = 1<<fieldStarted | 1<<fieldStopping
	holderBits  = 1<<fieldLeaseToken | 1<<fieldWorkerID
)

var (
	commandRule     = textRule{code: CodeInvalidCommand, high: math.MaxInt, required: true}
	priorityRule    = integerRule{code: CodeInvalidPriority, high: MaxPriority}
	maxAttemptsRule = integerRule{code: CodeInvalidArgument, low: 1, high: MaxAttemptsLimit}
	keyRule         = textRule{code: CodeInvalidArgument, high: MaxKeyBytes, filled: true, exact: true}
	delayRule       = integerRule{code: CodeInvalidTime, high: MaxDelaySeconds}
	timeoutRule     = integerRule{code: CodeInvalidArgument, low: 1, high: MaxTimeoutSeconds}
	ttlRule         = integerRule{code: CodeInvalidTime, low: 1, high: MaxDelaySeconds}
	nackDelayRule   = integerRule{code: CodeInvalidTime, high: MaxDelaySeconds, absent: -1}
	traceRule       = textRule{code: CodeInvalidArgument, high: MaxTraceBytes, exact: true}
	statusRule      = textRule{code: CodeInvalidResult, high: math.MaxInt}
	errorRule       = textRule{code: CodeInvalidResult, high: MaxErrorBytes, tooLong: CodeTooLarge, exact: true}
	reasonRule      = textRule{code: CodeInvalidArgument, high: MaxErrorBytes, tooLong: CodeTooLarge, exact: true}
	exitCodeRule    = integerRule{code: CodeInvalidArgument, high: MaxExitCode}
	signalRule      = textRule{code: CodeInvalidArgument, high: MaxSignalBytes, filled: true, exact: true}
	idRule          = textRule{code: CodeInvalidArgument, high: math.MaxInt, required: true}
	tokenRule       = textRule{code: CodeInvalidArgument, high: math.MaxInt, required: true}
	bodyTokenRule   = textRule{code: CodeInvalidArgument, high: math.MaxInt, filled: true}
)

// CheckCommand refuses what is no name of a command: 1 to 200 bytes of ASCII
// letters, digits, dot, underscore, colon and hyphen, and not dots alone,
// which a path would lose. nil means the name is good.
func CheckCommand(name string) *Error {
	if problem := commandProblem(name); problem != "" {
		return Refuse(CodeInvalidCommand, "command "+problem)
	}
	return nil
}

// commandProblem continues a sentence that begins with where the name stood;
// empty when the name is good.
func commandProblem(name string) string {
	if len(name) == 0 || len(name) > MaxCommandBytes {
		return fmt.Sprintf("must have 1 to %d bytes, got %d", MaxCommandBytes, len(name))
	}
	onlyDots := true
	for i := range len(name) {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && !isDigit(c) && c != '.' && c != '_' && c != ':' && c != '-' {
			return fmt.Sprintf("may hold only letters, digits, dots, underscores, colons and hyphens, byte %d is none", i)
		}
		onlyDots = onlyDots && c == '.'
	}
	if onlyDots {
		return "must not be dots alone"
	}
	return ""
}

// ParseEnqueueRequest reads the body of POST /tasks. The payload of the
// result aliases body, which the caller must not touch again.
func ParseEnqueueRequest(body []byte) (*EnqueueRequest, *Error) {
	o := object{names: requestNames}
	o.scanBody(body, enqueueBits)
	r := o.enqueueRequest()
	if o.err != nil {
		return nil, o.err
	}
	return &r, nil
}

// CheckBareRequest refuses a body that is neither empty nor one JSON object,
// for requests whose body means nothing.
func CheckBareRequest(body []byte) *Error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	o := object{names: requestNames}
	o.scanBody(body, 0)
	return o.err
}

// scanBody takes a body apart, which must be one JSON object and nothing
// else. Whatever is wrong with it goes to err.
func (o *object) scanBody(body []byte, known uint64) {
	if problem := o.scanAlone(body); problem != "" {
		o.err = Refuse(CodeInvalidBody, "body "+problem)
		return
	}
	o.checkMembers(known)
}

// scanAlone takes apart a text that is one object and returns what is wrong,
// to be put behind a word for the text.
func (o *object) scanAlone(text []byte) (problem string) {
	s := scanner{data: text}
	return s.alone(func() bool { return s.object(o) })
}

// alone scans a text that is one object, which object consumes, and returns
// what is wrong.
func (s *scanner) alone(object func() bool) (problem string) {
	switch {
	case len(s.data) == 0:
		return problemNoObject + ", got nothing"
	case !s.utf8():
		return problemNoObject + ": " + s.problemAt()
	case s.peek() != '{':
		if s.value(0) && s.end() {
			return problemNoObject + ", got " + describe(bytes.TrimSpace(s.data))
		}
		return problemNoObject + ": " + s.problemAt()
	case !object() || !s.end():
		return problemNoObject + ": " + s.problemAt()
	}
	return ""
}

func (o *object) enqueueRequest() EnqueueRequest {
	r := EnqueueRequest{Command: o.text(fieldCommand, &commandRule)}
	o.checkCommand(r.Command)
	r.Payload = o.raw[fieldPayload] // null is a value here
	o.checkPayload(r.Payload)
	r.Priority = int(o.integer(fieldPriority, &priorityRule))
	o.refuseWebhook()
	r.MaxAttempts = int(o.integer(fieldMaxAttempts, &maxAttemptsRule))
	r.IdempotencyKey = o.text(fieldIdempotencyKey, &keyRule)
	r.RunAtMs = max(0, o.timeMs(fieldRunAt, CodeInvalidTime))
	r.DelaySeconds = o.integer(fieldDelaySeconds, &delayRule)
	if o.given(fieldRunAt) != nil && o.given(fieldDelaySeconds) != nil {
		o.refuse(CodeInvalidTime, fieldRunAt, notWithDelay)
	}
	o.limits(&r)
	r.TraceParent = o.text(fieldTraceParent, &traceRule)
	r.TraceState = o.text(fieldTraceState, &traceRule)
	return r
}

// limits reads how long a delivery may run, and when the task expires.
func (o *object) limits(r *EnqueueRequest) {
	r.TimeoutSeconds = o.integer(fieldTimeoutSeconds, &timeoutRule)
	r.TTLSeconds = o.integer(fieldTTLSeconds, &ttlRule)
	if o.given(fieldExpiresAt) == nil {
		return
	}
	// Nothing was posted before 1970, but whoever says so does not mean never.
	r.ExpiresAtMs = max(1, o.timeMs(fieldExpiresAt, CodeInvalidTime))
	if r.TTLSeconds != 0 {
		o.refuse(CodeInvalidTime, fieldExpiresAt, notWithTTL)
	}
}

const (
	notWithDelay = "and delaySeconds must not be given together"
	notWithTTL   = "and ttlSeconds must not be given together"
)

// Check refuses what ParseEnqueueRequest refuses, with the same code and sentence, in a
// request that was not read from JSON. It refuses texts that are not UTF-8, too: JSON
// would carry another text in their place. It may be called from any goroutine.
func (r *EnqueueRequest) Check() *Error {
	o := object{names: requestNames}
	if err := CheckJSON(r.Payload); len(r.Payload) > 0 && err != nil {
		o.refuse(CodeInvalidBody, fieldPayload, strings.TrimPrefix(err.Error(), "value "))
	}
	o.checkText(fieldCommand, r.Command, &commandRule)
	o.checkCommand(r.Command)
	o.checkPayload(r.Payload)
	o.checkGiven(fieldPriority, int64(r.Priority), &priorityRule)
	o.checkGiven(fieldMaxAttempts, int64(r.MaxAttempts), &maxAttemptsRule)
	o.checkGivenText(fieldIdempotencyKey, r.IdempotencyKey, &keyRule)
	o.checkGiven(fieldDelaySeconds, r.DelaySeconds, &delayRule)
	if r.RunAtMs != 0 && r.DelaySeconds != 0 {
		o.refuse(CodeInvalidTime, fieldRunAt, notWithDelay)
	}
	o.checkGiven(fieldTimeoutSeconds, r.TimeoutSeconds, &timeoutRule)
	o.checkGiven(fieldTTLSeconds, r.TTLSeconds, &ttlRule)
	if r.ExpiresAtMs != 0 && r.TTLSeconds != 0 {
		o.refuse(CodeInvalidTime, fieldExpiresAt, notWithTTL)
	}
	o.checkGivenText(fieldTraceParent, r.TraceParent, &traceRule)
	o.checkGivenText(fieldTraceState, r.TraceState, &traceRule)
	return o.err
}

func (o *object) checkCommand(name string) {
	if problem := commandProblem(name); problem != "" {
		o.refuse(CodeInvalidCommand, fieldCommand, problem)
	}
}

func (o *object) checkPayload(raw []byte) {
	if len(raw) == 0 {
		o.refuse(CodeInvalidBody, fieldPayload, "is required: any JSON value, null too")
	}
	if len(raw) > MaxPayloadBytes {
		o.refuse(CodeTooLarge, fieldPayload, fmt.Sprintf("must be at most %d bytes, got %d", MaxPayloadBytes, len(raw)))
	}
}

// refuseWebhook: accepting an address and then never calling it would lose
// the callback silently.
func (o *object) refuseWebhook() {
	if raw := o.given(fieldWebhook); raw != nil && string(raw) != `""` {
		o.refuse(CodeInvalidWebhook, fieldWebhook, "must be left out: result callbacks are not served yet")
	}
}

func (o *object) resultRequest() ResultRequest {
	r := ResultRequest{
		Result: o.given(fieldResult),
		Error:  o.text(fieldError, &errorRule),
	}
	r.Status = o.resultStatus(&r)
	switch {
	case r.Result == nil && r.Status == StatusCompleted:
		o.refuse(CodeInvalidResult, fieldResult, "is required when status is COMPLETED: a JSON object")
	case r.Result != nil && r.Result[0] != '{':
		o.refuse(CodeInvalidResult, fieldResult, "must be a JSON object, got "+describe(r.Result))
	case len(r.Result) > MaxResultBytes:
		o.refuse(CodeTooLarge, fieldResult, fmt.Sprintf("must be at most %d bytes, got %d", MaxResultBytes, len(r.Result)))
	case r.Error == "" && r.Status == StatusFailed:
		o.refuse(CodeInvalidResult, fieldError, "is required when status is FAILED: a string")
	}
	r.Artifacts = o.artifacts()
	r.Exit = o.exit()
	return r
}

// exit reads how a program ended; it cannot have ended in both ways.
func (o *object) exit() Exit {
	e := Exit{
		Signal: o.text(fieldSignal, &signalRule), Code: int(o.integer(fieldExitCode, &exitCodeRule)), Coded: o.given(fieldExitCode) != nil,
	}
	if e.Coded && e.Signal != "" {
		o.refuse(CodeInvalidArgument, fieldExitCode, "and signal must not be given together")
	}
	return e
}

// resultStatus reads the status, or derives it from what came with it.
func (o *object) resultStatus(r *ResultRequest) Status {
	status := Status(o.text(fieldStatus, &statusRule))
	switch {
	case o.given(fieldStatus) != nil:
		if status != StatusCompleted && status != StatusFailed {
			o.refuse(CodeInvalidResult, fieldStatus, "must be COMPLETED or FAILED")
		}
		return status
	case r.Result != nil:
		return StatusCompleted
	case r.Error != "":
		return StatusFailed
	}
	o.refuse(CodeInvalidResult, fieldResult, "or error is required when status is left out")
	return ""
}

func (o *object) nackRequest() NackRequest {
	return NackRequest{
		DelaySeconds: o.integer(fieldDelaySeconds, &nackDelayRule),
		Reason:       o.text(fieldReason, &reasonRule),
		Exit:         o.exit(),
	}
}

func (o *object) releaseRequest() ReleaseRequest {
	return ReleaseRequest{
		NotStarted: !o.trueOrFalse(fieldStarted) && o.given(fieldStarted) != nil,
		Stopping:   o.trueOrFalse(fieldStopping),
	}
}

// The members of one artifact of a result.
const (
	artifactName = iota
	artifactURL
	artifactContent
	artifactType
)

// The tolerated ones are those that clients of the original HTTP API send and that
// nothing reads; docs/from-codeq-http.md lists them.
const (
	artifactBits          = 1<<artifactName | 1<<artifactURL | 1<<artifactContent
	toleratedArtifactBits = 1 << artifactType
)

var (
	artifactNames = []string{
		artifactName: "name", artifactURL: "url", artifactContent: "contentBase64", artifactType: "contentType",
	}
	artifactNameRule = textRule{code: CodeInvalidResult, high: MaxArtifactNameBytes, required: true, exact: true}
	artifactURLRule  = textRule{code: CodeInvalidResult, high: MaxArtifactURLBytes, required: true, exact: true}
)

func (o *object) artifacts() []Artifact {
	list, _ := o.elements(fieldArtifacts, CodeInvalidResult, MaxArtifacts)
	artifacts := make([]Artifact, 0, len(list))
	for i, raw := range list {
		e := o.element(fieldArtifacts, i, raw, artifactNames, CodeInvalidResult)
		e.checkMembers(artifactBits | toleratedArtifactBits)
		if e.given(artifactContent) != nil {
			e.refuse(CodeInvalidResult, artifactContent, "must be left out: uploads are not served yet, give a url")
		}
		artifacts = append(artifacts, Artifact{
			Name: e.text(artifactName, &artifactNameRule),
			URL:  e.text(artifactURL, &artifactURLRule),
		})
		if e.err != nil {
			o.err = e.err
			return nil
		}
	}
	if len(artifacts) == 0 {
		return nil
	}
	return artifacts
}
