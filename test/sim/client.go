package sim

import (
	"fmt"
	"slices"

	"codeq/wire"
)

// client is a program that keeps one session to the server: a worker, a
// producer that streams, or both.
type client struct {
	world   *world
	name    string
	tenant  string
	subject string
	// allowed are the commands its credential is good for, nil for all.
	allowed  []string
	produces bool
	// honest clients do nothing but finish what they are given.
	honest bool

	conn    *conn
	welcome bool
	// key resumes the last session, which began in that life of the server and
	// in which the client had all of had.
	key    string
	life   int
	had    map[wire.TaskRef]bool
	window int
	// most is the largest window whose tasks may still be under way.
	most   int
	inHand []held
	// said are the deliveries that the client has answered for on this socket.
	said    map[wire.TaskRef]bool
	lastSeq uint64
	// stopping is the newest request to take no more, stopped that it has been
	// answered.
	stopping int64
	stopped  bool
	// past are deliveries of sessions that ended, for late answers.
	past []wire.TaskRef
	ref  int64
}

// held is a task the worker has and has not answered for.
type held struct {
	ref      wire.TaskRef
	answered bool
}

// sentFrame is a frame that waits for its answer.
type sentFrame struct {
	frame wire.ClientFrame
	task  wire.TaskRef
}

// ends says that the frame ends a delivery, whatever the answer is.
func (s sentFrame) ends() bool {
	switch s.frame.(type) {
	case *wire.Result, *wire.Nack, *wire.Abandon, *wire.Release:
		return true
	}
	return false
}

// connect opens a session and says what it wants.
func (cl *client) connect() {
	cl.conn = cl.world.connect(cl)
	cl.welcome, cl.lastSeq, cl.said = false, 0, make(map[wire.TaskRef]bool)
	cl.stopping, cl.stopped = 0, false
	hello := &wire.Hello{WorkerID: cl.name}
	if cl.key != "" && !cl.world.chance.oneIn(3) {
		hello.Resume = cl.key
	} else {
		cl.key, cl.had, cl.life = "", make(map[wire.TaskRef]bool), cl.world.lives
	}
	cl.world.trace.say("  %s opens socket %d, resumes: %t", cl.name, cl.conn.number, hello.Resume != "")
	frames := []wire.ClientFrame{hello}
	if !cl.produces || cl.honest {
		frames = append(frames, cl.subscribe())
	}
	cl.say(frames...)
}

func (cl *client) subscribe() *wire.Subscribe {
	c := cl.world.chance
	f := &wire.Subscribe{Commands: []string{wire.AllCommands}, LeaseSeconds: 300, Window: 200}
	if !cl.honest {
		f.LeaseSeconds = pick(c, []int{0, 1, 2, 5, 20, 60, 600})
		f.Window = pick(c, []int{0, 1, 1, 2, 3, 8})
		if cl.world.shape.big {
			f.Window = 40
		}
		if !c.oneIn(3) {
			f.Commands = cl.world.someCommands()
		}
	}
	cl.resized(f.Window)
	f.Ref = cl.expects(f, wire.TaskRef{})
	cl.stops(f.Window, f.Ref)
	return f
}

func (cl *client) resized(window int) {
	cl.window = window
	cl.most = max(cl.most, window)
}

// expects gives a frame its number.
func (cl *client) expects(f wire.ClientFrame, task wire.TaskRef) wire.Ref {
	cl.ref++
	cl.conn.sent[cl.ref] = sentFrame{f, task}
	return wire.Ref{Value: cl.ref, Present: true}
}

// say sends one message of some frames.
func (cl *client) say(frames ...wire.ClientFrame) {
	var data []byte
	if len(frames) > 1 {
		data = append(data, '[')
	}
	for i, f := range frames {
		if i > 0 {
			data = append(data, ',')
		}
		data = wire.AppendClientFrame(data, f)
	}
	if len(frames) > 1 {
		data = append(data, ']')
	}
	cl.conn.toServer = append(cl.conn.toServer, packet{textPacket, data})
}

// act does something that a client may do.
func (cl *client) act() {
	switch c := cl.world.chance; {
	case cl.conn == nil:
		cl.connect()
	case cl.honest:
		cl.finishAll()
	case cl.produces && !c.oneIn(6):
		cl.produce()
	case c.oneIn(12):
		cl.change()
	default:
		frames := make([]wire.ClientFrame, 0, 4)
		for range 1 + c.IntN(3) {
			if f := cl.workFrame(); f != nil {
				frames = append(frames, f)
			}
		}
		if len(frames) > 0 {
			cl.say(frames...)
		}
	}
}

func (cl *client) produce() {
	frames := make([]wire.ClientFrame, 0, 8)
	if t := cl.world.someTask(); t != nil && cl.world.chance.oneIn(8) {
		f := &wire.Cancel{TaskID: t.id}
		f.Ref = cl.expects(f, wire.TaskRef{})
		frames = append(frames, f)
	}
	for range 1 + cl.world.chance.IntN(8) {
		f := &wire.Enqueue{EnqueueRequest: cl.world.newRequest()}
		f.Ref = cl.expects(f, wire.TaskRef{})
		frames = append(frames, f)
	}
	cl.say(frames...)
}

// change is a word about the session, not about a task.
func (cl *client) change() {
	c := cl.world.chance
	switch c.IntN(8) {
	case 0:
		cl.say(cl.subscribe())
	case 1:
		f := &wire.Drain{}
		f.Ref = cl.expects(f, wire.TaskRef{})
		cl.window = 0
		cl.stops(0, f.Ref)
		cl.say(f)
	case 2:
		cl.conn.toServer = append(cl.conn.toServer, packet{pingPacket, []byte("ping")})
	default:
		cl.say(cl.resize(pick(c, []int{0, 1, 2, 4, 10})))
	}
}

// resize is a frame with another window.
func (cl *client) resize(window int) *wire.Window {
	f := &wire.Window{Size: window}
	f.Ref = cl.expects(f, wire.TaskRef{})
	cl.resized(window)
	cl.stops(window, f.Ref)
	return f
}

// What a worker may say of a delivery is drawn as a verb; from firstEnding on it
// ends it.
const (
	verbs       = 20
	firstEnding = 6
)

// workFrame is a frame about a delivery, nil if there is nothing to say.
func (cl *client) workFrame() wire.ClientFrame {
	c := cl.world.chance
	switch verb := c.IntN(verbs); {
	case verb < 3:
		if cl.lastSeq == 0 {
			return nil
		}
		return &wire.Received{Through: cl.lastSeq - uint64(c.IntN(2))%cl.lastSeq}
	case verb < firstEnding:
		return cl.heartbeat()
	default:
		ref, ok := cl.someDelivery()
		if !ok {
			return nil
		}
		return cl.ending(ref, verb)
	}
}

// someDelivery is mostly one in flight, sometimes one of a session that ended or
// of somebody else.
func (cl *client) someDelivery() (wire.TaskRef, bool) {
	c := cl.world.chance
	switch {
	case c.oneIn(8) && len(cl.past) > 0:
		return pick(c, cl.past), true
	case c.oneIn(30) && len(cl.world.overheard) > 0:
		return pick(c, cl.world.overheard), true
	case len(cl.inHand) == 0:
		return wire.TaskRef{}, false
	}
	i := c.IntN(len(cl.inHand))
	ref := cl.inHand[i].ref
	if !c.oneIn(6) {
		// Otherwise the worker forgets that it has answered, and does so twice.
		cl.inHand = slices.Delete(cl.inHand, i, i+1)
		cl.remember(ref)
	}
	return ref, true
}

func (cl *client) remember(ref wire.TaskRef) {
	if len(cl.past) == 6 {
		cl.past = slices.Delete(cl.past, 0, 1)
	}
	cl.past = append(cl.past, ref)
}

// releaseVerb is the first number that stands for a hand-back.
const releaseVerb = 18

// ending is a frame that ends a delivery.
func (cl *client) ending(ref wire.TaskRef, verb int) wire.ClientFrame {
	c := cl.world.chance
	cl.said[ref] = true
	for i := range cl.inHand {
		cl.inHand[i].answered = cl.inHand[i].answered || cl.inHand[i].ref == ref
	}
	if cl.world.shape.handsBack && !cl.honest && !c.oneIn(3) {
		verb = releaseVerb
	}
	switch {
	case verb < 13:
		f := &wire.Result{TaskRef: ref, ResultRequest: cl.world.outcome(ref)}
		f.Ref = cl.expects(f, ref)
		return f
	case verb < 16:
		f := &wire.Nack{TaskRef: ref, NackRequest: wire.NackRequest{DelaySeconds: pick(c, []int64{-1, -1, 0, 0, 1, 30, 5000})}}
		if c.oneIn(2) {
			f.Reason = "no"
		}
		f.Ref = cl.expects(f, ref)
		return f
	case verb < releaseVerb:
		f := &wire.Abandon{TaskRef: ref}
		f.Ref = cl.expects(f, ref)
		return f
	}
	f := &wire.Release{TaskRef: ref, ReleaseRequest: cl.world.handsBack()}
	f.Ref = cl.expects(f, ref)
	return f
}

func (cl *client) heartbeat() wire.ClientFrame {
	c := cl.world.chance
	f := &wire.Heartbeat{ExtendSeconds: pick(c, []int{0, 0, 1, 30, 300})}
	if c.oneIn(2) {
		f.Tasks = []wire.TaskRef{}
		for _, h := range cl.inHand {
			if c.oneIn(2) {
				f.Tasks = append(f.Tasks, h.ref)
			}
		}
		if len(cl.past) > 0 && c.oneIn(2) {
			f.Tasks = append(f.Tasks, pick(c, cl.past))
		}
	}
	for _, ref := range f.Tasks {
		// It may carry tasks of earlier sessions.
		cl.had[ref] = true
	}
	f.Ref = cl.expects(f, wire.TaskRef{})
	return f
}

// finishAll completes everything in flight.
func (cl *client) finishAll() {
	if len(cl.inHand) == 0 {
		return
	}
	frames := make([]wire.ClientFrame, 0, len(cl.inHand))
	for _, h := range cl.inHand {
		f := &wire.Result{TaskRef: h.ref, ResultRequest: cl.world.outcome(h.ref)}
		f.Ref = cl.expects(f, h.ref)
		frames = append(frames, f)
	}
	cl.inHand = cl.inHand[:0]
	cl.say(frames...)
}

// drop ends the socket from the client's side; with blind the server does not
// hear of it.
func (cl *client) drop(blind bool) {
	c := cl.conn
	cl.world.trace.say("  %s drops socket %d (unnoticed: %v)", cl.name, c.number, blind)
	cl.lose()
	c.blind = true
	if !blind {
		c.end()
	}
}

// lose is the end of the socket as the client sees it.
func (cl *client) lose() {
	for _, h := range cl.inHand {
		cl.remember(h.ref)
	}
	cl.inHand = cl.inHand[:0]
	cl.most = 0
	cl.conn = nil
}

// read takes the next message of the server.
func (cl *client) read() {
	c := cl.conn
	if c == nil || len(c.toClient) == 0 {
		return
	}
	p := c.toClient[0]
	c.toClient = c.toClient[1:]
	switch p.kind {
	case closePacket:
		cl.lose()
	case pingPacket:
		c.toServer = append(c.toServer, packet{pongPacket, p.data})
	case textPacket:
		cl.world.trace.say("  %s reads %s", cl.name, p.data)
		cl.world.trace.text(p.data)
		frames, err := wire.ParseServerMessage(p.data)
		if err != nil {
			violate("a client can read what a server says", "%v: %s", err, p.data)
		}
		for _, f := range frames {
			cl.frame(f)
		}
	}
}

func (cl *client) frame(f wire.ServerFrame) {
	switch f := f.(type) {
	case *wire.Welcome:
		cl.welcomed(f)
	case *wire.TaskFrame:
		cl.task(f)
	case *wire.OK:
		cl.answered(f.Ref, f, nil)
	case *wire.ErrorFrame:
		if !f.Ref.Present {
			violate("a refusal names its request", "%v", f.Err)
		}
		cl.answered(f.Ref, nil, f.Err)
	case *wire.Revoked:
		if cl.honest {
			return // it answers for that too, or its credit never comes back
		}
		cl.inHand = slices.DeleteFunc(cl.inHand, func(h held) bool {
			// A worker that hears of it tells nobody, keeps the credit and may still
			// answer later.
			if h.ref == f.TaskRef {
				cl.remember(h.ref)
			}
			return h.ref == f.TaskRef
		})
	}
}

// welcomed takes back in flight what the session still has, and nothing else;
// only a server that has restarted cannot know what had arrived.
func (cl *client) welcomed(f *wire.Welcome) {
	cl.welcome, cl.key = true, f.Resume
	for _, ref := range f.Held {
		if !cl.had[ref] && cl.life == cl.world.lives {
			violate("a resumed session has its tasks", "%s never had %v", cl.name, ref)
		}
		cl.inHand = append(cl.inHand, held{ref: ref, answered: cl.said[ref]})
	}
}

func (cl *client) task(f *wire.TaskFrame) {
	if f.Seq != cl.lastSeq+1 {
		violate("task frames are numbered", "%d after %d", f.Seq, cl.lastSeq)
	}
	cl.lastSeq = f.Seq
	if cl.stopped {
		violate("no task comes behind the ok to a window of 0", "%s got %v", cl.name, f.Task.ID)
	}
	if f.Task.TenantID != cl.tenant {
		violate("no task of another tenant", "%s got a task of %s", cl.name, f.Task.TenantID)
	}
	t := cl.world.model.tasks[f.Task.ID]
	if t == nil || t.payload != string(f.Task.Payload) || f.Task.Labels != labelsOf(f.Task.Payload) {
		violate("a task comes out as it went in", "%s", f.Task.Payload)
	}
	ref := wire.TaskRef{TaskID: f.Task.ID, Token: f.Token}
	cl.had[ref] = true
	cl.inHand = append(cl.inHand, held{ref: ref})
	unanswered := 0
	for _, h := range cl.inHand {
		if !h.answered && !cl.world.model.answered[h.ref.Token] {
			unanswered++
		}
	}
	if unanswered > cl.most {
		violate("credit adds up", "%s has %d tasks and never had a window above %d", cl.name, unanswered, cl.most)
	}
	cl.world.overhear(ref)
}

// answered takes the answer to a request.
func (cl *client) answered(ref wire.Ref, ok *wire.OK, refusal *wire.Error) {
	sent, known := cl.conn.sent[ref.Value]
	if !known {
		violate("a request is answered once", "%s got an answer to %d", cl.name, ref.Value)
	}
	delete(cl.conn.sent, ref.Value)
	if refusal != nil {
		return
	}
	cl.stopped = cl.stopped || ref.Value == cl.stopping
	switch f := sent.frame.(type) {
	case *wire.Enqueue:
		cl.world.ledger.accepted(ok.TaskID, string(f.Payload))
	case *wire.Cancel:
		cl.world.completed(f.TaskID, wire.StatusCancelled, "")
	case *wire.Result:
		cl.world.completed(f.TaskID, f.Status, fmt.Sprintf("%s%s", f.ResultRequest.Result, f.Error))
	}
}
