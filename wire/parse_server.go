package wire

import (
	"errors"
	"math"
)

// The members of the frames of a server.
const (
	answerType = iota
	answerRef
	answerSessionID
	answerResume
	answerWorkerID
	answerTenantID
	answerPingSeconds
	answerResumeGraceSeconds
	answerMaxMessageBytes
	answerMaxUnanswered
	answerDurability
	answerServerTime
	answerVersion
	answerFeatures
	answerHeld
	answerSeq
	answerLeaseToken
	answerLeaseMs
	answerLeaseUntil
	answerTask
	answerTaskID
	answerReplayed
	answerStatus
	answerDelaySeconds
	answerLost
	answerCode
	answerError
	answerRetryAfter
	answerReason
	answerGraceSeconds
	answerRunMs
	answerRunUntil
)

var answerNames = []string{
	answerType:               "type",
	answerRef:                "ref",
	answerSessionID:          "sessionId",
	answerResume:             "resume",
	answerWorkerID:           "workerId",
	answerTenantID:           "tenantId",
	answerPingSeconds:        "pingSeconds",
	answerResumeGraceSeconds: "resumeGraceSeconds",
	answerMaxMessageBytes:    "maxMessageBytes",
	answerMaxUnanswered:      "maxUnanswered",
	answerDurability:         "durability",
	answerServerTime:         "serverTime",
	answerVersion:            "version",
	answerFeatures:           "features",
	answerHeld:               "held",
	answerSeq:                "seq",
	answerLeaseToken:         "leaseToken",
	answerLeaseMs:            "leaseMs",
	answerLeaseUntil:         "leaseUntil",
	answerTask:               "task",
	answerTaskID:             "taskId",
	answerReplayed:           "replayed",
	answerStatus:             "status",
	answerDelaySeconds:       "delaySeconds",
	answerLost:               "lost",
	answerCode:               "code",
	answerError:              "error",
	answerRetryAfter:         "retryAfterSeconds",
	answerReason:             "reason",
	answerGraceSeconds:       "graceSeconds",
	answerRunMs:              "runMs",
	answerRunUntil:           "runUntil",
}

// ParseServerMessage reads one message of a server: an array of frames, or a
// single one. Frames of an unknown type and unknown members are passed over,
// so that a client keeps working with a newer server. Payloads alias data.
func ParseServerMessage(data []byte) ([]ServerFrame, error) {
	s := scanner{data: data}
	var frames []ServerFrame
	var refused *Error
	take := func() bool {
		if s.peek() != '{' {
			return s.fail("a frame should begin here")
		}
		o := object{names: answerNames}
		if !s.object(&o) {
			return false
		}
		f := o.serverFrame()
		if refused = o.err; refused != nil {
			return false
		}
		if f != nil {
			frames = append(frames, f)
		}
		return true
	}
	ok := s.utf8() && s.frames(take) && s.end()
	switch {
	case refused != nil:
		return nil, errors.New("read server message: " + refused.Sentence)
	case !ok:
		return nil, errors.New("read server message: " + s.problemAt())
	}
	return frames, nil
}

// serverFrame makes the frame, nil for a type it does not know.
func (o *object) serverFrame() ServerFrame {
	switch o.text(answerType, &needTextRule) {
	case "task":
		return o.taskFrame()
	case "ok":
		return o.okFrame()
	case "error":
		return o.errorFrame()
	case "revoked":
		return &Revoked{
			TaskRef: TaskRef{TaskID: o.taskID(answerTaskID), Token: o.token(answerLeaseToken, &needTextRule)},
			Reason:  o.text(answerReason, &anyTextRule),
		}
	case "draining":
		return &Draining{
			Reason:       o.text(answerReason, &anyTextRule),
			GraceSeconds: int(o.integer(answerGraceSeconds, &anyIntegerRule)),
		}
	case "welcome":
		return o.welcome()
	}
	return nil
}

func (o *object) taskFrame() *TaskFrame {
	f := &TaskFrame{
		Seq:          uint64(o.integer(answerSeq, &countRule)),
		Token:        o.token(answerLeaseToken, &needTextRule),
		LeaseForMs:   o.integer(answerLeaseMs, &countRule),
		LeaseUntilMs: o.timeMs(answerLeaseUntil, CodeInvalidBody),
		RunForMs:     o.integer(answerRunMs, &anyIntegerRule),
		RunUntilMs:   o.timeMs(answerRunUntil, CodeInvalidBody),
	}
	raw := o.given(answerTask)
	if raw == nil || raw[0] != '{' {
		o.refuse(CodeInvalidBody, answerTask, "is required: an object")
		return f
	}
	inner := object{names: taskNames}
	if problem := inner.scanAlone(raw); problem != "" {
		panic("a task that was scanned does not scan again: " + problem)
	}
	f.Task = inner.task(PayloadAsValue)
	if inner.err != nil {
		o.refuse(CodeInvalidBody, answerTask, "has a fault: "+inner.err.Sentence)
	}
	return f
}

func (o *object) okFrame() *OK {
	lost, isHeartbeat := o.taskRefs(answerLost)
	return &OK{
		Ref:          o.answeredRef(),
		TaskID:       o.optTaskID(answerTaskID),
		Replayed:     o.trueOrFalse(answerReplayed),
		NackStatus:   o.text(answerStatus, &anyTextRule),
		DelaySeconds: o.integer(answerDelaySeconds, &anyIntegerRule),
		LeaseUntilMs: o.timeMs(answerLeaseUntil, CodeInvalidBody),
		RunUntilMs:   o.timeMs(answerRunUntil, CodeInvalidBody),
		Lost:         lost,
		IsHeartbeat:  isHeartbeat,
	}
}

func (o *object) errorFrame() *ErrorFrame {
	f := &ErrorFrame{
		Ref:    o.answeredRef(),
		TaskID: o.optTaskID(answerTaskID),
		Err: &Error{
			Code:              Code(o.text(answerCode, &needTextRule)),
			Sentence:          o.text(answerError, &needTextRule),
			Status:            Status(o.text(answerStatus, &anyTextRule)),
			RetryAfterSeconds: int(o.integer(answerRetryAfter, &anyIntegerRule)),
		},
	}
	if f.Err.Code == CodeIdempotencyConflict {
		f.Err.TaskID = f.TaskID
	}
	return f
}

func (o *object) welcome() *Welcome {
	id, ok := ParseSessionID(o.text(answerSessionID, &needTextRule))
	if !ok {
		o.refuse(CodeInvalidBody, answerSessionID, "names no session")
	}
	held, _ := o.taskRefs(answerHeld)
	return &Welcome{
		SessionID:          id,
		Resume:             o.text(answerResume, &anyTextRule),
		WorkerID:           o.text(answerWorkerID, &anyTextRule),
		TenantID:           o.text(answerTenantID, &anyTextRule),
		PingSeconds:        int(o.integer(answerPingSeconds, &anyIntegerRule)),
		ResumeGraceSeconds: int(o.integer(answerResumeGraceSeconds, &anyIntegerRule)),
		MaxMessageBytes:    int(o.integer(answerMaxMessageBytes, &anyIntegerRule)),
		MaxUnanswered:      int(o.integer(answerMaxUnanswered, &anyIntegerRule)),
		Durability:         o.text(answerDurability, &anyTextRule),
		ServerTimeMs:       o.timeMs(answerServerTime, CodeInvalidBody),
		Version:            o.text(answerVersion, &anyTextRule),
		Features:           o.texts(answerFeatures),
		Held:               held,
	}
}

func (o *object) answeredRef() Ref {
	present := o.given(answerRef) != nil
	return Ref{Value: o.integer(answerRef, &anyIntegerRule), Present: present}
}

// taskRefs reads a list of deliveries and reports whether it was there. The
// server may name a lost task without a token.
func (o *object) taskRefs(field int) ([]TaskRef, bool) {
	list, given := o.elements(field, CodeInvalidBody, math.MaxInt)
	var refs []TaskRef
	for i, raw := range list {
		e := o.element(field, i, raw, answerNames, CodeInvalidBody)
		refs = append(refs, TaskRef{
			TaskID: e.taskID(answerTaskID),
			Token:  e.token(answerLeaseToken, &anyTextRule),
		})
		if e.err != nil {
			o.err = e.err
			break
		}
	}
	return refs, given
}

// texts reads a list of strings of any length.
func (o *object) texts(field int) []string {
	list, _ := o.elements(field, CodeInvalidBody, math.MaxInt)
	var texts []string
	for _, raw := range list {
		if raw[0] != '"' {
			o.refuse(CodeInvalidBody, field, "must be a list of strings")
			break
		}
		text, _ := decodeString(raw)
		texts = append(texts, text)
	}
	return texts
}
