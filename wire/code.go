package wire

// Code is the stable word for one kind of refusal, the same over HTTP and in session
// frames. The list only grows.
type Code string

// The codes; codeTable has the HTTP status of each and whether it is retryable. This
// server never sends one of them, unsupported, which is reserved. Clients handle it.
const (
	CodeInvalidBody         Code = "invalid_body"
	CodeInvalidCommand      Code = "invalid_command"
	CodeInvalidPriority     Code = "invalid_priority"
	CodeInvalidTime         Code = "invalid_time"
	CodeInvalidWebhook      Code = "invalid_webhook"
	CodeInvalidResult       Code = "invalid_result"
	CodeInvalidArgument     Code = "invalid_argument"
	CodeUnknownMember       Code = "unknown_member"
	CodeUnauthenticated     Code = "unauthenticated"
	CodeForbidden           Code = "forbidden"
	CodeTaskNotFound        Code = "task_not_found"
	CodeResultNotFound      Code = "result_not_found"
	CodeNotOwner            Code = "not_owner"
	CodeLeaseLost           Code = "lease_lost"
	CodeNotInProgress       Code = "not_in_progress"
	CodeAlreadyTerminal     Code = "already_terminal"
	CodeIdempotencyConflict Code = "idempotency_conflict"
	CodeNotInDLQ            Code = "not_in_dlq"
	CodeNotWaiting          Code = "not_waiting"
	CodeQueueNotEmpty       Code = "queue_not_empty"
	CodeQueueDeleted        Code = "queue_deleted"
	CodeQueueNotFound       Code = "queue_not_found"
	CodeSessionNotFound     Code = "session_not_found"
	CodeNotFound            Code = "not_found"
	CodeMethodNotAllowed    Code = "method_not_allowed"
	CodeUnsupported         Code = "unsupported"
	CodeTooLarge            Code = "too_large"
	CodeRateLimited         Code = "rate_limited"
	CodeInternal            Code = "internal"
	CodeOverloaded          Code = "overloaded"
	CodeDraining            Code = "draining"
	CodeNotLeader           Code = "not_leader"
	CodeStorageFull         Code = "storage_full"
	CodeForbiddenHost       Code = "forbidden_host"
	CodeForbiddenOrigin     Code = "forbidden_origin"
	CodeAuthUnavailable     Code = "auth_unavailable"
	CodeVersionConflict     Code = "version_conflict"
	CodeClusterRefused      Code = "cluster_refused"
)

type codeRow struct {
	httpStatus int
	retryable  bool
}

var codeTable = map[Code]codeRow{
	CodeInvalidBody:         {400, false},
	CodeInvalidCommand:      {400, false},
	CodeInvalidPriority:     {400, false},
	CodeInvalidTime:         {400, false},
	CodeInvalidWebhook:      {400, false},
	CodeInvalidResult:       {400, false},
	CodeInvalidArgument:     {400, false},
	CodeUnknownMember:       {400, false},
	CodeUnauthenticated:     {401, false},
	CodeForbidden:           {403, false},
	CodeTaskNotFound:        {404, false},
	CodeResultNotFound:      {404, true},
	CodeNotOwner:            {403, false},
	CodeLeaseLost:           {409, false},
	CodeNotInProgress:       {409, false},
	CodeAlreadyTerminal:     {409, false},
	CodeIdempotencyConflict: {409, false},
	CodeNotInDLQ:            {409, false},
	CodeNotWaiting:          {409, false},
	CodeQueueNotEmpty:       {409, false},
	CodeQueueDeleted:        {409, false},
	CodeQueueNotFound:       {404, false},
	CodeSessionNotFound:     {404, false},
	CodeNotFound:            {404, false},
	CodeMethodNotAllowed:    {405, false},
	CodeUnsupported:         {415, false},
	CodeTooLarge:            {413, false},
	CodeRateLimited:         {429, true},
	CodeInternal:            {500, true},
	CodeOverloaded:          {503, true},
	CodeDraining:            {503, true},
	CodeNotLeader:           {503, true},
	CodeStorageFull:         {507, true},
	CodeForbiddenHost:       {403, false},
	CodeForbiddenOrigin:     {403, false},
	CodeAuthUnavailable:     {503, true},
	CodeVersionConflict:     {409, false},
	CodeClusterRefused:      {409, false},
}

// HTTPStatus is the status a refusal with this code has over HTTP. An unknown
// code, which only a newer server can send, counts as 500.
func (c Code) HTTPStatus() int {
	if row, ok := codeTable[c]; ok {
		return row.httpStatus
	}
	return codeTable[CodeInternal].httpStatus
}

// Retryable reports whether the same request may succeed later unchanged.
func (c Code) Retryable() bool { return codeTable[c].retryable }

// Error is a refusal: a code for programs, and a sentence for people that says what is
// wrong, where, and what would be right. The sentence has no internals, payloads, results,
// tokens or keys.
type Error struct {
	Code     Code
	Sentence string
	// TaskID is the task of an idempotency_conflict; zero otherwise.
	TaskID TaskID
	// Status is the status of the task of a result_not_found or an already_terminal;
	// empty otherwise.
	Status Status
	// Task is the task of an already_terminal over HTTP; nil otherwise.
	Task *Task
	// RetryAfterSeconds is when to try again after rate_limited, overloaded, draining,
	// not_leader, storage_full and auth_unavailable; 0 means no advice.
	RetryAfterSeconds int
}

func (e *Error) members(c *coder) {
	e.refusal(c)
	c.optTaskID(`,"taskId":`, &e.TaskID)
	e.advice(c)
	if c.in != nil {
		c.inner(`,"task":`, CodeInvalidBody, taskShape, func(c *coder) {
			e.Task = &Task{}
			e.Task.overHTTP(c)
		})
	} else if e.Task != nil {
		at := c.open(`,"task":`)
		e.Task.overHTTP(c)
		c.close(at)
	}
}

// refusal has the members of every refusal, in bodies and in frames.
func (e *Error) refusal(c *coder) {
	c.text(`,"error":`, &e.Sentence, &needTextRule)
	c.text(`,"code":`, (*string)(&e.Code), &needTextRule)
	if c.in == nil {
		retryable := e.Code.Retryable()
		c.boolean(`,"retryable":`, &retryable, true)
	}
}

// advice has the members of some refusals.
func (e *Error) advice(c *coder) {
	c.optText(`,"status":`, (*string)(&e.Status), &anyTextRule)
	optInteger(c, `,"retryAfterSeconds":`, &e.RetryAfterSeconds, &anyIntegerRule)
}

// AppendError appends the refusal as the JSON object that is its HTTP body.
func AppendError(dst []byte, e *Error) []byte {
	c := writing(&dst)
	e.members(&c)
	return c.done()
}

// Error is the code and the sentence.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Sentence }

// Refuse makes an Error. It may be called from any goroutine.
func Refuse(code Code, sentence string) *Error {
	return &Error{Code: code, Sentence: sentence}
}

// Advised returns e with the advice to try again after afterSeconds, if its code is one of
// those that pass by themselves and it has no advice yet. It does not change e, which may
// be shared.
func (e *Error) Advised(afterSeconds int) *Error {
	switch e.Code {
	case CodeRateLimited, CodeOverloaded, CodeDraining, CodeNotLeader, CodeStorageFull:
	default:
		return e
	}
	if e.RetryAfterSeconds != 0 {
		return e
	}
	with := *e
	with.RetryAfterSeconds = afterSeconds
	return &with
}
