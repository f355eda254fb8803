package wire

import "fmt"

// AppendServerFrame appends one frame as a JSON object. A message is an array of such
// objects; the caller appends the brackets and commas.
func AppendServerFrame(dst []byte, f ServerFrame) []byte {
	switch f := f.(type) {
	case *TaskFrame:
		return appendTaskFrame(dst, f)
	case *OK:
		return appendOK(dst, f)
	case *ErrorFrame:
		return appendErrorFrame(dst, f)
	case *Revoked:
		dst = appendTaskID(dst, `{"type":"revoked","taskId":`, f.TaskID)
		dst = appendToken(dst, `,"leaseToken":`, f.Token)
		dst = appendText(dst, `,"reason":`, f.Reason)
		return append(dst, '}')
	case *Draining:
		dst = appendText(dst, `{"type":"draining","reason":`, f.Reason)
		dst = appendInt(dst, `,"graceSeconds":`, int64(f.GraceSeconds))
		return append(dst, '}')
	case *Welcome:
		return appendWelcome(dst, f)
	}
	panic(fmt.Sprintf("server frame %T has no encoding", f))
}

func appendTaskFrame(dst []byte, f *TaskFrame) []byte {
	dst = appendInt(dst, `{"type":"task","seq":`, int64(f.Seq))
	dst = appendToken(dst, `,"leaseToken":`, f.Token)
	dst = appendInt(dst, `,"leaseMs":`, f.LeaseForMs)
	dst = optTime(dst, `,"leaseUntil":`, f.LeaseUntilMs)
	dst = optInt(dst, `,"runMs":`, f.RunForMs)
	dst = optTime(dst, `,"runUntil":`, f.RunUntilMs)
	dst = AppendTask(append(dst, `,"task":`...), f.Task, PayloadAsValue)
	return append(dst, '}')
}

func optRef(dst []byte, ref Ref) []byte {
	if !ref.Present {
		return dst
	}
	return appendInt(dst, `,"ref":`, ref.Value)
}

func appendOK(dst []byte, f *OK) []byte {
	dst = append(dst, `{"type":"ok"`...)
	dst = optRef(dst, f.Ref)
	dst = optTaskID(dst, `,"taskId":`, f.TaskID)
	if f.Replayed {
		dst = append(dst, `,"replayed":true`...)
	}
	if f.NackStatus != "" {
		dst = appendText(dst, `,"status":`, f.NackStatus)
		dst = appendInt(dst, `,"delaySeconds":`, f.DelaySeconds)
	}
	dst = optTime(dst, `,"leaseUntil":`, f.LeaseUntilMs)
	dst = optTime(dst, `,"runUntil":`, f.RunUntilMs)
	if f.IsHeartbeat {
		dst = appendTaskRefs(dst, `,"lost":`, f.Lost)
	}
	return append(dst, '}')
}

// appendErrorFrame appends an error frame. An enqueue names no task, so in the answer to
// one the member taskId has the task of an idempotency_conflict.
func appendErrorFrame(dst []byte, f *ErrorFrame) []byte {
	id := f.TaskID
	if id.IsZero() {
		id = f.Err.TaskID
	}
	dst = append(dst, `{"type":"error"`...)
	dst = optRef(dst, f.Ref)
	dst = optTaskID(dst, `,"taskId":`, id)
	dst = appendRefusal(append(dst, ','), f.Err)
	return append(appendAdvice(dst, f.Err), '}')
}

func appendWelcome(dst []byte, f *Welcome) []byte {
	dst = append(f.SessionID.AppendTo(append(dst, `{"type":"welcome","sessionId":"`...)), '"')
	dst = appendText(dst, `,"resume":`, f.Resume)
	dst = appendText(dst, `,"workerId":`, f.WorkerID)
	dst = appendText(dst, `,"tenantId":`, f.TenantID)
	dst = appendInt(dst, `,"pingSeconds":`, int64(f.PingSeconds))
	dst = appendInt(dst, `,"resumeGraceSeconds":`, int64(f.ResumeGraceSeconds))
	dst = appendInt(dst, `,"maxMessageBytes":`, int64(f.MaxMessageBytes))
	dst = appendInt(dst, `,"maxUnanswered":`, int64(f.MaxUnanswered))
	dst = appendText(dst, `,"durability":`, f.Durability)
	dst = appendTime(dst, `,"serverTime":`, f.ServerTimeMs)
	dst = appendText(dst, `,"version":`, f.Version)
	dst = appendTexts(dst, `,"features":`, f.Features)
	dst = appendTaskRefs(dst, `,"held":`, f.Held)
	return append(dst, '}')
}

// AppendClientFrame appends one frame as a JSON object. A message is one such object, or
// an array of them. It panics for an Unknown, which is never sent.
func AppendClientFrame(dst []byte, f ClientFrame) []byte {
	switch f := f.(type) {
	case *Hello:
		dst = optRef(append(dst, `{"type":"hello"`...), f.Ref)
		dst = optText(dst, `,"token":`, f.Token)
		dst = optText(dst, `,"workerId":`, f.WorkerID)
		dst = optText(dst, `,"resume":`, f.Resume)
		dst = optInt(dst, `,"maxMessageBytes":`, int64(f.MaxMessageBytes))
	case *Subscribe:
		dst = optRef(append(dst, `{"type":"subscribe"`...), f.Ref)
		dst = appendTexts(dst, `,"commands":`, f.Commands)
		dst = optInt(dst, `,"leaseSeconds":`, int64(f.LeaseSeconds))
		dst = appendInt(dst, `,"window":`, int64(f.Window))
	case *Window:
		dst = optRef(append(dst, `{"type":"window"`...), f.Ref)
		dst = appendInt(dst, `,"size":`, int64(f.Size))
	case *Received:
		dst = optRef(append(dst, `{"type":"received"`...), f.Ref)
		dst = appendInt(dst, `,"through":`, int64(f.Through))
	case *Heartbeat:
		dst = optRef(append(dst, `{"type":"heartbeat"`...), f.Ref)
		if f.Tasks != nil {
			dst = appendTaskRefs(dst, `,"tasks":`, f.Tasks)
		}
		dst = optInt(dst, `,"extendSeconds":`, int64(f.ExtendSeconds))
	case *Enqueue:
		dst = optRef(append(dst, `{"type":"enqueue"`...), f.Ref)
		dst = appendEnqueueMembers(append(dst, ','), &f.EnqueueRequest)
	case *Cancel:
		dst = optRef(append(dst, `{"type":"cancel"`...), f.Ref)
		dst = appendTaskID(dst, `,"taskId":`, f.TaskID)
	case *Drain:
		dst = optRef(append(dst, `{"type":"drain"`...), f.Ref)
	default:
		return appendDeliveryFrame(dst, f)
	}
	return append(dst, '}')
}

// appendDeliveryFrame appends the frames that act on one delivery.
func appendDeliveryFrame(dst []byte, f ClientFrame) []byte {
	switch f := f.(type) {
	case *Result:
		dst = appendDelivery(append(dst, `{"type":"result"`...), f.Ref, f.TaskRef)
		dst = optText(dst, `,"status":`, string(f.Status))
		dst = optRaw(dst, `,"result":`, f.ResultRequest.Result)
		dst = optText(dst, `,"error":`, f.Error)
		dst = optExit(optArtifacts(dst, `,"artifacts":`, f.Artifacts), f.Exit)
	case *Nack:
		dst = appendDelivery(append(dst, `{"type":"nack"`...), f.Ref, f.TaskRef)
		if f.DelaySeconds >= 0 {
			dst = appendInt(dst, `,"delaySeconds":`, f.DelaySeconds)
		}
		dst = optExit(optText(dst, `,"reason":`, f.Reason), f.Exit)
	case *Abandon:
		dst = appendDelivery(append(dst, `{"type":"abandon"`...), f.Ref, f.TaskRef)
	case *Release:
		dst = appendDelivery(append(dst, `{"type":"release"`...), f.Ref, f.TaskRef)
		dst = appendReleaseMembers(dst, f.ReleaseRequest)
	default:
		panic(fmt.Sprintf("client frame %T has no encoding", f))
	}
	return append(dst, '}')
}

func appendDelivery(dst []byte, ref Ref, task TaskRef) []byte {
	dst = optRef(dst, ref)
	dst = appendTaskID(dst, `,"taskId":`, task.TaskID)
	return appendToken(dst, `,"leaseToken":`, task.Token)
}

// AppendEnqueueRequest appends the request as the JSON body of POST /tasks.
func AppendEnqueueRequest(dst []byte, r *EnqueueRequest) []byte {
	return append(appendEnqueueMembers(append(dst, '{'), r), '}')
}

// appendEnqueueMembers appends the members that do not have their default.
func appendEnqueueMembers(dst []byte, r *EnqueueRequest) []byte {
	dst = appendText(dst, `"command":`, r.Command)
	dst = optRaw(dst, `,"payload":`, r.Payload)
	dst = optInt(dst, `,"priority":`, int64(r.Priority))
	dst = optInt(dst, `,"maxAttempts":`, int64(r.MaxAttempts))
	dst = optText(dst, `,"idempotencyKey":`, r.IdempotencyKey)
	dst = optTime(dst, `,"runAt":`, r.RunAtMs)
	dst = optInt(dst, `,"delaySeconds":`, r.DelaySeconds)
	dst = optInt(dst, `,"timeoutSeconds":`, r.TimeoutSeconds)
	dst = optTime(dst, `,"expiresAt":`, r.ExpiresAtMs)
	dst = optInt(dst, `,"ttlSeconds":`, r.TTLSeconds)
	dst = optText(dst, `,"traceParent":`, r.TraceParent)
	return optText(dst, `,"traceState":`, r.TraceState)
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
