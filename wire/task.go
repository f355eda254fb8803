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

// Terminal reports whether a task in this state is at rest for good.
func (s Status) Terminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Location is where a task sits, in the words of the first implementation of
// the protocol; clients know it as lastKnownLocation.
type Location string

// The places. An ended task that is no dead letter sits in none.
const (
	LocationPending    Location = "PENDING_LIST"
	LocationDelayed    Location = "DELAYED_ZSET"
	LocationInProgress Location = "INPROG_SET"
	LocationDead       Location = "DLQ_SET"
	LocationNone       Location = "NONE"
)

// Error texts that the server itself writes into a task.
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

// Task is a task as a client sees it. Times are Unix milliseconds, 0 means
// absent; empty strings are absent on the wire. Payload is the JSON value as
// it was posted, byte for byte.
type Task struct {
	ID           TaskID
	Command      string
	Payload      []byte
	Priority     int
	Status       Status
	Location     Location
	Attempts     int
	MaxAttempts  int
	Deliveries   int
	Webhook      string
	WorkerID     string
	LeaseUntilMs int64
	// RunUntilMs is when the delivery in progress ends whatever its worker says, or
	// later while the server does not know that it has arrived.
	RunUntilMs  int64
	VisibleAtMs int64
	// TimeoutSeconds is how long one delivery may run, 0 where its queue decides.
	TimeoutSeconds int64
	// ExpiresAtMs is from when on the task is not handed out any more.
	ExpiresAtMs int64
	Error       string
	// DeadCause is why it is a dead letter.
	DeadCause DeadCause
	// CancelCause is CancelExpired for a task that expired, empty for one that was
	// cancelled.
	CancelCause string
	History     []HistoryLine
	// Waiting is set in the answer to a question about one task.
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
	// CloseCode is what the socket was closed with over which the delivery did not
	// arrive, 0 if that is not known.
	CloseCode int
	// Error is what its worker said of it, cut to MaxLineErrorBytes, and Exit how the
	// program ended that worked on it.
	Error string
	Exit  Exit
}

// ResultRecord is the outcome of a task, written once by its terminal
// transition. Result is the JSON object as the worker sent it, byte for byte.
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
