package wire

import (
	"bytes"
	"fmt"
)

// The bodies of the verbs of a session over HTTP, and of claims.

// ParseResultRequest reads the body of POST /tasks/{id}/result and whose the
// delivery is. The result aliases body.
func ParseResultRequest(body []byte) (*ResultRequest, Holder, *Error) {
	o := object{names: requestNames}
	o.scanBody(body, resultBits|holderBits)
	holder := o.holder()
	r := o.resultRequest()
	if o.err != nil {
		return nil, Holder{}, o.err
	}
	return &r, holder, nil
}

// ParseNackRequest reads the body of POST /tasks/{id}/nack, which may be empty,
// and whose the delivery is.
func ParseNackRequest(body []byte) (*NackRequest, Holder, *Error) {
	o := object{names: requestNames}
	o.scanBody(orEmptyObject(body), nackBits|holderBits)
	holder := o.holder()
	r := o.nackRequest()
	if o.err != nil {
		return nil, Holder{}, o.err
	}
	return &r, holder, nil
}

// ParseReleaseRequest reads the body of POST /tasks/{id}/release, which may be
// empty, and whose the delivery is.
func ParseReleaseRequest(body []byte) (*ReleaseRequest, Holder, *Error) {
	o := object{names: requestNames}
	o.scanBody(orEmptyObject(body), releaseBits|holderBits)
	holder := o.holder()
	r := o.releaseRequest()
	if o.err != nil {
		return nil, Holder{}, o.err
	}
	return &r, holder, nil
}

// ParseHolder reads the body of POST /tasks/{id}/abandon, which may be empty:
// whose the delivery is.
func ParseHolder(body []byte) (Holder, *Error) {
	o := object{names: requestNames}
	o.scanBody(orEmptyObject(body), holderBits)
	holder := o.holder()
	if o.err != nil {
		return Holder{}, o.err
	}
	return holder, nil
}

// ParseExtendRequest reads the body of POST /tasks/{id}/heartbeat, which may be
// empty. extendSeconds is 0 when the client leaves it to the length of the
// lease.
func ParseExtendRequest(body []byte) (extendSeconds int, holder Holder, refusal *Error) {
	o := object{names: requestNames}
	o.scanBody(orEmptyObject(body), 1<<fieldExtendSeconds|holderBits)
	holder = o.holder()
	extendSeconds = int(o.integer(fieldExtendSeconds, &extendRule))
	if o.err != nil {
		return 0, Holder{}, o.err
	}
	return extendSeconds, holder, nil
}

func (o *object) holder() Holder {
	return Holder{Token: o.token(fieldLeaseToken, &bodyTokenRule), WorkerID: o.text(fieldWorkerID, &workerRule)}
}

// orEmptyObject makes {} of a body without anything, for those that may be empty.
func orEmptyObject(body []byte) []byte {
	if len(bytes.TrimSpace(body)) == 0 {
		return []byte("{}")
	}
	return body
}

// The members of a claim.
const (
	claimCommands = iota
	claimLeaseSeconds
	claimWaitSeconds
	claimWorkerID
	claimCount
)

var (
	claimNames = []string{
		claimCommands: "commands", claimLeaseSeconds: "leaseSeconds", claimWaitSeconds: "waitSeconds",
		claimWorkerID: "workerId", claimCount: "count",
	}
	claimWaitRule  = integerRule{code: CodeInvalidArgument, high: MaxClaimWaitSeconds}
	claimCountRule = integerRule{code: CodeInvalidArgument, low: 1, high: MaxClaimTasks, absent: 1}
)

// ParseClaimRequest reads the body of POST /tasks/claim, which may be empty.
func ParseClaimRequest(body []byte) (*ClaimRequest, *Error) {
	return parseClaim(body, 1<<claimCommands|1<<claimLeaseSeconds|1<<claimWaitSeconds|1<<claimWorkerID)
}

// ParseClaimBatchRequest reads the body of POST /tasks/claim/batch, which may be
// empty.
func ParseClaimBatchRequest(body []byte) (*ClaimRequest, *Error) {
	return parseClaim(body, 1<<claimCommands|1<<claimLeaseSeconds|1<<claimWaitSeconds|1<<claimWorkerID|1<<claimCount)
}

func parseClaim(body []byte, known uint64) (*ClaimRequest, *Error) {
	o := object{names: claimNames}
	o.scanBody(orEmptyObject(body), known)
	r := &ClaimRequest{
		Commands:     o.commands(claimCommands),
		LeaseSeconds: int(o.integer(claimLeaseSeconds, &leaseRule)),
		WaitSeconds:  int(o.integer(claimWaitSeconds, &claimWaitRule)),
		WorkerID:     o.text(claimWorkerID, &workerRule),
		Count:        1,
	}
	if known&(1<<claimCount) != 0 {
		r.Count = int(o.integer(claimCount, &claimCountRule))
	}
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}

// commands reads a list of names of commands or AllCommands; nil when it is
// absent or empty.
func (o *object) commands(field int) []string {
	list, _ := o.elements(field, CodeInvalidArgument, MaxSubscribeCommands)
	var commands []string
	for i, raw := range list {
		name := ""
		problem := "must be a string, got " + describe(raw)
		if raw[0] == '"' {
			name, _ = decodeString(raw)
			problem = commandProblem(name)
		}
		if name != AllCommands && problem != "" && o.err == nil {
			o.err = Refuse(CodeInvalidCommand, fmt.Sprintf("%s[%d] %s", o.names[field], i, problem))
		}
		commands = append(commands, name)
	}
	return commands
}
