package wire

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
	// Webhook is reserved for result callbacks: this server never sets it.
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
	Waiting     *Waiting
	TenantID    string
	TraceParent string
	TraceState  string
	CreatedAtMs int64
	UpdatedAtMs int64
}

// HistoryLine is one delivery that did not end in success.
type HistoryLine struct {
	Delivery int
	WorkerID string
	FromMs   int64
	ToMs     int64
	Cause    string
	// CloseCode is the close code of the socket over which the delivery did not arrive, 0
	// if that is not known.
	CloseCode int
	// Error is the reason that the worker gave, cut to MaxLineErrorBytes.
	Error string
	// Exit is how the program ended that worked on the delivery.
	Exit Exit
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

// Artifact is a named link that a worker attached to its result.
type Artifact struct {
	Name string
	URL  string
}
