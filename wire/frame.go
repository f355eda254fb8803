package wire

// Ref is the number that a client puts on a frame to recognise its answer. A frame
// without one gets no ok; it gets an error if it fails.
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

// Subscribe asks for the tasks of some commands; a later one replaces it.
type Subscribe struct {
	Ref
	Commands []string
	// LeaseSeconds is 0 for the lease of the queue of each task.
	LeaseSeconds int
	Window       int
}

// Window sets the largest number of tasks that the session takes at a time.
type Window struct {
	Ref
	Size int
}

// Received confirms every task frame up to and including the number Through.
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

// Abandon ends a delivery as a failed attempt; the task is ready again at once.
type Abandon struct {
	Ref
	TaskRef
}

// Release hands a task back and counts no attempt.
type Release struct {
	Ref
	TaskRef
	ReleaseRequest
}

// Heartbeat extends leases.
type Heartbeat struct {
	Ref
	// Tasks are the deliveries; nil means all of the session.
	Tasks []TaskRef
	// ExtendSeconds is the new length of the leases; 0 means that of the subscription.
	ExtendSeconds int
}

// Enqueue posts a task over the session.
type Enqueue struct {
	Ref
	EnqueueRequest
}

// Cancel ends a task that has not ended yet, also if a worker has it.
type Cancel struct {
	Ref
	TaskID TaskID
}

// Drain announces that the client takes no more tasks and ends those that it has.
type Drain struct {
	Ref
}

// Unknown stands for a frame whose type this version does not know, or that failed its
// checks. The session goes on.
type Unknown struct {
	Ref
	// TaskID is the task that the frame names, zero if none could be read.
	TaskID TaskID
	// Err is the answer to the frame.
	Err *Error
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

// TaskFrame is one delivery.
type TaskFrame struct {
	// Seq is the number of the frame in its session; Received confirms it.
	Seq   uint64
	Token Token
	// LeaseForMs is the length of the lease from now on, so that a worker compares no
	// clocks.
	LeaseForMs int64
	// LeaseUntilMs is the end of the lease in Unix milliseconds of the server.
	LeaseUntilMs int64
	// RunForMs is how long the delivery may run after it is confirmed; 0 is no limit.
	RunForMs int64
	// RunUntilMs is the end of the run, in Unix milliseconds, if it is confirmed at once.
	RunUntilMs int64
	Task       *Task
}

// OK answers a client frame with a ref that succeeded. Only the fields of its verb are
// set.
type OK struct {
	Ref    Ref
	TaskID TaskID
	// Replayed: an enqueue found an earlier task with the same key.
	Replayed bool
	// NackStatus is "requeued", "dlq" or "expired" after nack, abandon and release.
	NackStatus string
	// DelaySeconds is the delay until the next attempt after a nack.
	DelaySeconds int64
	// LeaseUntilMs is the earliest end of a lease after a heartbeat; 0 if absent.
	LeaseUntilMs int64
	// RunUntilMs is the earliest end of a run that a heartbeat extended; 0 if none has one.
	RunUntilMs int64
	// Lost lists the deliveries that a heartbeat could not extend.
	Lost []TaskRef
	// IsHeartbeat makes Lost part of the frame, also if it is empty.
	IsHeartbeat bool
}

// ErrorFrame answers a client frame that failed.
type ErrorFrame struct {
	Ref    Ref
	TaskID TaskID
	Err    *Error
}

// Revoked says that a delivery no longer belongs to the client.
type Revoked struct {
	TaskRef
	Reason string
}

// Draining says that the server will stop; the client should reconnect.
type Draining struct {
	Reason string
	// GraceSeconds is how long the session may still go on.
	GraceSeconds int
}

func (*Welcome) serverFrame()    {}
func (*TaskFrame) serverFrame()  {}
func (*OK) serverFrame()         {}
func (*ErrorFrame) serverFrame() {}
func (*Revoked) serverFrame()    {}
func (*Draining) serverFrame()   {}
