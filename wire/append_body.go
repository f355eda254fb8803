package wire

// The bodies of the requests of a worker over HTTP. They leave out members that have their
// default.

// AppendClaimRequest appends the body of POST /tasks/claim, and of
// /tasks/claim/batch when Count is not 1.
func AppendClaimRequest(dst []byte, r *ClaimRequest) []byte {
	open := len(dst)
	if r.Commands != nil {
		dst = appendTexts(dst, `,"commands":`, r.Commands)
	}
	dst = optInt(dst, `,"leaseSeconds":`, int64(r.LeaseSeconds))
	dst = optInt(dst, `,"waitSeconds":`, int64(r.WaitSeconds))
	dst = optText(dst, `,"workerId":`, r.WorkerID)
	if r.Count != 1 {
		dst = optInt(dst, `,"count":`, int64(r.Count))
	}
	return embrace(dst, open)
}

// AppendResultCall appends the body of POST /tasks/{id}/result.
func AppendResultCall(dst []byte, h Holder, r *ResultRequest) []byte {
	open := len(dst)
	return embrace(appendResultMembers(appendHolder(dst, h), r), open)
}

// AppendResultBatch appends the body of POST /tasks/batch/results. It ignores Err and
// Bytes of the items.
func AppendResultBatch(dst []byte, items []ResultItem) []byte {
	dst = append(dst, `{"results":[`...)
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendTaskID(dst, `{"taskId":`, items[i].TaskID)
		dst = append(appendResultMembers(appendHolder(dst, items[i].Holder), &items[i].Request), '}')
	}
	return append(dst, "]}"...)
}

func appendResultMembers(dst []byte, r *ResultRequest) []byte {
	dst = optText(dst, `,"status":`, string(r.Status))
	dst = optRaw(dst, `,"result":`, r.Result)
	dst = optText(dst, `,"error":`, r.Error)
	return optExit(optArtifacts(dst, `,"artifacts":`, r.Artifacts), r.Exit)
}

// AppendNackCall appends the body of POST /tasks/{id}/nack.
func AppendNackCall(dst []byte, h Holder, r *NackRequest) []byte {
	open := len(dst)
	dst = appendHolder(dst, h)
	if r.DelaySeconds >= 0 {
		dst = appendInt(dst, `,"delaySeconds":`, r.DelaySeconds)
	}
	return embrace(optExit(optText(dst, `,"reason":`, r.Reason), r.Exit), open)
}

// AppendExtendCall appends the body of POST /tasks/{id}/heartbeat.
func AppendExtendCall(dst []byte, h Holder, extendSeconds int) []byte {
	open := len(dst)
	return embrace(optInt(appendHolder(dst, h), `,"extendSeconds":`, int64(extendSeconds)), open)
}

// AppendReleaseCall appends the body of POST /tasks/{id}/release.
func AppendReleaseCall(dst []byte, h Holder, r ReleaseRequest) []byte {
	open := len(dst)
	return embrace(appendReleaseMembers(appendHolder(dst, h), r), open)
}

func appendReleaseMembers(dst []byte, r ReleaseRequest) []byte {
	if r.NotStarted {
		dst = append(dst, `,"started":false`...)
	}
	if r.Stopping {
		dst = append(dst, `,"stopping":true`...)
	}
	return dst
}

// AppendHolderCall appends the body of POST /tasks/{id}/abandon.
func AppendHolderCall(dst []byte, h Holder) []byte {
	open := len(dst)
	return embrace(appendHolder(dst, h), open)
}

func appendHolder(dst []byte, h Holder) []byte {
	dst = optToken(dst, `,"leaseToken":`, h.Token)
	return optText(dst, `,"workerId":`, h.WorkerID)
}

// embrace makes an object of the members that were appended from open on, each after a
// comma.
func embrace(dst []byte, open int) []byte {
	if len(dst) == open {
		return append(dst, "{}"...)
	}
	dst[open] = '{'
	return append(dst, '}')
}
