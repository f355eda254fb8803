package wire

import (
	"fmt"
	"math"
)

// frameBits has, for each type a client may send, the members it knows.
var frameBits = map[string]uint64{
	"hello":     envelopeBits | 1<<fieldToken | 1<<fieldWorkerID | 1<<fieldResume | 1<<fieldMaxMessageBytes,
	"subscribe": envelopeBits | 1<<fieldCommands | 1<<fieldLeaseSeconds | 1<<fieldWindow,
	"window":    envelopeBits | 1<<fieldSize,
	"received":  envelopeBits | 1<<fieldThrough,
	"result":    envelopeBits | deliveryBits | resultBits,
	"nack":      envelopeBits | deliveryBits | nackBits,
	"abandon":   envelopeBits | deliveryBits,
	"release":   envelopeBits | deliveryBits | releaseBits,
	"heartbeat": envelopeBits | 1<<fieldTasks | 1<<fieldExtendSeconds,
	"enqueue":   envelopeBits | enqueueBits,
	"cancel":    envelopeBits | 1<<fieldTaskID,
	"drain":     envelopeBits,
}

var (
	typeRule         = textRule{code: CodeInvalidArgument, high: math.MaxInt, required: true}
	refRule          = integerRule{code: CodeInvalidArgument, low: math.MinInt64, high: math.MaxInt64}
	openTextRule     = textRule{code: CodeInvalidArgument, high: math.MaxInt}
	workerRule       = textRule{code: CodeInvalidArgument, high: MaxWorkerIDBytes, exact: true, name: true}
	messageBytesRule = integerRule{code: CodeInvalidArgument, low: MinMaxMessageBytes, high: math.MaxInt64}
	leaseRule        = integerRule{code: CodeInvalidArgument, low: 1, high: MaxLeaseSeconds}
	extendRule       = integerRule{code: CodeInvalidArgument, low: 1, high: MaxLeaseSeconds}
	windowRule       = integerRule{code: CodeInvalidArgument, high: MaxWindow, absent: DefaultWindow}
	sizeRule         = integerRule{code: CodeInvalidArgument, high: MaxWindow, required: true}
	throughRule      = integerRule{code: CodeInvalidArgument, high: math.MaxInt64, required: true}
)

// ParseClientMessage reads one text message of a client: a frame or an array
// of frames, returned in order. A message that is too long, of too many frames,
// not UTF-8 or not JSON is a violation, which ends the session; then there are
// no frames.
// Anything else that is wrong becomes an Unknown in its place, with the answer
// in it: a frame that fails its checks, and, once for the whole message,
// whatever in it is no object. Bytes in the frames alias data.
func ParseClientMessage(data []byte) (frames []ClientFrame, violation *Error) {
	if len(data) > MaxClientMessageBytes {
		return nil, Refuse(CodeTooLarge,
			fmt.Sprintf("message must be at most %d bytes, got %d", MaxClientMessageBytes, len(data)))
	}
	return parseFrames(data, &sessionFrames)
}

// dialect is the frames that a client may send in one protocol. The names of its members
// begin with type and ref.
type dialect struct {
	names []string
	// bits has, for each type, the members it knows.
	bits map[string]uint64
	// task is the member that names a task.
	task int
	// frameOf makes the frame of a type.
	frameOf func(o *object, kind string, ref Ref) ClientFrame
}

var sessionFrames = dialect{names: requestNames, bits: frameBits, task: fieldTaskID, frameOf: (*object).frameOf}

// parseFrames reads a message whose length the caller has checked.
func parseFrames(data []byte, d *dialect) (frames []ClientFrame, violation *Error) {
	m := message{scanner: scanner{data: data}, dialect: d}
	if !m.utf8() || !m.frames(m.frame) || !m.end() {
		return nil, Refuse(CodeInvalidBody, "message must be JSON: "+m.problemAt())
	}
	if m.surplus > 0 {
		return nil, Refuse(CodeTooLarge,
			fmt.Sprintf("message must hold at most %d frames, got %d", MaxMessageFrames, MaxMessageFrames+m.surplus))
	}
	return m.list, nil
}

// message is a client message that is being read.
type message struct {
	scanner
	*dialect
	list []ClientFrame
	// stray tells that the answer to a value that is no frame is in the list.
	stray bool
	// surplus counts the frames beyond the limit, of which nothing is kept: a
	// refused frame takes far more memory than the two bytes it is made of.
	surplus int
}

// frame reads one value, which should be a frame.
func (m *message) frame() bool {
	if m.peek() != '{' {
		if !m.stray {
			m.stray = true
			m.list = append(m.list, &Unknown{
				Err: Refuse(CodeInvalidBody, "message must be a JSON object or a list of JSON objects"),
			})
		}
		return m.value(0)
	}
	if len(m.list) >= MaxMessageFrames {
		m.surplus++
		return m.value(0)
	}
	o := object{names: m.names}
	if !m.object(&o) {
		return false
	}
	m.list = append(m.list, o.clientFrame(m.dialect))
	return true
}

// clientFrame makes the frame, or the Unknown that says why it is none.
func (o *object) clientFrame(d *dialect) ClientFrame {
	o.once(envelopeBits)
	if o.raw[fieldType] == nil {
		o.checkMembers(math.MaxUint64) // its name may be one of those that are not known
	}
	ref := o.ref()
	kind := o.text(fieldType, &typeRule)
	if bits, ok := d.bits[kind]; ok {
		o.checkMembers(bits)
	} else {
		o.refuse(CodeInvalidArgument, fieldType, "names no frame that this server knows")
	}
	frame := d.frameOf(o, kind, ref)
	if o.err != nil {
		return &Unknown{Ref: ref, TaskID: o.namedTask(d.task, d.bits[kind]), Err: o.err}
	}
	return frame
}

// ref reads the client's number of the frame. It is read even if the frame is
// already refused, so that the client recognises the answer; a ref that came
// twice is none.
func (o *object) ref() Ref {
	if o.twice&(1<<fieldRef) != 0 {
		return Ref{}
	}
	kept := o.err
	o.err = nil
	present := o.given(fieldRef) != nil
	ref := Ref{Value: o.integer(fieldRef, &refRule), Present: present && o.err == nil}
	if kept != nil {
		o.err = kept
	}
	return ref
}

// namedTask is the task a refused frame was about, as far as it can be read: field names
// it, if the frame has that member.
func (o *object) namedTask(field int, known uint64) TaskID {
	if known&o.twice&(1<<field) != 0 || known&(1<<field) == 0 {
		return TaskID{}
	}
	quiet := object{names: o.names, raw: o.raw}
	return quiet.taskID(field)
}

func (o *object) frameOf(kind string, ref Ref) ClientFrame {
	switch kind {
	case "enqueue":
		return &Enqueue{Ref: ref, EnqueueRequest: o.enqueueRequest()}
	case "result":
		return &Result{Ref: ref, TaskRef: o.delivery(), ResultRequest: o.resultRequest()}
	case "received":
		return &Received{Ref: ref, Through: uint64(o.integer(fieldThrough, &throughRule))}
	case "window":
		return &Window{Ref: ref, Size: int(o.integer(fieldSize, &sizeRule))}
	case "nack":
		return &Nack{Ref: ref, TaskRef: o.delivery(), NackRequest: o.nackRequest()}
	case "abandon":
		return &Abandon{Ref: ref, TaskRef: o.delivery()}
	case "release":
		return &Release{Ref: ref, TaskRef: o.delivery(), ReleaseRequest: o.releaseRequest()}
	case "heartbeat":
		return o.heartbeat(ref)
	case "hello":
		return o.hello(ref)
	case "subscribe":
		return o.subscribe(ref)
	case "cancel":
		return &Cancel{Ref: ref, TaskID: o.taskID(fieldTaskID)}
	case "drain":
		return &Drain{Ref: ref}
	}
	return nil
}

// delivery reads the task and the token that a verb of a session must carry.
func (o *object) delivery() TaskRef {
	return TaskRef{TaskID: o.taskID(fieldTaskID), Token: o.token(fieldLeaseToken, &tokenRule)}
}

func (o *object) hello(ref Ref) *Hello {
	return &Hello{
		Ref:             ref,
		Token:           o.text(fieldToken, &openTextRule),
		WorkerID:        o.text(fieldWorkerID, &workerRule),
		Resume:          o.text(fieldResume, &openTextRule),
		MaxMessageBytes: int(o.integer(fieldMaxMessageBytes, &messageBytesRule)),
	}
}

func (o *object) subscribe(ref Ref) *Subscribe {
	f := &Subscribe{
		Ref:          ref,
		LeaseSeconds: int(o.integer(fieldLeaseSeconds, &leaseRule)),
		Window:       int(o.integer(fieldWindow, &windowRule)),
	}
	if f.Commands = o.commands(fieldCommands); len(f.Commands) == 0 {
		o.refuse(CodeInvalidArgument, fieldCommands,
			fmt.Sprintf(`must be a list of 1 to %d commands, or ["*"] for all`, MaxSubscribeCommands))
	}
	return f
}

func (o *object) heartbeat(ref Ref) *Heartbeat {
	f := &Heartbeat{Ref: ref, ExtendSeconds: int(o.integer(fieldExtendSeconds, &extendRule))}
	list, given := o.elements(fieldTasks, CodeInvalidArgument, MaxHeartbeatTasks)
	if given {
		// An empty list names no task; only an absent one names all.
		f.Tasks = make([]TaskRef, 0, len(list))
	}
	for i, raw := range list {
		e := o.element(fieldTasks, i, raw, requestNames, CodeInvalidArgument)
		e.checkMembers(deliveryBits)
		f.Tasks = append(f.Tasks, e.delivery())
		if e.err != nil {
			o.err = e.err
			break
		}
	}
	return f
}
