package wire

import (
	"errors"
	"fmt"
	"math"
)

// What a server says is read for its types and for what a reader cannot do
// without; limits are the server's business, and members of a newer version
// are passed over. The code of these rules is never seen.
var (
	anyTextRule    = textRule{code: CodeInvalidBody, high: math.MaxInt}
	needTextRule   = textRule{code: CodeInvalidBody, high: math.MaxInt, required: true}
	anyIntegerRule = integerRule{code: CodeInvalidBody, low: math.MinInt64, high: math.MaxInt64}
	countRule      = integerRule{code: CodeInvalidBody, high: math.MaxInt64, required: true}
)

// The members of a task.
const (
	taskID = iota
	taskCommand
	taskPayload
	taskPriority
	taskStatus
	taskLocation
	taskAttempts
	taskMaxAttempts
	taskDeliveries
	taskWebhook
	taskWorkerID
	taskLeaseUntil
	taskVisibleAt
	taskDeadCause
	taskError
	taskHistory
	taskWaiting
	taskTenantID
	taskTraceParent
	taskTraceState
	taskCreatedAt
	taskUpdatedAt
	taskLeaseToken
	taskRunUntil
	taskTimeoutSeconds
	taskExpiresAt
	taskCancelCause
)

var taskNames = []string{
	taskID:          "id",
	taskCommand:     "command",
	taskPayload:     "payload",
	taskPriority:    "priority",
	taskStatus:      "status",
	taskLocation:    "lastKnownLocation",
	taskAttempts:    "attempts",
	taskMaxAttempts: "maxAttempts",
	taskDeliveries:  "deliveries",
	taskWebhook:     "webhook",
	taskWorkerID:    "workerId",
	taskLeaseUntil:  "leaseUntil",
	taskVisibleAt:   "visibleAt",
	taskDeadCause:   "dlqCause",
	taskError:       "error",
	taskHistory:     "history",
	taskWaiting:     "waiting",
	taskTenantID:    "tenantId",
	taskTraceParent: "traceParent",
	taskTraceState:  "traceState",
	taskCreatedAt:   "createdAt",
	taskUpdatedAt:   "updatedAt",
	taskLeaseToken:  "leaseToken",

	taskRunUntil:       "runUntil",
	taskTimeoutSeconds: "timeoutSeconds",
	taskExpiresAt:      "expiresAt",
	taskCancelCause:    "cancelCause",
}

// The members of a history line.
const (
	lineDelivery = iota
	lineWorkerID
	lineFrom
	lineTo
	lineCause
	lineCloseCode
	lineError
	lineExitCode
	lineSignal
)

var lineNames = []string{
	lineDelivery: "delivery", lineWorkerID: "workerId", lineFrom: "from", lineTo: "to", lineCause: "cause",
	lineCloseCode: "closeCode", lineError: "error", lineExitCode: "exitCode", lineSignal: "signal",
}

// ParseTask reads a task as HTTP answers it: payload is a string that holds
// the JSON. Unknown members are passed over.
func ParseTask(data []byte) (*Task, error) {
	o := object{names: taskNames}
	if problem := o.scanAlone(data); problem != "" {
		return nil, errors.New("read task: task " + problem)
	}
	t := o.task(PayloadAsString)
	if o.err != nil {
		return nil, errors.New("read task: " + o.err.Sentence)
	}
	return t, nil
}

// ParseClaimed reads a task as a claim answers it, with the token of its
// delivery.
func ParseClaimed(data []byte) (*Task, Token, error) {
	o := object{names: taskNames}
	if problem := o.scanAlone(data); problem != "" {
		return nil, Token{}, errors.New("read claimed task: task " + problem)
	}
	t := o.task(PayloadAsString)
	token := o.token(taskLeaseToken, &needTextRule)
	if o.err != nil {
		return nil, Token{}, errors.New("read claimed task: " + o.err.Sentence)
	}
	return t, token, nil
}

func (o *object) task(form PayloadForm) *Task {
	// A cause that is not known here is none.
	cause, _ := parseDeadCause(o.text(taskDeadCause, &anyTextRule))
	return &Task{
		DeadCause:    cause,
		ID:           o.taskID(taskID),
		Command:      o.text(taskCommand, &anyTextRule),
		Payload:      o.payloadOf(form),
		Priority:     int(o.integer(taskPriority, &anyIntegerRule)),
		Status:       Status(o.text(taskStatus, &anyTextRule)),
		Location:     Location(o.text(taskLocation, &anyTextRule)),
		Attempts:     int(o.integer(taskAttempts, &anyIntegerRule)),
		MaxAttempts:  int(o.integer(taskMaxAttempts, &anyIntegerRule)),
		Deliveries:   int(o.integer(taskDeliveries, &anyIntegerRule)),
		Webhook:      o.text(taskWebhook, &anyTextRule),
		WorkerID:     o.text(taskWorkerID, &anyTextRule),
		LeaseUntilMs: o.timeMs(taskLeaseUntil, CodeInvalidBody),
		VisibleAtMs:  o.timeMs(taskVisibleAt, CodeInvalidBody),
		Error:        o.text(taskError, &anyTextRule),
		RunUntilMs:   o.timeMs(taskRunUntil, CodeInvalidBody),
		ExpiresAtMs:  o.timeMs(taskExpiresAt, CodeInvalidBody),
		CancelCause:  o.text(taskCancelCause, &anyTextRule),
		History:      o.history(),
		Waiting:      o.waiting(),

		TimeoutSeconds: o.integer(taskTimeoutSeconds, &anyIntegerRule),

		TenantID:    o.text(taskTenantID, &anyTextRule),
		TraceParent: o.text(taskTraceParent, &anyTextRule),
		TraceState:  o.text(taskTraceState, &anyTextRule),
		CreatedAtMs: o.timeMs(taskCreatedAt, CodeInvalidBody),
		UpdatedAtMs: o.timeMs(taskUpdatedAt, CodeInvalidBody),
	}
}

// payloadOf reads the payload in the form it was written in. What comes out
// of a string must be JSON again, since it may be spliced into JSON later.
func (o *object) payloadOf(form PayloadForm) []byte {
	if form == PayloadAsValue {
		return o.raw[taskPayload]
	}
	text := o.text(taskPayload, &anyTextRule)
	if text == "" {
		return nil
	}
	payload := []byte(text)
	if err := CheckJSON(payload); err != nil {
		o.refuse(CodeInvalidBody, taskPayload, "must hold JSON: "+err.Error())
	}
	return payload
}

func (o *object) history() []HistoryLine {
	list, _ := o.elements(taskHistory, CodeInvalidBody, math.MaxInt)
	var history []HistoryLine
	for i, raw := range list {
		e := o.element(taskHistory, i, raw, lineNames, CodeInvalidBody)
		history = append(history, HistoryLine{
			Delivery:  int(e.integer(lineDelivery, &anyIntegerRule)),
			WorkerID:  e.text(lineWorkerID, &anyTextRule),
			FromMs:    e.timeMs(lineFrom, CodeInvalidBody),
			ToMs:      e.timeMs(lineTo, CodeInvalidBody),
			Cause:     e.text(lineCause, &anyTextRule),
			CloseCode: int(e.integer(lineCloseCode, &anyIntegerRule)),
			Error:     e.text(lineError, &anyTextRule),
			Exit: Exit{
				Signal: e.text(lineSignal, &anyTextRule), Code: int(e.integer(lineExitCode, &anyIntegerRule)), Coded: e.given(lineExitCode) != nil,
			},
		})
		if e.err != nil {
			o.err = e.err
			break
		}
	}
	return history
}

// The members of a result record.
const (
	recordTaskID = iota
	recordStatus
	recordResult
	recordError
	recordArtifacts
	recordCompletedAt
	recordCancelCause
)

var recordNames = []string{
	recordTaskID: "taskId", recordStatus: "status", recordResult: "result", recordError: "error",
	recordArtifacts: "artifacts", recordCompletedAt: "completedAt", recordCancelCause: "cancelCause",
}

// ParseResultRecord reads a result record. Its result aliases data; unknown
// members are passed over.
func ParseResultRecord(data []byte) (*ResultRecord, error) {
	o := object{names: recordNames}
	if problem := o.scanAlone(data); problem != "" {
		return nil, errors.New("read result record: record " + problem)
	}
	r := &ResultRecord{
		TaskID:        o.taskID(recordTaskID),
		Status:        Status(o.text(recordStatus, &needTextRule)),
		Result:        o.given(recordResult),
		Error:         o.text(recordError, &anyTextRule),
		CancelCause:   o.text(recordCancelCause, &anyTextRule),
		Artifacts:     o.links(),
		CompletedAtMs: o.timeMs(recordCompletedAt, CodeInvalidBody),
	}
	if o.err != nil {
		return nil, errors.New("read result record: " + o.err.Sentence)
	}
	return r, nil
}

// links reads the artifacts of a record.
func (o *object) links() []Artifact {
	list, _ := o.elements(recordArtifacts, CodeInvalidBody, math.MaxInt)
	var links []Artifact
	for i, raw := range list {
		e := o.element(recordArtifacts, i, raw, artifactNames, CodeInvalidBody)
		links = append(links, Artifact{
			Name: e.text(artifactName, &anyTextRule),
			URL:  e.text(artifactURL, &anyTextRule),
		})
		if e.err != nil {
			o.err = e.err
			break
		}
	}
	return links
}

// The members of a refusal.
const (
	errorSentence = iota
	errorCode
	errorTaskID
	errorStatus
	errorRetryAfter
	errorTask
)

var errorNames = []string{
	errorSentence: "error", errorCode: "code", errorTaskID: "taskId", errorStatus: "status",
	errorRetryAfter: "retryAfterSeconds", errorTask: "task",
}

// ParseError reads the body of a refusal. The second value is not nil when
// data is none, as from a proxy that answers in the server's place.
func ParseError(data []byte) (*Error, error) {
	o := object{names: errorNames}
	if problem := o.scanAlone(data); problem != "" {
		return nil, errors.New("read refusal: refusal " + problem)
	}
	e := &Error{
		Code:              Code(o.text(errorCode, &needTextRule)),
		Sentence:          o.text(errorSentence, &needTextRule),
		TaskID:            o.optTaskID(errorTaskID),
		Status:            Status(o.text(errorStatus, &anyTextRule)),
		RetryAfterSeconds: int(o.integer(errorRetryAfter, &anyIntegerRule)),
	}
	if raw := o.given(errorTask); raw != nil {
		task, err := ParseTask(raw)
		if err != nil {
			return nil, fmt.Errorf("read refusal: %w", err)
		}
		e.Task = task
	}
	if o.err != nil {
		return nil, errors.New("read refusal: " + o.err.Sentence)
	}
	return e, nil
}

// optTaskID reads a task id that need not be there.
func (o *object) optTaskID(field int) TaskID {
	if o.given(field) == nil {
		return TaskID{}
	}
	return o.taskID(field)
}
