package wire

// Ref is the number a client puts on a frame to recognise its answer.
// Without one a frame gets no ok, only an error if it fails.
type Ref struct {
	Value   int64
	Present bool
}

// TaskRef names one delivery: the task and the token it was granted with.
type TaskRef struct {
	TaskID TaskID
	Token  Token
}

// ClientFrame is one frame from client to server. The set is closed: the pointers to the
// types of this file that embed a Ref.
type ClientFrame interface {
	clientFrame()
	// Reference is the number that the client put on the frame.
	Reference() Ref
}

func (*Ref) clientFrame() {}

// Reference is the ref itself; frames embed it.
func (r *Ref) Reference() Ref { return *r }

// DeliveryFrame is a frame about one delivery.
type DeliveryFrame interface{ Delivery() TaskRef }

// Delivery is the delivery itself; frames embed it.
func (r *TaskRef) Delivery() TaskRef { return *r }

// Hello is the first frame of a session.
type Hello struct {
	Ref
	Token    string
	WorkerID string
	Resume   string
	// MaxMessageBytes is the largest message the client can take, 0 when it
	// states none.
	MaxMessageBytes int
}

// Subscribe asks for the tasks of some commands; the last one counts.
type Subscribe struct {
	Ref
	Commands []string
	// LeaseSeconds is 0 when the client leaves it to the queue of each task.
	LeaseSeconds int
	Window       int
}

// Window states how many unfinished tasks the session can hold.
type Window struct {
	Ref
	Size int
}

// Received confirms every task frame up to and including Through.
type Received struct {
	Ref
	Through uint64
}

// Result ends a delivery with an outcome.
type Result struct {
	Ref
	TaskRef
	ResultRequest
}

// Nack ends a delivery and asks for another one later.
type Nack struct {
	Ref
	TaskRef
	NackRequest
}

// Abandon ends a delivery as failed, back to the tail at once.
type Abandon struct {
	Ref
	TaskRef
}

// Release hands a delivery back without counting an attempt.
type Release struct {
	Ref
	TaskRef
	ReleaseRequest
}

// Heartbeat extends leases: those named, or all in hand when Tasks is nil.
// ExtendSeconds is 0 when the client leaves it to the subscription.
type Heartbeat struct {
	Ref
	Tasks         []TaskRef
	ExtendSeconds int
}

// Enqueue posts a task over the session.
type Enqueue struct {
	Ref
	EnqueueRequest
}

// Cancel ends a task that has not ended yet, whoever has it.
type Cancel struct {
	Ref
	TaskID TaskID
}

// Drain announces that the client finishes what it has and takes no more.
type Drain struct {
	Ref
}

// Unknown is a frame whose type this version does not know, or one that
// failed its checks: Err is the answer, the session goes on.
type Unknown struct {
	Ref
	// TaskID is the task the frame named, zero if none could be read.
	TaskID TaskID
	Err    *Error
}

// ServerFrame is one frame from server to client. The set is closed.
type ServerFrame interface{ serverFrame() }

// Welcome answers a good hello.
type Welcome struct {
	SessionID          SessionID
	Resume             string
	WorkerID           string
	TenantID           string
	PingSeconds        int
	ResumeGraceSeconds int
	MaxMessageBytes    int
	MaxUnanswered      int
	Durability         string
	ServerTimeMs       int64
	Version            string
	Features           []string
	Held               []TaskRef
}

// TaskFrame is one delivery. LeaseForMs counts from now, so that a worker
// never compares clocks.
type TaskFrame struct {
	Seq        uint64
	Token      Token
	LeaseForMs int64
	// LeaseUntilMs is the same moment as Unix milliseconds of the server.
	LeaseUntilMs int64
	// RunForMs is how long the delivery may run from when it is confirmed, 0 for as
	// long as its lease is extended. RunUntilMs is when that is over if it is
	// confirmed at once.
	RunForMs   int64
	RunUntilMs int64
	Task       *Task
}

// OK answers a client frame that carried a ref and succeeded. Only the fields
// of the verb it answers are set.
type OK struct {
	Ref    Ref
	TaskID TaskID
	// Replayed: an enqueue met an earlier task with the same key.
	Replayed bool
	// NackStatus is "requeued", "dlq" or "expired" after nack, abandon and release.
	NackStatus string
	// DelaySeconds goes with NackStatus after a nack.
	DelaySeconds int64
	// LeaseUntilMs is the earliest lease end after a heartbeat; 0 when absent.
	LeaseUntilMs int64
	// RunUntilMs is the earliest end of a run of what a heartbeat extended; 0 when
	// none of them has one.
	RunUntilMs int64
	// Lost lists the deliveries a heartbeat could not extend.
	Lost []TaskRef
	// IsHeartbeat makes lost (even empty) part of the frame.
	IsHeartbeat bool
}

// ErrorFrame answers a client frame that failed.
type ErrorFrame struct {
	Ref    Ref
	TaskID TaskID
	Err    *Error
}

// Revoked tells that a delivery is no longer the client's.
type Revoked struct {
	TaskRef
	Reason string
}

// Draining tells that the server is going; reconnect later.
type Draining struct {
	Reason       string
	GraceSeconds int
}

func (*Welcome) serverFrame()    {}
func (*TaskFrame) serverFrame()  {}
func (*OK) serverFrame()         {}
func (*ErrorFrame) serverFrame() {}
func (*Revoked) serverFrame()    {}
func (*Draining) serverFrame()   {}
