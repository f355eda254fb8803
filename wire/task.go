package wire

import "slices"

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

// Status is the lifecycle state of a task, in the protocol's spelling.
type Status string

// The states. The last three are terminal: only a replay of a dead letter
// leaves one of them.
const (
	StatusPending    Status = "PENDING"
	StatusInProgress Status = "IN_PROGRESS"
	StatusCompleted  Status = "COMPLETED"
	StatusFailed     Status = "FAILED"
	StatusCancelled  Status = "CANCELLED"
)

// Terminal reports whether a task in this state has ended.
func (s Status) Terminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Location is the member lastKnownLocation of a task, in the words of the first
// implementation of the protocol.
type Location string

// The locations. A task that has ended and is not a dead letter has LocationNone.
const (
	LocationPending    Location = "PENDING_LIST"
	LocationDelayed    Location = "DELAYED_ZSET"
	LocationInProgress Location = "INPROG_SET"
	LocationDead       Location = "DLQ_SET"
	LocationNone       Location = "NONE"
	// LocationLimited is that of a ready task which its concurrency key holds back.
	LocationLimited Location = "LIMITED"
)

// Texts that the server writes into tasks and answers, and reserved names.
const (
	ErrorLeaseExpired     = "LEASE_EXPIRED"
	ErrorMaxAttempts      = "MAX_ATTEMPTS"
	ErrorReleasedTooOften = "RELEASED_TOO_OFTEN"
	ErrorTimeout          = "TIMEOUT"
	NackRequeued          = "requeued"
	NackDeadLettered      = "dlq"
	NackExpired           = "expired"
	CancelExpired         = "expired"
	RevokedExpired        = "expired"
	RevokedCancelled      = "cancelled"
	RevokedSuperseded     = "superseded"
	RevokedTimeout        = "timeout"
	RevokedTakenBack      = "taken_back"
	DefaultTenant         = "default"
	AnonymousSubject      = "anonymous"
	AllCommands           = "*"
)

// Task is a task as a client sees it. Times are Unix milliseconds; 0 means absent. Empty
// texts are absent in JSON. Payload is the JSON value as posted, byte for byte.
type Task struct {
	ID          TaskID
	Command     string
	Payload     []byte
	Priority    int
	Status      Status
	Location    Location
	Attempts    int
	MaxAttempts int
	Deliveries  int
	// Webhook is the URL that gets the outcome.
	Webhook      string
	WorkerID     string
	LeaseUntilMs int64
	// RunUntilMs is when the timeout of the delivery in progress is over. It moves while
	// the server does not know that the delivery has arrived.
	RunUntilMs  int64
	VisibleAtMs int64
	// TimeoutSeconds is how long one delivery may run; 0 means the timeout of the queue.
	TimeoutSeconds int64
	// ExpiresAtMs is when the task expires: it is not delivered after that.
	ExpiresAtMs int64
	Error       string
	// DeadCause is why the task is a dead letter; 0 if it is not one.
	DeadCause DeadCause
	// CancelCause is CancelExpired if the task expired, and empty if it was cancelled.
	CancelCause string
	History     []HistoryLine
	// Waiting is why the task waits; set in answers about one task.
	Waiting  *Waiting
	TenantID string
	// Progress is what its worker has said last of how far it is; nil if none did. Printed says
	// that a worker has sent output.
	Progress    *TaskProgress
	Printed     bool
	TraceParent string
	TraceState  string
	Labels      Labels
	// ConcurrencyKey is the key whose limits hold for the task, see PerKey.
	ConcurrencyKey string
	CreatedAtMs    int64
	UpdatedAtMs    int64
}

func (t *Task) members(c *coder, form PayloadForm) {
	c.taskID(`,"id":`, &t.ID)
	c.text(`,"command":`, &t.Command, &anyTextRule)
	c.taskPayload(`,"payload":`, &t.Payload, form)
	integer(c, `,"priority":`, &t.Priority, true, &anyIntegerRule)
	c.optText(`,"status":`, (*string)(&t.Status), &anyTextRule)
	c.optText(`,"lastKnownLocation":`, (*string)(&t.Location), &anyTextRule)
	integer(c, `,"attempts":`, &t.Attempts, true, &anyIntegerRule)
	integer(c, `,"maxAttempts":`, &t.MaxAttempts, true, &anyIntegerRule)
	integer(c, `,"deliveries":`, &t.Deliveries, true, &anyIntegerRule)
	c.optText(`,"webhook":`, &t.Webhook, &anyTextRule)
	c.optText(`,"workerId":`, &t.WorkerID, &anyTextRule)
	c.optTime(`,"leaseUntil":`, &t.LeaseUntilMs, &anyTimeRule)
	c.optTime(`,"runUntil":`, &t.RunUntilMs, &anyTimeRule)
	c.optTime(`,"visibleAt":`, &t.VisibleAtMs, &anyTimeRule)
	optInteger(c, `,"timeoutSeconds":`, &t.TimeoutSeconds, &anyIntegerRule)
	c.optTime(`,"expiresAt":`, &t.ExpiresAtMs, &anyTimeRule)
	c.cause(`,"dlqCause":`, &t.DeadCause)
	c.optText(`,"cancelCause":`, &t.CancelCause, &anyTextRule)
	c.optText(`,"error":`, &t.Error, &anyTextRule)
	c.history(`,"history":`, &t.History)
	c.waiting(`,"waiting":`, &t.Waiting)
	c.progress(`,"progress":`, &t.Progress)
	c.boolean(`,"printed":`, &t.Printed, t.Printed)
	c.optText(`,"tenantId":`, &t.TenantID, &anyTextRule)
	c.optText(`,"traceParent":`, &t.TraceParent, &anyTextRule)
	c.optText(`,"traceState":`, &t.TraceState, &anyTextRule)
	c.labels(`,"labels":`, &t.Labels)
	c.optText(`,"concurrencyKey":`, &t.ConcurrencyKey, &anyTextRule)
	c.optTime(`,"createdAt":`, &t.CreatedAtMs, &anyTimeRule)
	c.optTime(`,"updatedAt":`, &t.UpdatedAtMs, &anyTimeRule)
}

// taskPayload is the payload of a task. What is read out of a string must be JSON again,
// since it may be spliced into JSON later.
func (c *coder) taskPayload(lead string, payload *[]byte, form PayloadForm) {
	switch {
	case form == PayloadAsValue:
		c.payload(lead, payload)
	case c.in == nil && len(*payload) > 0:
		*c.out = appendQuoted(append(*c.out, lead...), *payload)
	case c.in != nil:
		text := ""
		if c.text(lead, &text, &anyTextRule); text == "" {
			return
		}
		*payload = []byte(text)
		if err := CheckJSON(*payload); err != nil {
			c.in.refuse(CodeInvalidBody, c.last(), "must hold JSON: "+err.Error())
		}
	}
}

// cause is the cause of a dead letter. One of a newer server is none.
func (c *coder) cause(lead string, cause *DeadCause) {
	text := cause.String()
	c.optText(lead, &text, &anyTextRule)
	if c.in != nil {
		*cause, _ = parseDeadCause(text)
	}
}

// Outline is the task without what its producer and its workers wrote: the payload, the errors,
// and note and data of the progress. It shares nothing that changes with the task.
func (t *Task) Outline() *Task {
	plain := *t
	plain.Payload, plain.Error, plain.History, plain.Progress = nil, "", slices.Clone(t.History), t.Progress.Outline()
	for i := range plain.History {
		plain.History[i].Error = ""
	}
	return &plain
}

// AppendTask appends the task as a JSON object. It leaves out empty times, texts and
// lists, and no counts.
func AppendTask(dst []byte, t *Task, form PayloadForm) []byte {
	c := writing(&dst)
	t.members(&c, form)
	return c.done()
}

// AppendClaimed appends the answer to a claim: a task as over HTTP, with the token of its
// delivery.
func AppendClaimed(dst []byte, t *Task, token Token) []byte {
	c := writing(&dst)
	t.members(&c, PayloadAsString)
	c.token(`,"leaseToken":`, &token, &needTextRule)
	return c.done()
}

// HistoryLine is one delivery that did not end in success, what a person did to the task
// while no worker had it, or the callback of its end. The last two have no Delivery,
// WorkerID and FromMs.
type HistoryLine struct {
	Delivery int
	WorkerID string
	FromMs   int64
	ToMs     int64
	Cause    string
	// By is the subject of the credential with which a person ended the delivery, or did
	// what Cause says; empty for all else.
	By string
	// CloseCode is the close code of the socket over which the delivery did not arrive, 0
	// if that is not known.
	CloseCode int
	// Error is the reason that the worker gave, cut to MaxLineErrorBytes.
	Error string
	// Exit is how the program ended that worked on the delivery.
	Exit Exit
	// Callback is the task that posts the outcome, if Cause is HistoryCallback.
	Callback TaskID
}

func (l *HistoryLine) members(c *coder) {
	optInteger(c, `,"delivery":`, &l.Delivery, &anyIntegerRule)
	c.optText(`,"workerId":`, &l.WorkerID, &anyTextRule)
	c.optTime(`,"from":`, &l.FromMs, &anyTimeRule)
	c.optTime(`,"to":`, &l.ToMs, &anyTimeRule)
	c.optText(`,"cause":`, &l.Cause, &anyTextRule)
	c.optText(`,"by":`, &l.By, &anyTextRule)
	optInteger(c, `,"closeCode":`, &l.CloseCode, &anyIntegerRule)
	c.optText(`,"error":`, &l.Error, &anyTextRule)
	l.Exit.members(c)
	c.optTaskID(`,"callback":`, &l.Callback)
}

var lineShape = shapeOf(new([]string), new(HistoryLine).members)

func (c *coder) history(lead string, lines *[]HistoryLine) {
	if c.in != nil {
		*lines, _ = readList(c, lead, &anyListRule, lineShape, (*HistoryLine).members)
		return
	}
	for i := range *lines {
		at := c.element(lead, i)
		(*lines)[i].members(c)
		c.close(at)
	}
	c.endList(len(*lines))
}

// ResultRecord is the outcome of a task, written once when it ends. Result is the JSON
// object as the worker sent it, byte for byte.
type ResultRecord struct {
	TaskID TaskID
	Status Status
	Result []byte
	Error  string
	// CancelCause is that of the task.
	CancelCause   string
	Artifacts     []Artifact
	CompletedAtMs int64
}

func (r *ResultRecord) members(c *coder) {
	c.taskID(`,"taskId":`, &r.TaskID)
	c.text(`,"status":`, (*string)(&r.Status), &needTextRule)
	c.optRaw(`,"result":`, &r.Result)
	c.optText(`,"error":`, &r.Error, &anyTextRule)
	c.optText(`,"cancelCause":`, &r.CancelCause, &anyTextRule)
	c.artifacts(`,"artifacts":`, &r.Artifacts)
	c.optTime(`,"completedAt":`, &r.CompletedAtMs, &anyTimeRule)
}

// AppendResultRecord appends the record as a JSON object, with its result byte for byte.
func AppendResultRecord(dst []byte, r *ResultRecord) []byte {
	c := writing(&dst)
	r.members(&c)
	return c.done()
}
