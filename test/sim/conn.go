package sim

import (
	"slices"
	"strconv"

	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/session"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// packet is one WebSocket message under way.
type packet struct {
	kind packetKind
	data []byte
}

type packetKind int

const (
	textPacket packetKind = iota
	pingPacket
	pongPacket
	closePacket
)

// conn is one socket with the server's half of the session on it: a production
// Conversation and, around it, what reader and writer do.
type conn struct {
	world    *world
	number   int
	client   *client
	talk     *session.Conversation
	consumer *shardactor.Consumer
	known    *consumer

	inbox   [][]shard.Effect
	outbox  []session.Outgoing
	ping    []byte
	pong    []byte
	closing *session.Closing

	// sent are the client's frames on this socket that wait for an answer.
	sent map[int64]sentFrame
	// toServer and toClient are under way, in order.
	toServer, toClient []packet
	// stuck: the client does not read, so the server cannot write. blind: the
	// client is gone and the server has not noticed.
	stuck, blind bool
	stuckAtMs    int64
	// over: the server has forgotten this socket.
	over bool
	last []uint64
	// given are the credits that came back over this socket so far, due
	// those that had to.
	given, due int
}

// connect opens a socket.
func (w *world) connect(cl *client) *conn {
	w.connected++
	c := &conn{world: w, number: w.connected, client: cl, last: make([]uint64, w.shape.shards), sent: make(map[int64]sentFrame)}
	c.talk = session.NewConversation(session.Facts{
		Router: router{w.server.engine, w}, Sink: c, Version: "sim", Durability: "fsync",
	}, w.nowMs)
	w.conns = append(w.conns, c)
	return c
}

// Deliver implements shard.Sink.
func (c *conn) Deliver(effects []shard.Effect) {
	c.world.delivered(effects, c.last)
	c.inbox = append(c.inbox, effects)
}

// step steps the conversation and carries out what follows.
func (c *conn) step(e session.Event) {
	a := c.talk.Step(c.world.nowMs, e)
	if a.Resume != nil {
		c.consumer.Resume(*a.Resume)
	}
	if a.InFlight > 0 {
		c.consumer.Hold(a.InFlight)
	}
	if a.SetsWindow {
		c.known.resize(a.Window)
		c.consumer.SetWindow(a.Window)
	}
	if a.Barrier != nil {
		c.consumer.Drain(*a.Barrier)
	}
	for _, p := range a.Posts {
		verdict := c.world.post(p.Shard, p.Messages, p.Bytes, p.Class)
		if verdict != mailbox.Accepted {
			c.world.trace.say("  shard %d is full", p.Shard)
			c.step(&session.Unposted{Post: p, Verdict: verdict})
		}
	}
	if a.Credit > 0 {
		c.given += a.Credit
		c.consumer.Return(a.Credit)
	}
	if a.TakenBytes > 0 {
		c.world.model.hasTaken(c.known, a.TakenBytes, a.Bound)
		c.consumer.Taken(a.TakenBytes, a.Bound)
	}
	if a.CloseConsumer && c.consumer != nil {
		c.known.closed = true
		c.consumer.Close(a.ConsumerCloseCode)
	}
	c.outbox = append(c.outbox, a.Frames...)
	for _, o := range a.Frames {
		c.answered(o.Frame)
		c.welcomed(o.Frame)
	}
	if a.Pong != nil {
		c.pong = a.Pong
	}
	if a.Ping != nil {
		c.ping = a.Ping
	}
	if a.Close != nil {
		c.closing = a.Close
	}
}

// answered notes that the answer to a result is queued, which returns the credit of the
// delivery.
func (c *conn) answered(f wire.ServerFrame) {
	var ref wire.Ref
	switch f := f.(type) {
	case *wire.OK:
		ref = f.Ref
	case *wire.ErrorFrame:
		ref = f.Ref
	}
	if sent, ok := c.sent[ref.Value]; ref.Present && ok && c.known != nil && sent.ends() && c.isFirst(ref.Value, sent.task) {
		c.comesBack(sent.task.Token)
	}
}

// isFirst says whether no earlier frame that ends a delivery waits for its
// answer: the credit comes back with that one.
func (c *conn) isFirst(ref int64, task wire.TaskRef) bool {
	for other, sent := range c.sent {
		if other < ref && sent.ends() && sent.task == task {
			return false
		}
	}
	return true
}

// busy says that the server could do something for this socket at once.
func (c *conn) busy() bool {
	return len(c.inbox) > 0 || c.timerDue() || c.maySend() || c.talk.Needs() == session.NeedAnswers && c.talk.MayContinue()
}

func (c *conn) timerDue() bool {
	at := c.talk.DeadlineMs()
	return at != 0 && at <= c.world.nowMs
}

func (c *conn) maySend() bool {
	return !c.stuck && (len(c.outbox) > 0 || c.ping != nil || c.pong != nil || c.closing != nil)
}

// work is what the writer does when it is awake.
func (c *conn) work() {
	if c.over {
		return
	}
	inbox := c.inbox
	c.inbox = nil
	for _, effects := range inbox {
		c.step(&session.Effects{List: effects})
		c.answeredElsewhere(effects)
		c.gaveBack()
	}
	if c.timerDue() {
		c.world.trace.say("  timer of socket %d", c.number)
		c.step(&session.Timer{})
	}
	if c.talk.Needs() == session.NeedAnswers && c.talk.MayContinue() {
		c.step(&session.Continue{})
		c.needs()
	}
	if c.stuck {
		c.writeTimeout()
		return
	}
	for c.maySend() && c.send() {
	}
}

// writeTimeout gives a socket up that takes nothing for ten seconds.
func (c *conn) writeTimeout() {
	if (len(c.outbox) > 0 || c.ping != nil) && c.world.nowMs >= c.stuckAtMs+10_000 {
		c.world.trace.say("  write timeout of socket %d", c.number)
		c.end()
	}
}

// send puts the next message on its way and reports whether there may be more.
func (c *conn) send() bool {
	if c.talk.Over() {
		c.outbox = slices.DeleteFunc(c.outbox, func(o session.Outgoing) bool {
			_, isTask := o.Frame.(*wire.TaskFrame)
			return isTask
		})
	}
	if c.pong != nil {
		c.push(packet{pongPacket, c.pong})
		c.pong = nil
	}
	if c.ping != nil {
		c.push(packet{pingPacket, c.ping})
		c.ping = nil
	}
	if len(c.outbox) > 0 {
		frames := c.outbox
		c.outbox = nil
		data := []byte{'['}
		for i, o := range frames {
			if i > 0 {
				data = append(data, ',')
			}
			data = wire.AppendServerFrame(data, o.Frame)
		}
		c.push(packet{textPacket, append(data, ']')})
		c.step(&session.Written{Frames: frames})
		return true
	}
	if c.closing != nil {
		c.push(packet{closePacket, strconv.AppendUint(nil, uint64(c.closing.Code), 10)})
		c.closing = nil
		c.end()
	}
	return false
}

func (c *conn) push(p packet) {
	if !c.blind {
		c.toClient = append(c.toClient, p)
	}
}

// read lets the server take the next message, if it reads at all.
func (c *conn) read() {
	if c.over || len(c.toServer) == 0 || c.talk.Needs() != session.NeedNothing || c.talk.Over() {
		return
	}
	p := c.toServer[0]
	c.toServer = c.toServer[1:]
	switch p.kind {
	case textPacket:
		c.world.trace.say("  socket %d says %s", c.number, p.data)
		c.step(&session.ClientMessage{Data: p.data})
		c.needs()
		c.gaveBack()
	case pingPacket:
		c.step(&session.Ping{Payload: p.data})
	case pongPacket:
		c.step(&session.Pong{Payload: p.data})
	case closePacket:
		c.end()
	}
}

// needs gives the conversation what it waits for.
func (c *conn) needs() {
	for c.talk.Needs() == session.NeedPrincipal {
		principal := &auth.Principal{Tenant: c.client.tenant, Subject: c.client.subject, Commands: c.client.allowed}
		if c.talk.Open() {
			c.step(&session.Admitted{Principal: principal})
			continue
		}
		id, resumed := c.session(c.talk.Asking().Resume)
		c.consumer = c.world.server.engine.NewConsumer(shardactor.ConsumerOptions{
			ID: id, Tenant: principal.Tenant, Subject: principal.Subject, WorkerID: c.client.name, Sink: c,
		})
		c.known = c.world.model.connected(c.consumer)
		c.step(&session.Admitted{Principal: principal, ID: id, Consumer: c.consumer.Consumer, Key: id.String(), Resumed: resumed})
	}
}

// session is the session of a socket: the one it has the key of, whose older
// socket ends with that, or a new one. Clients here do not forge keys.
func (c *conn) session(key string) (id wire.SessionID, resumed bool) {
	w := c.world
	if key != "" {
		if id, resumed = wire.ParseSessionID(key); !resumed {
			violate("a key is what the welcome said", "%q", key)
		}
		if older := w.newest[id]; older != nil {
			w.trace.say("  socket %d takes over from %d", c.number, older.number)
			w.replaced = append(w.replaced, older)
		}
		if w.chance.oneIn(2) {
			w.endReplaced()
		}
	} else {
		var random [10]byte
		random[9], random[8], random[7] = byte(c.number), byte(c.number>>8), byte(c.number>>16)
		id = wire.SessionID(wire.NewUUIDv7(w.nowMs, random))
	}
	w.newest[id] = c
	return id, resumed
}

// endReplaced ends the sockets that newer ones have replaced. Until somebody
// does, shards hear of the newer ones and hand tasks out over them.
func (w *world) endReplaced() {
	for _, c := range w.replaced {
		c.step(&session.Replaced{})
	}
	w.replaced = w.replaced[:0]
}

// welcomed notes what is in flight to a resumed session: each task uses a credit.
func (c *conn) welcomed(f wire.ServerFrame) {
	welcome, ok := f.(*wire.Welcome)
	if !ok {
		return
	}
	for _, ref := range welcome.Held {
		c.known.out[ref.Token] = true
	}
}

// end is the end of the socket as the server sees it.
func (c *conn) end() {
	c.step(&session.SocketEnded{})
	c.toServer = nil
	c.world.forget(c)
}

// serverDied leaves the client with what was already under way to it.
func (c *conn) serverDied() {
	c.toServer = nil
	c.world.forget(c)
}

// forget takes a socket out of those the server knows. The client learns of it
// once it has read what is under way.
func (w *world) forget(c *conn) {
	if c.over {
		return
	}
	c.over = true
	if c.consumer != nil && w.newest[c.consumer.ID] == c {
		delete(w.newest, c.consumer.ID)
	}
	if i := slices.Index(w.conns, c); i >= 0 {
		w.conns = slices.Delete(w.conns, i, i+1)
	}
	if c.client.conn == c && !c.blind {
		c.toClient = append(c.toClient, packet{kind: closePacket})
	}
}
