package wire

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// requestNames are the members of all requests, in bodies and frames alike, in the order in
// which sentences list them: which of them a frame may have is known when its type is.
var requestNames = strings.Fields("type ref token workerId resume maxMessageBytes commands leaseSeconds window size through " +
	"taskId leaseToken status result error artifacts delaySeconds reason tasks extendSeconds command payload priority webhook " +
	"maxAttempts idempotencyKey runAt traceParent traceState started stopping exitCode signal timeoutSeconds expiresAt ttlSeconds labels concurrencyKey percent note data stream text")

const (
	fieldType    = 0
	fieldRef     = 1
	fieldTaskID  = 11
	envelopeBits = 1<<fieldType | 1<<fieldRef
)

var enqueueShape = shapeOf(&requestNames, new(EnqueueRequest).members)

var (
	commandRule        = textRule{code: CodeInvalidCommand, high: math.MaxInt, required: true, problem: commandProblem}
	ownCommandRule     = textRule{code: CodeInvalidCommand, high: math.MaxInt, required: true, problem: ownCommandProblem}
	priorityRule       = integerRule{code: CodeInvalidPriority, high: MaxPriority}
	maxAttemptsRule    = integerRule{code: CodeInvalidArgument, low: 1, high: MaxAttemptsLimit}
	keyRule            = textRule{code: CodeInvalidArgument, high: MaxKeyBytes, filled: true, exact: true}
	concurrencyKeyRule = textRule{code: CodeInvalidArgument, high: MaxConcurrencyBytes, filled: true, exact: true, problem: func(key string) string { return NameProblem(key, MaxConcurrencyBytes) }}
	runAtRule          = timeRule{code: CodeInvalidTime}
	// sinceRule makes 1 of a time before 1970, because 0 would be no time.
	sinceRule     = timeRule{code: CodeInvalidTime, least: 1}
	delayRule     = integerRule{code: CodeInvalidTime, high: MaxDelaySeconds}
	timeoutRule   = integerRule{code: CodeInvalidArgument, low: 1, high: MaxTimeoutSeconds}
	ttlRule       = integerRule{code: CodeInvalidTime, low: 1, high: MaxDelaySeconds}
	nackDelayRule = integerRule{code: CodeInvalidTime, high: MaxDelaySeconds, absent: -1}
	parentRule    = textRule{code: CodeInvalidArgument, high: MaxTraceBytes, exact: true, problem: traceParentProblem}
	stateRule     = textRule{code: CodeInvalidArgument, high: MaxTraceBytes, exact: true, problem: traceStateProblem}
	statusRule    = textRule{code: CodeInvalidResult, high: math.MaxInt}
	errorRule     = textRule{code: CodeInvalidResult, high: MaxErrorBytes, tooLong: CodeTooLarge, exact: true}
	reasonRule    = textRule{code: CodeInvalidArgument, high: MaxErrorBytes, tooLong: CodeTooLarge, exact: true}
	exitCodeRule  = integerRule{code: CodeInvalidArgument, high: MaxExitCode}
	signalRule    = textRule{code: CodeInvalidArgument, high: MaxSignalBytes, filled: true, exact: true}
	idRule        = textRule{code: CodeInvalidArgument, high: math.MaxInt, required: true}
	tokenRule     = textRule{code: CodeInvalidArgument, high: math.MaxInt, required: true}
	bodyTokenRule = textRule{code: CodeInvalidArgument, high: math.MaxInt, filled: true}
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

// CommandIsAmong reports whether a command is one of a list of names, of prefixes such as "build.*", and
// of AllCommands. It may be called from any goroutine.
func CommandIsAmong(list []string, command string) bool {
	for _, one := range list {
		prefix, isPrefix := strings.CutSuffix(one, "*")
		if one == command || isPrefix && strings.HasPrefix(command, prefix) {
			return true
		}
	}
	return false
}

// systemPrefix begins the commands of the queues of the server itself.
const (
	systemPrefix  = "codeq."
	systemProblem = "must not begin with " + systemPrefix + ", which is reserved for queues of the server; use another name"
)

// CheckOwnCommand refuses what CheckCommand refuses, and the commands that are reserved for
// the server: clients make no tasks of those, take none and set nothing for them. It may be
// called from any goroutine.
func CheckOwnCommand(name string) *Error {
	if problem := ownCommandProblem(name); problem != "" {
		return Refuse(CodeInvalidCommand, "command "+problem)
	}
	return nil
}

// ownCommandProblem is commandProblem, and what is wrong with a reserved name.
func ownCommandProblem(name string) string {
	if strings.HasPrefix(name, systemPrefix) {
		return systemProblem
	}
	return commandProblem(name)
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
	o, r := object{names: requestNames}, &EnqueueRequest{}
	o.scanBody(body, enqueueShape.bits)
	r.members(&coder{in: &o, shape: enqueueShape})
	if o.err != nil {
		return nil, o.err
	}
	return r, nil
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

// Check refuses what ParseEnqueueRequest refuses, with the same code and sentence, in a
// request that was not read from JSON. It refuses texts that are not UTF-8, too: JSON
// would carry another text in their place. It may be called from any goroutine.
func (r *EnqueueRequest) Check() *Error {
	o := object{names: requestNames}
	if err := CheckJSON(r.Payload); len(r.Payload) > 0 && err != nil {
		o.refuseNamed(CodeInvalidBody, "payload", strings.TrimPrefix(err.Error(), "value "))
	}
	r.members(&coder{in: &o, shape: enqueueShape, checks: true})
	return o.err
}

func (o *object) checkPayload(field int, raw []byte) {
	if len(raw) == 0 {
		o.refuse(CodeInvalidBody, field, "is required: any JSON value, null too")
	}
	if len(raw) > MaxPayloadBytes {
		o.refuse(CodeTooLarge, field, fmt.Sprintf("must be at most %d bytes, got %d", MaxPayloadBytes, len(raw)))
	}
}

// judgeResult derives a status that is not stated, and checks what came with it.
func (o *object) judgeResult(r *ResultRequest, stated bool) {
	switch {
	case stated && r.Status != StatusCompleted && r.Status != StatusFailed:
		o.refuseNamed(CodeInvalidResult, "status", "must be COMPLETED or FAILED")
	case stated:
	case r.Result != nil:
		r.Status = StatusCompleted
	case r.Error != "":
		r.Status = StatusFailed
	default:
		o.refuseNamed(CodeInvalidResult, "result", "or error is required when status is left out")
	}
	switch {
	case r.Result == nil && r.Status == StatusCompleted:
		o.refuseNamed(CodeInvalidResult, "result", "is required when status is COMPLETED: a JSON object")
	case r.Result != nil && r.Result[0] != '{':
		o.refuseNamed(CodeInvalidResult, "result", "must be a JSON object, got "+describe(r.Result))
	case len(r.Result) > MaxResultBytes:
		o.refuseNamed(CodeTooLarge, "result", fmt.Sprintf("must be at most %d bytes, got %d", MaxResultBytes, len(r.Result)))
	case r.Error == "" && r.Status == StatusFailed:
		o.refuseNamed(CodeInvalidResult, "error", "is required when status is FAILED: a string")
	}
}
