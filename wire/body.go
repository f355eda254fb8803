package wire

import (
	"bytes"
	"fmt"
)

// The bodies of the verbs of a session over HTTP, and of claims. Members that have their
// default are not written.

// extension is the body of a heartbeat, and none that of an abandon.
type (
	extension struct{ seconds int }
	none      struct{}
)

func (e *extension) members(c *coder) { optInteger(c, `,"extendSeconds":`, &e.seconds, &extendRule) }

func (*none) members(*coder) {}

// callOf is the body of a verb: whose the delivery is, and what is asked.
func callOf(members func(c *coder)) *shape {
	return shapeOf(&requestNames, func(c *coder) {
		new(Holder).members(c)
		members(c)
	})
}

var (
	resultCall    = callOf(new(ResultRequest).members)
	nackCall      = callOf(new(NackRequest).members)
	releaseCall   = callOf(new(ReleaseRequest).members)
	extensionCall = callOf(new(extension).members)
	abandonCall   = callOf(new(none).members)
	progressCall  = callOf(new(ProgressRequest).members)
	outputCall    = callOf(new(OutputRequest).members)
)

func parseCall[R any](body []byte, s *shape, members func(*R, *coder)) (r *R, h Holder, refusal *Error) {
	o := object{names: requestNames}
	o.scanBody(body, s.bits)
	c := coder{in: &o, shape: s}
	h.members(&c)
	r = new(R)
	members(r, &c)
	if o.err != nil {
		return nil, Holder{}, o.err
	}
	return r, h, nil
}

func appendCall(dst []byte, h Holder, members func(c *coder)) []byte {
	c := writing(&dst)
	h.members(&c)
	members(&c)
	return c.done()
}

// ParseResultRequest reads the body of POST /tasks/{id}/result and whose the
// delivery is. The result aliases body.
func ParseResultRequest(body []byte) (*ResultRequest, Holder, *Error) {
	return parseCall(body, resultCall, (*ResultRequest).members)
}

// AppendResultCall appends the body of POST /tasks/{id}/result.
func AppendResultCall(dst []byte, h Holder, r *ResultRequest) []byte {
	return appendCall(dst, h, r.members)
}

// ParseNackRequest reads the body of POST /tasks/{id}/nack, which may be empty,
// and whose the delivery is.
func ParseNackRequest(body []byte) (*NackRequest, Holder, *Error) {
	return parseCall(orEmptyObject(body), nackCall, (*NackRequest).members)
}

// AppendNackCall appends the body of POST /tasks/{id}/nack.
func AppendNackCall(dst []byte, h Holder, r *NackRequest) []byte {
	return appendCall(dst, h, r.members)
}

// ParseReleaseRequest reads the body of POST /tasks/{id}/release, which may be
// empty, and whose the delivery is.
func ParseReleaseRequest(body []byte) (*ReleaseRequest, Holder, *Error) {
	return parseCall(orEmptyObject(body), releaseCall, (*ReleaseRequest).members)
}

// AppendReleaseCall appends the body of POST /tasks/{id}/release.
func AppendReleaseCall(dst []byte, h Holder, r ReleaseRequest) []byte {
	return appendCall(dst, h, r.members)
}

// ParseHolder reads the body of POST /tasks/{id}/abandon, which may be empty:
// whose the delivery is.
func ParseHolder(body []byte) (Holder, *Error) {
	_, h, refusal := parseCall(orEmptyObject(body), abandonCall, (*none).members)
	return h, refusal
}

// AppendHolderCall appends the body of POST /tasks/{id}/abandon.
func AppendHolderCall(dst []byte, h Holder) []byte {
	return appendCall(dst, h, (*none)(nil).members)
}

// ParseExtendRequest reads the body of POST /tasks/{id}/heartbeat, which may be
// empty. extendSeconds is 0 when the client leaves it to the length of the
// lease.
func ParseExtendRequest(body []byte) (extendSeconds int, holder Holder, refusal *Error) {
	e, h, refusal := parseCall(orEmptyObject(body), extensionCall, (*extension).members)
	if refusal != nil {
		return 0, h, refusal
	}
	return e.seconds, h, nil
}

// AppendExtendCall appends the body of POST /tasks/{id}/heartbeat.
func AppendExtendCall(dst []byte, h Holder, extendSeconds int) []byte {
	return appendCall(dst, h, (&extension{extendSeconds}).members)
}

// AppendResultBatch appends the body of POST /tasks/batch/results. It ignores Err and
// Bytes of the items.
func AppendResultBatch(dst []byte, items []ResultItem) []byte {
	dst = append(dst, `{"results":[`...)
	c := writing(&dst)
	for i := range items {
		at := c.comma(i)
		items[i].members(&c)
		c.close(at)
	}
	return append(dst, "]}"...)
}

// orEmptyObject makes {} of a body without anything, for those that may be empty.
func orEmptyObject(body []byte) []byte {
	if len(bytes.TrimSpace(body)) == 0 {
		return []byte("{}")
	}
	return body
}

var (
	claimWaitRule  = integerRule{code: CodeInvalidArgument, high: MaxClaimWaitSeconds}
	claimCountRule = integerRule{code: CodeInvalidArgument, low: 1, high: MaxClaimTasks, absent: 1}
	claimShape     = shapeOf(new([]string), new(ClaimRequest).members)
)

// ParseClaimRequest reads the body of POST /tasks/claim, which may be empty.
func ParseClaimRequest(body []byte) (*ClaimRequest, *Error) {
	return parseClaim(body, claimShape.without("count"))
}

// ParseClaimBatchRequest reads the body of POST /tasks/claim/batch, which may be
// empty.
func ParseClaimBatchRequest(body []byte) (*ClaimRequest, *Error) {
	return parseClaim(body, claimShape.bits)
}

func parseClaim(body []byte, known uint64) (*ClaimRequest, *Error) {
	o, r := claimShape.object(), &ClaimRequest{}
	o.scanBody(orEmptyObject(body), known)
	r.members(&coder{in: &o, shape: claimShape})
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
}

// AppendClaimRequest appends the body of POST /tasks/claim, and of
// /tasks/claim/batch when Count is not 1.
func AppendClaimRequest(dst []byte, r *ClaimRequest) []byte {
	c := writing(&dst)
	r.members(&c)
	return c.done()
}

// commands is a list of names of commands or AllCommands; nil when it is absent or empty.
func (c *coder) commands(lead string, commands *[]string) {
	if c.in == nil {
		*c.out = appendTexts(*c.out, lead, *commands)
	} else {
		*commands = c.in.commands(c.field(lead))
	}
}

func (o *object) commands(field int) []string {
	list, _ := o.elements(field, CodeInvalidArgument, MaxSubscribeCommands)
	var commands []string
	for i, raw := range list {
		name := ""
		problem := "must be a string, got " + describe(raw)
		if raw[0] == '"' {
			name, _ = decodeString(raw)
			problem = ownCommandProblem(name)
		}
		if name != AllCommands && problem != "" && o.err == nil {
			o.err = Refuse(CodeInvalidCommand, fmt.Sprintf("%s[%d] %s", o.names[field], i, problem))
		}
		commands = append(commands, name)
	}
	return commands
}
