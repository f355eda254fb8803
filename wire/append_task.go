package wire

import "strconv"

// PayloadForm is the form of the payload in the JSON of a task.
type PayloadForm int

const (
	// PayloadAsString is the form over HTTP: a JSON string that holds the
	// payload's JSON exactly as it was posted.
	PayloadAsString PayloadForm = iota
	// PayloadAsValue is the form in session frames: the JSON value itself,
	// byte for byte.
	PayloadAsValue
)

// AppendTask appends the task as a JSON object. It leaves out empty times, texts and
// lists, and no counts.
func AppendTask(dst []byte, t *Task, form PayloadForm) []byte {
	dst = appendTaskID(dst, `{"id":`, t.ID)
	dst = appendText(dst, `,"command":`, t.Command)
	switch {
	case len(t.Payload) == 0:
	case form == PayloadAsValue:
		dst = optRaw(dst, `,"payload":`, t.Payload)
	default:
		dst = appendQuoted(append(dst, `,"payload":`...), t.Payload)
	}
	dst = appendInt(dst, `,"priority":`, int64(t.Priority))
	dst = optText(dst, `,"status":`, string(t.Status))
	dst = optText(dst, `,"lastKnownLocation":`, string(t.Location))
	dst = appendInt(dst, `,"attempts":`, int64(t.Attempts))
	dst = appendInt(dst, `,"maxAttempts":`, int64(t.MaxAttempts))
	dst = appendInt(dst, `,"deliveries":`, int64(t.Deliveries))
	dst = optText(dst, `,"webhook":`, t.Webhook)
	dst = optText(dst, `,"workerId":`, t.WorkerID)
	dst = optTime(dst, `,"leaseUntil":`, t.LeaseUntilMs)
	dst = optTime(dst, `,"runUntil":`, t.RunUntilMs)
	dst = optTime(dst, `,"visibleAt":`, t.VisibleAtMs)
	dst = optInt(dst, `,"timeoutSeconds":`, t.TimeoutSeconds)
	dst = optTime(dst, `,"expiresAt":`, t.ExpiresAtMs)
	dst = optText(dst, `,"dlqCause":`, t.DeadCause.String())
	dst = optText(dst, `,"cancelCause":`, t.CancelCause)
	dst = optText(dst, `,"error":`, t.Error)
	dst = optHistory(dst, t.History)
	dst = optWaiting(dst, t.Waiting)
	dst = optText(dst, `,"tenantId":`, t.TenantID)
	dst = optText(dst, `,"traceParent":`, t.TraceParent)
	dst = optText(dst, `,"traceState":`, t.TraceState)
	dst = optTime(dst, `,"createdAt":`, t.CreatedAtMs)
	dst = optTime(dst, `,"updatedAt":`, t.UpdatedAtMs)
	return append(dst, '}')
}

// AppendClaimed appends the answer to a claim: a task as over HTTP, with the token of its
// delivery.
func AppendClaimed(dst []byte, t *Task, token Token) []byte {
	dst = AppendTask(dst, t, PayloadAsString)
	return append(appendToken(dst[:len(dst)-1], `,"leaseToken":`, token), '}')
}

func optHistory(dst []byte, history []HistoryLine) []byte {
	if len(history) == 0 {
		return dst
	}
	dst = append(dst, `,"history":[`...)
	for i := range history {
		line := &history[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendInt(dst, `{"delivery":`, int64(line.Delivery))
		dst = optText(dst, `,"workerId":`, line.WorkerID)
		dst = optTime(dst, `,"from":`, line.FromMs)
		dst = optTime(dst, `,"to":`, line.ToMs)
		dst = optText(dst, `,"cause":`, line.Cause)
		if line.CloseCode != 0 {
			dst = appendInt(dst, `,"closeCode":`, int64(line.CloseCode))
		}
		dst = optExit(optText(dst, `,"error":`, line.Error), line.Exit)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// optExit appends how a program ended, if that is known.
func optExit(dst []byte, e Exit) []byte {
	if e.Coded {
		dst = appendInt(dst, `,"exitCode":`, int64(e.Code))
	}
	return optText(dst, `,"signal":`, e.Signal)
}

// AppendResultRecord appends the record as a JSON object, with its result byte for byte.
func AppendResultRecord(dst []byte, r *ResultRecord) []byte {
	dst = appendTaskID(dst, `{"taskId":`, r.TaskID)
	dst = appendText(dst, `,"status":`, string(r.Status))
	dst = optRaw(dst, `,"result":`, r.Result)
	dst = optText(dst, `,"error":`, r.Error)
	dst = optText(dst, `,"cancelCause":`, r.CancelCause)
	dst = optArtifacts(dst, `,"artifacts":`, r.Artifacts)
	dst = optTime(dst, `,"completedAt":`, r.CompletedAtMs)
	return append(dst, '}')
}

// AppendError appends the refusal as the JSON object that is its HTTP body.
func AppendError(dst []byte, e *Error) []byte {
	dst = appendRefusal(append(dst, '{'), e)
	dst = appendAdvice(optTaskID(dst, `,"taskId":`, e.TaskID), e)
	if e.Task != nil {
		dst = AppendTask(append(dst, `,"task":`...), e.Task, PayloadAsString)
	}
	return append(dst, '}')
}

// appendRefusal appends the members of every refusal, in bodies and in frames.
func appendRefusal(dst []byte, e *Error) []byte {
	dst = appendText(dst, `"error":`, e.Sentence)
	dst = appendText(dst, `,"code":`, string(e.Code))
	return strconv.AppendBool(append(dst, `,"retryable":`...), e.Code.Retryable())
}

// appendAdvice appends the members of some refusals.
func appendAdvice(dst []byte, e *Error) []byte {
	dst = optText(dst, `,"status":`, string(e.Status))
	return optInt(dst, `,"retryAfterSeconds":`, int64(e.RetryAfterSeconds))
}

// QueueFigures are the figures of one queue of one tenant, as an admin sees them.
type QueueFigures struct {
	Command    string
	TenantID   string
	Ready      int64
	Delayed    int64
	InProgress int64
	// Dead is the number of dead letters.
	Dead int64
	// Ended is the number of tasks that have ended and are not dead letters. Only the
	// server has it: it is in no answer.
	Ended int64
	// DeadBy are the numbers of dead letters by cause.
	DeadBy [DeadKinds]int64
	Paused bool
	// OldestReadyAtMs is when the first ready task became ready, in Unix milliseconds; 0
	// if none is ready.
	OldestReadyAtMs int64
	// Deleting: the queue accepts no task, and is removed when it has none left.
	Deleting bool
	// Unknown: the queue has no task and no settings.
	Unknown bool
	// Settings are those of the queue; a zero field means the default of the server.
	Settings QueueSettings
	// Effective are Settings with the defaults of the server in place of zero fields. A
	// time that is zero has no end. All of it is zero in lists of queues.
	Effective QueueSettings
}

// AppendQueueFigures appends the figures as a JSON object.
func AppendQueueFigures(dst []byte, q *QueueFigures) []byte {
	dst = appendText(dst, `{"command":`, q.Command)
	dst = appendText(dst, `,"tenantId":`, q.TenantID)
	dst = appendInt(dst, `,"ready":`, q.Ready)
	dst = appendInt(dst, `,"delayed":`, q.Delayed)
	dst = appendInt(dst, `,"inProgress":`, q.InProgress)
	dst = appendInt(dst, `,"dlq":`, q.Dead)
	dst = optDeadBy(dst, &q.DeadBy)
	dst = strconv.AppendBool(append(dst, `,"paused":`...), q.Paused)
	dst = optTime(dst, `,"oldestReadyAt":`, q.OldestReadyAtMs)
	if q.Deleting {
		dst = append(dst, `,"deleting":true`...)
	}
	if q.Unknown {
		dst = append(dst, `,"unknown":true`...)
	}
	dst = appendSettingMembers(dst, &q.Settings)
	if q.Effective != (QueueSettings{}) {
		dst = AppendQueueSettings(append(dst, `,"effective":`...), &q.Effective)
	}
	return append(dst, '}')
}

// optDeadBy appends the number of dead letters of each cause that has any.
func optDeadBy(dst []byte, by *[DeadKinds]int64) []byte {
	separator := `,"dlqCauses":{"`
	for c := DeadExhausted; c < DeadKinds; c++ {
		if by[c] != 0 {
			dst = append(append(append(dst, separator...), c.String()...), `":`...)
			dst = strconv.AppendInt(dst, by[c], 10)
			separator = `,"`
		}
	}
	if separator == `,"` {
		dst = append(dst, '}')
	}
	return dst
}
