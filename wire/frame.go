package wire

import "fmt"

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

func (r *Ref) members(c *coder) {
	given := integer(c, `,"ref":`, &r.Value, r.Present, &refRule)
	if c.in != nil {
		r.Present = given
	}
}

// ClientFrame is one frame from client to server. The set is closed: the pointers to the
// types of this file that embed a Ref, Progress and Output.
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

func (r *TaskRef) members(c *coder) {
	c.taskID(`,"taskId":`, &r.TaskID)
	c.token(`,"leaseToken":`, &r.Token, &tokenRule)
}

// maybe is a delivery that a server may name without its token.
func (r *TaskRef) maybe(c *coder) {
	c.taskID(`,"taskId":`, &r.TaskID)
	c.optToken(`,"leaseToken":`, &r.Token, &anyTextRule)
}

var refShape = shapeOf(new([]string), new(TaskRef).members)

// taskRefs writes a list of deliveries.
func (c *coder) taskRefs(lead string, refs []TaskRef) {
	*c.out = append(append(*c.out, lead...), '[')
	for i := range refs {
		at := c.comma(i)
		refs[i].maybe(c)
		c.close(at)
	}
	*c.out = append(*c.out, ']')
}

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

func (f *Hello) members(c *coder) {
	c.kind("hello", &f.Ref)
	c.optText(`,"token":`, &f.Token, &openTextRule)
	c.optText(`,"workerId":`, &f.WorkerID, &workerRule)
	c.optText(`,"resume":`, &f.Resume, &openTextRule)
	optInteger(c, `,"maxMessageBytes":`, &f.MaxMessageBytes, &messageBytesRule)
}

// Subscribe asks for the tasks of some commands; a later one replaces it.
type Subscribe struct {
	Ref
	Commands []string
	// LeaseSeconds is 0 for the lease of the queue of each task.
	LeaseSeconds int
	Window       int
}

func (f *Subscribe) members(c *coder) {
	c.kind("subscribe", &f.Ref)
	c.commands(`,"commands":`, &f.Commands)
	if c.in != nil && len(f.Commands) == 0 {
		c.in.refuse(CodeInvalidArgument, c.last(),
			fmt.Sprintf(`must be a list of 1 to %d commands, or ["*"] for all`, MaxSubscribeCommands))
	}
	optInteger(c, `,"leaseSeconds":`, &f.LeaseSeconds, &leaseRule)
	integer(c, `,"window":`, &f.Window, true, &windowRule)
}

// Window sets the largest number of tasks that the session takes at a time.
type Window struct {
	Ref
	Size int
}

func (f *Window) members(c *coder) {
	c.kind("window", &f.Ref)
	integer(c, `,"size":`, &f.Size, true, &sizeRule)
}

// Received confirms every task frame up to and including the number Through.
type Received struct {
	Ref
	Through uint64
}

func (f *Received) members(c *coder) {
	c.kind("received", &f.Ref)
	integer(c, `,"through":`, &f.Through, true, &throughRule)
}

// Result ends a delivery with an outcome.
type Result struct {
	Ref
	TaskRef
	ResultRequest
}

func (f *Result) members(c *coder) {
	c.kind("result", &f.Ref)
	f.TaskRef.members(c)
	f.ResultRequest.members(c)
	f.refuseContents(c)
}

// refuseContents refuses files in a frame: a session reads and writes none.
func (r *ResultRequest) refuseContents(c *coder) {
	for i := range r.Artifacts {
		if c.in != nil && r.Artifacts[i].Content != nil {
			c.in.refuseNamed(CodeInvalidResult, fmt.Sprintf("artifacts[%d].contentBase64", i),
				"must be left out in a session: PUT the file to /v1/codeq/tasks/{id}/artifacts/{name}, then name it")
		}
	}
}

// Nack ends a delivery and asks for another one later.
type Nack struct {
	Ref
	TaskRef
	NackRequest
}

func (f *Nack) members(c *coder) {
	c.kind("nack", &f.Ref)
	f.TaskRef.members(c)
	f.NackRequest.members(c)
}

// Abandon ends a delivery as a failed attempt; the task is ready again at once.
type Abandon struct {
	Ref
	TaskRef
}

func (f *Abandon) members(c *coder) {
	c.kind("abandon", &f.Ref)
	f.TaskRef.members(c)
}

// Release hands a task back and counts no attempt.
type Release struct {
	Ref
	TaskRef
	ReleaseRequest
}

func (f *Release) members(c *coder) {
	c.kind("release", &f.Ref)
	f.TaskRef.members(c)
	f.ReleaseRequest.members(c)
}

// Heartbeat extends leases.
type Heartbeat struct {
	Ref
	// Tasks are the deliveries; nil means all of the session.
	Tasks []TaskRef
	// ExtendSeconds is the new length of the leases; 0 means that of the subscription.
	ExtendSeconds int
}

func (f *Heartbeat) members(c *coder) {
	c.kind("heartbeat", &f.Ref)
	if c.in == nil && f.Tasks != nil {
		c.taskRefs(`,"tasks":`, f.Tasks)
	}
	if c.in != nil {
		given := false
		f.Tasks, given = readList(c, `,"tasks":`, &heartbeatRule, refShape, (*TaskRef).members)
		if given && f.Tasks == nil {
			f.Tasks = []TaskRef{} // an empty list names no task; only an absent one names all
		}
	}
	optInteger(c, `,"extendSeconds":`, &f.ExtendSeconds, &extendRule)
}

// Enqueue posts a task over the session.
type Enqueue struct {
	Ref
	EnqueueRequest
}

func (f *Enqueue) members(c *coder) {
	c.kind("enqueue", &f.Ref)
	f.EnqueueRequest.members(c)
}

// Cancel ends a task that has not ended yet, also if a worker has it.
type Cancel struct {
	Ref
	TaskID TaskID
}

func (f *Cancel) members(c *coder) {
	c.kind("cancel", &f.Ref)
	c.taskID(`,"taskId":`, &f.TaskID)
}

// Drain announces that the client takes no more tasks and ends those that it has.
type Drain struct {
	Ref
}

func (f *Drain) members(c *coder) { c.kind("drain", &f.Ref) }

// Unknown stands for a frame whose type this version does not know, or that failed its
// checks. The session goes on.
type Unknown struct {
	Ref
	// TaskID is the task that the frame names, zero if none could be read.
	TaskID TaskID
	// Err is the answer to the frame.
	Err *Error
}

// clientMembers calls the method members of a frame. It is a switch, because a call through an
// interface would put the coder, and the object that it reads, on the heap.
func clientMembers(f ClientFrame, c *coder) {
	switch f := f.(type) {
	case *Result:
		f.members(c)
	case *Enqueue:
		f.members(c)
	case *Received:
		f.members(c)
	case *Hello:
		f.members(c)
	case *Subscribe:
		f.members(c)
	case *Window:
		f.members(c)
	case *Nack:
		f.members(c)
	case *Abandon:
		f.members(c)
	case *Release:
		f.members(c)
	case *Heartbeat:
		f.members(c)
	case *Cancel:
		f.members(c)
	case *Progress:
		f.members(c)
	case *Output:
		f.members(c)
	case *Drain:
		f.members(c)
	default:
		panic(fmt.Sprintf("client frame %T has no encoding", f))
	}
}

var clientKinds = kindsOf(&requestNames, clientMembers,
	func() ClientFrame { return &Result{} }, func() ClientFrame { return &Enqueue{} }, func() ClientFrame { return &Received{} },
	func() ClientFrame { return &Hello{} }, func() ClientFrame { return &Subscribe{} }, func() ClientFrame { return &Window{} },
	func() ClientFrame { return &Nack{} }, func() ClientFrame { return &Abandon{} }, func() ClientFrame { return &Release{} },
	func() ClientFrame { return &Heartbeat{} }, func() ClientFrame { return &Cancel{} }, func() ClientFrame { return &Drain{} },
	func() ClientFrame { return &Progress{} }, func() ClientFrame { return &Output{} },
)

// AppendClientFrame appends one frame as a JSON object. A message is one such object, or
// an array of them. It panics for an Unknown, which is never sent.
func AppendClientFrame(dst []byte, f ClientFrame) []byte {
	c := writing(&dst)
	clientMembers(f, &c)
	return c.done()
}
