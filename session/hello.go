package session

import (
	"codeq/shard"
	"codeq/wire"
)

// clientMessage steps the conversation by the frames of one message.
func (c *Conversation) clientMessage(data []byte) {
	frames, violation := wire.ParseClientMessage(data)
	if violation != nil {
		c.violated(violation)
		return
	}
	c.waitingFrames = frames
	c.proceed()
}

// proceed steps the conversation by the waiting frames until none is left or it needs
// something first.
func (c *Conversation) proceed() {
	if c.full {
		c.full = false
		c.clock.resetMissed()
	}
	for len(c.waitingFrames) > 0 && c.asking == nil && c.greeting == nil && !c.full && !c.over {
		f := c.waitingFrames[0]
		c.waitingFrames[0] = nil
		c.waitingFrames = c.waitingFrames[1:]
		c.frame(f)
		c.full = c.atLimit()
	}
}

// frame steps the conversation by one frame of the client.
func (c *Conversation) frame(f wire.ClientFrame) {
	if c.principal == nil {
		c.firstFrame(f)
		return
	}
	if !c.permitted(f) {
		return
	}
	switch f := f.(type) {
	case *wire.Hello:
		c.helloAgain(f)
	case *wire.Subscribe:
		c.subscribe(f)
	case *wire.Window:
		c.window(f)
	case *wire.Drain:
		c.drain(f)
	case *wire.Received:
		c.received(f)
	case *wire.Result:
		c.result(f)
	case *wire.Nack:
		c.endDelivery(f.Ref, f.TaskRef, &shard.End{How: shard.Nack, NackRequest: f.NackRequest})
	case *wire.Abandon:
		c.endDelivery(f.Ref, f.TaskRef, &shard.End{How: shard.Abandon})
	case *wire.Release:
		c.endDelivery(f.Ref, f.TaskRef, &shard.End{How: shard.Release, ReleaseRequest: f.ReleaseRequest})
	case *wire.Heartbeat:
		c.heartbeat(f)
	case *wire.Progress:
		c.report(f.Ref, f.TaskRef, &shard.Report{Progress: &f.ProgressRequest}, len(f.Note)+len(f.Data))
	case *wire.Output:
		c.report(f.Ref, f.TaskRef, &shard.Report{Output: &f.OutputRequest}, len(f.Text))
	case *wire.Enqueue:
		c.enqueue(f)
	case *wire.Cancel:
		c.cancel(f)
	case *wire.Unknown:
		r := c.begin(f.Ref, messageBytes)
		r.task.TaskID = f.TaskID
		c.refuse(r, f.Err)
	}
}

// firstFrame must be a good hello; anything else ends the session.
func (c *Conversation) firstFrame(f wire.ClientFrame) {
	switch f := f.(type) {
	case *wire.Hello:
		c.asking = f
	case *wire.Unknown:
		c.send(&wire.ErrorFrame{Ref: f.Ref, TaskID: f.TaskID, Err: f.Err})
		c.closeSocket(CloseProtocol, "the first frame must be a good hello")
	default:
		c.send(&wire.ErrorFrame{Err: wire.Refuse(wire.CodeInvalidArgument,
			"the first frame of a session must be hello")})
		c.closeSocket(CloseProtocol, "the first frame must be a good hello")
	}
}

// helloAgain renews the credential of an open session.
func (c *Conversation) helloAgain(f *wire.Hello) {
	if f.Token == "" {
		c.refuse(c.begin(f.Ref, messageBytes), wire.Refuse(wire.CodeInvalidArgument,
			"the session is open; a second hello only renews its credential and must carry a token"))
		return
	}
	c.asking = f
}

func (c *Conversation) admitted(e *Admitted) {
	f := c.asking
	c.asking = nil
	if c.principal == nil {
		c.begins(f, e)
	} else {
		c.renewed(f, e.Principal)
	}
	c.proceed()
}

// begins opens the session. A resumed session gets its welcome once every shard has sent its
// deliveries.
func (c *Conversation) begins(f *wire.Hello, e *Admitted) {
	c.principal, c.consumer = e.Principal, e.Consumer
	c.clock.opened(c.nowMs, e.Principal.ExpiresAtMs)
	welcome := &wire.Welcome{
		SessionID:          e.ID,
		Resume:             e.Key,
		WorkerID:           f.WorkerID,
		TenantID:           e.Principal.Tenant,
		PingSeconds:        c.facts.pingSeconds(),
		ResumeGraceSeconds: wire.ResumeGraceSeconds,
		MaxMessageBytes:    wire.MaxClientMessageBytes,
		MaxUnanswered:      wire.MaxUnansweredRequests,
		Durability:         c.facts.Durability,
		ServerTimeMs:       c.nowMs,
		Version:            c.facts.Version,
		Leader:             c.facts.Leader,
		Features:           []string{featureCancel},
	}
	if e.Resumed {
		c.resumes(welcome)
		return
	}
	c.send(welcome)
}

func (c *Conversation) denied(err *wire.Error) {
	f := c.asking
	c.asking = nil
	if c.principal != nil {
		c.refuse(c.begin(f.Ref, messageBytes), err)
		c.proceed()
		return
	}
	c.send(&wire.ErrorFrame{Ref: f.Ref, Err: err})
	switch err.Code {
	case wire.CodeUnauthenticated, wire.CodeForbidden:
		c.closeSocket(CloseCredential, "the credential is not good")
	case wire.CodeOverloaded, wire.CodeRateLimited:
		c.closeSocket(CloseTooMany, "too many sessions are open")
	default:
		c.closeSocket(CloseRestart, "the credential could not be checked; connect again")
	}
}

// violated ends the session after a message that breaks the protocol.
func (c *Conversation) violated(err *wire.Error) {
	c.send(&wire.ErrorFrame{Err: err})
	c.closeSocket(CloseProtocol, "not a message of this protocol")
}

// serverDrains tells the client that the server stops. A client without a good hello has
// nothing to finish.
func (c *Conversation) serverDrains(graceSeconds int) {
	if c.draining {
		return
	}
	c.draining = true
	if c.principal == nil || c.greeting != nil {
		c.closeSocket(CloseRestart, "the server restarts; connect again")
		return
	}
	c.setWindow(0)
	c.send(&wire.Draining{Reason: "the server shuts down", GraceSeconds: graceSeconds})
}

// adminDrains tells the client that it gets no more tasks. The session goes on, so that the
// client does not come back for tasks over another socket.
func (c *Conversation) adminDrains() {
	if c.noTasks() != nil {
		return
	}
	c.resting = true
	c.setWindow(0)
	c.send(&wire.Draining{Reason: "an admin drains this session"})
}

// leaveWhenIdle closes the session of a server that stops once no request is unanswered and no
// task is in flight.
func (c *Conversation) leaveWhenIdle() {
	if c.asking == nil && len(c.waitingFrames) == 0 && c.unanswered == 0 && c.tasks.inFlight() == 0 {
		c.closeSocket(CloseRestart, "the server restarts; connect again")
	}
}
