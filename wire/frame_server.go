package wire

import (
	"cmp"
	"errors"
	"fmt"
)

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
	// Leader is the URL of the node that leads a cluster; empty without one.
	Leader   string
	Features []string
	Held     []TaskRef
}

func (f *Welcome) members(c *coder) {
	c.kind("welcome", nil)
	c.sessionID(`,"sessionId":`, &f.SessionID)
	c.text(`,"resume":`, &f.Resume, &anyTextRule)
	c.text(`,"workerId":`, &f.WorkerID, &anyTextRule)
	c.text(`,"tenantId":`, &f.TenantID, &anyTextRule)
	integer(c, `,"pingSeconds":`, &f.PingSeconds, true, &anyIntegerRule)
	integer(c, `,"resumeGraceSeconds":`, &f.ResumeGraceSeconds, true, &anyIntegerRule)
	integer(c, `,"maxMessageBytes":`, &f.MaxMessageBytes, true, &anyIntegerRule)
	integer(c, `,"maxUnanswered":`, &f.MaxUnanswered, true, &anyIntegerRule)
	c.text(`,"durability":`, &f.Durability, &anyTextRule)
	c.time(`,"serverTime":`, &f.ServerTimeMs, &anyTimeRule)
	c.text(`,"version":`, &f.Version, &anyTextRule)
	c.optText(`,"leader":`, &f.Leader, &anyTextRule)
	c.texts(`,"features":`, &f.Features)
	if c.in == nil {
		c.taskRefs(`,"held":`, f.Held)
	} else {
		f.Held, _ = readList(c, `,"held":`, &anyListRule, refShape, (*TaskRef).maybe)
	}
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

func (f *TaskFrame) members(c *coder) {
	c.kind("task", nil)
	integer(c, `,"seq":`, &f.Seq, true, &countRule)
	c.token(`,"leaseToken":`, &f.Token, &needTextRule)
	integer(c, `,"leaseMs":`, &f.LeaseForMs, true, &countRule)
	c.optTime(`,"leaseUntil":`, &f.LeaseUntilMs, &anyTimeRule)
	optInteger(c, `,"runMs":`, &f.RunForMs, &anyIntegerRule)
	c.optTime(`,"runUntil":`, &f.RunUntilMs, &anyTimeRule)
	if c.in == nil {
		at := c.open(`,"task":`)
		f.Task.members(c, PayloadAsValue)
		c.close(at)
		return
	}
	field := c.field(`,"task":`)
	raw := c.in.given(field)
	if raw == nil || raw[0] != '{' {
		c.in.refuse(CodeInvalidBody, field, "is required: an object")
		return
	}
	inner := taskShape.object()
	inner.answer = true
	if problem := inner.scanAlone(raw); problem != "" {
		panic("a task that was scanned does not scan again: " + problem)
	}
	f.Task = &Task{}
	f.Task.members(&coder{in: &inner, shape: taskShape}, PayloadAsValue)
	if inner.err != nil {
		c.in.refuse(CodeInvalidBody, field, "has a fault: "+inner.err.Sentence)
	}
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

func (f *OK) members(c *coder) {
	c.kind("ok", nil)
	f.Ref.members(c)
	c.optTaskID(`,"taskId":`, &f.TaskID)
	c.boolean(`,"replayed":`, &f.Replayed, f.Replayed)
	c.optText(`,"status":`, &f.NackStatus, &anyTextRule)
	integer(c, `,"delaySeconds":`, &f.DelaySeconds, f.NackStatus != "", &anyIntegerRule)
	c.optTime(`,"leaseUntil":`, &f.LeaseUntilMs, &anyTimeRule)
	c.optTime(`,"runUntil":`, &f.RunUntilMs, &anyTimeRule)
	if c.in == nil && f.IsHeartbeat {
		c.taskRefs(`,"lost":`, f.Lost)
	} else if c.in != nil {
		f.Lost, f.IsHeartbeat = readList(c, `,"lost":`, &anyListRule, refShape, (*TaskRef).maybe)
	}
}

// ErrorFrame answers a client frame that failed.
type ErrorFrame struct {
	Ref    Ref
	TaskID TaskID
	Err    *Error
}

// members has the task of an idempotency_conflict as taskId: it answers an enqueue, which
// names no task.
func (f *ErrorFrame) members(c *coder) {
	c.kind("error", nil)
	f.Ref.members(c)
	id := cmp.Or(f.TaskID, f.Err.TaskID)
	c.optTaskID(`,"taskId":`, &id)
	f.Err.refusal(c)
	f.Err.advice(c)
	if c.in == nil {
		return
	}
	if f.TaskID = id; f.Err.Code == CodeIdempotencyConflict {
		f.Err.TaskID = id
	}
}

// Revoked says that a delivery no longer belongs to the client.
type Revoked struct {
	TaskRef
	Reason string
}

func (f *Revoked) members(c *coder) {
	c.kind("revoked", nil)
	f.TaskRef.members(c)
	c.text(`,"reason":`, &f.Reason, &anyTextRule)
}

// Draining says that the server will stop; the client should reconnect.
type Draining struct {
	Reason string
	// GraceSeconds is how long the session may still go on.
	GraceSeconds int
}

func (f *Draining) members(c *coder) {
	c.kind("draining", nil)
	c.text(`,"reason":`, &f.Reason, &anyTextRule)
	integer(c, `,"graceSeconds":`, &f.GraceSeconds, true, &anyIntegerRule)
}

func (*Welcome) serverFrame()    {}
func (*TaskFrame) serverFrame()  {}
func (*OK) serverFrame()         {}
func (*ErrorFrame) serverFrame() {}
func (*Revoked) serverFrame()    {}
func (*Draining) serverFrame()   {}

// serverMembers is clientMembers for frames of a server.
func serverMembers(f ServerFrame, c *coder) {
	switch f := f.(type) {
	case *TaskFrame:
		f.members(c)
	case *OK:
		f.members(c)
	case *ErrorFrame:
		f.members(c)
	case *Revoked:
		f.members(c)
	case *Draining:
		f.members(c)
	case *Welcome:
		f.members(c)
	default:
		panic(fmt.Sprintf("server frame %T has no encoding", f))
	}
}

// answerNames are the members of the frames of a server.
var answerNames = []string{"type", "ref"}

var serverKinds = kindsOf(&answerNames, serverMembers,
	func() ServerFrame { return &TaskFrame{} }, func() ServerFrame { return &OK{} },
	func() ServerFrame { return &ErrorFrame{Err: &Error{}} }, func() ServerFrame { return &Revoked{} },
	func() ServerFrame { return &Draining{} }, func() ServerFrame { return &Welcome{} },
)

// AppendServerFrame appends one frame as a JSON object. A message is an array of such
// objects; the caller appends the brackets and commas.
func AppendServerFrame(dst []byte, f ServerFrame) []byte {
	c := writing(&dst)
	serverMembers(f, &c)
	return c.done()
}

// ParseServerMessage reads one message of a server: an array of frames, or a
// single one. Frames of an unknown type and unknown members are passed over,
// so that a client keeps working with a newer server. Payloads alias data.
func ParseServerMessage(data []byte) ([]ServerFrame, error) {
	s := scanner{data: data}
	var frames []ServerFrame
	var refused *Error
	take := func() bool {
		if s.peek() != '{' {
			return s.fail("a frame should begin here")
		}
		o := object{names: answerNames, answer: true}
		if !s.object(&o) {
			return false
		}
		if kind, known := serverKinds[o.text(fieldType, &needTextRule)]; known {
			f := kind.make()
			serverMembers(f, &coder{in: &o, shape: kind.shape})
			frames = append(frames, f)
		}
		refused = o.err
		return refused == nil
	}
	ok := s.utf8() && s.frames(take) && s.end()
	switch {
	case refused != nil:
		return nil, errors.New("read server message: " + refused.Sentence)
	case !ok:
		return nil, errors.New("read server message: " + s.problemAt())
	}
	return frames, nil
}
