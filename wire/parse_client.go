package wire

import (
	"fmt"
	"math"
)

var (
	typeRule         = textRule{code: CodeInvalidArgument, high: math.MaxInt, required: true}
	refRule          = integerRule{code: CodeInvalidArgument, low: math.MinInt64, high: math.MaxInt64}
	openTextRule     = textRule{code: CodeInvalidArgument, high: math.MaxInt}
	workerRule       = textRule{code: CodeInvalidArgument, high: MaxWorkerIDBytes, problem: func(name string) string { return NameProblem(name, MaxWorkerIDBytes) }, exact: true}
	messageBytesRule = integerRule{code: CodeInvalidArgument, low: MinMaxMessageBytes, high: math.MaxInt64}
	heartbeatRule    = listRule{code: CodeInvalidArgument, high: MaxHeartbeatTasks}
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

// dialect is the frames that a client may send in one protocol.
type dialect struct {
	// names are the members, which begin with type and ref.
	names *[]string
	// bits has, for each type, the members it knows.
	bits map[string]uint64
	// task is the member that names a task.
	task int
}

var sessionFrames = dialect{names: &requestNames, bits: frameBits(), task: fieldTaskID}

func frameBits() map[string]uint64 {
	bits := map[string]uint64{}
	for word, kind := range clientKinds {
		bits[word] = envelopeBits | kind.shape.bits
	}
	return bits
}

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
	o := object{names: *m.names}
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
	var frame ClientFrame
	switch { // a call through d would put o on the heap
	case o.err != nil:
	case d == &watchFrames:
		frame = o.watchFrame(kind, ref)
	default:
		k := clientKinds[kind]
		frame = k.make()
		clientMembers(frame, &coder{in: o, shape: k.shape, ref: ref})
	}
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
