package session

import (
	"fmt"

	"codeq/internal/auth"
	"codeq/shard"
	"codeq/wire"
)

// Router finds the shards of tasks.
type Router interface {
	// Shards is the number of shards.
	Shards() int
	// ShardOf is the shard of a task.
	ShardOf(id wire.TaskID) int
	// Route draws the id of a new task and finds its shard.
	Route(tenant, command, key string) (wire.TaskID, int)
	// Enter takes what new tasks of a subject cost of the limits of its tenant.
	Enter(tenant, subject string, tasks, bytes int) (shard.Pass, *wire.Error)
}

// Facts do not change while a conversation lasts.
type Facts struct {
	Router Router
	// Sink gets the answers of shards. The caller steps the conversation by them as Effects.
	Sink       shard.Sink
	Version    string
	Durability string
	// Leader is where clients reach this node while it leads a cluster; empty for none.
	Leader string
	// PingSeconds is the time between two regular pings; 0 is
	// wire.PingSeconds.
	PingSeconds int
}

func (f *Facts) pingSeconds() int {
	if f.PingSeconds == 0 {
		return wire.PingSeconds
	}
	return f.PingSeconds
}

// Need is what a conversation needs before the next frame.
type Need int

const (
	// NeedNothing: the next message.
	NeedNothing Need = iota
	// NeedPrincipal: Admitted or Denied for the credential of Asking.
	NeedPrincipal
	// NeedAnswers: Continue, once MayContinue reports true. Too many requests are unanswered,
	// or shards have not sent the deliveries of a resumed session yet.
	NeedAnswers
)

// Conversation is one socket of a session as a value. One goroutine at a time may call its methods.
type Conversation struct {
	facts Facts
	nowMs int64
	out   Actions
	over  bool

	// principal is nil before the first good hello; asking is the hello whose credential is
	// being checked.
	principal *auth.Principal
	consumer  *shard.Consumer
	asking    *wire.Hello
	// greeting is the welcome of a session that is being resumed, until every shard has sent
	// its deliveries.
	greeting *greeting
	// subscribed are the commands of the last subscribe, nil before it.
	subscribed []string

	// waitingFrames are the frames of the client's last message that were not handled yet;
	// lastRequest is the number of the last request that was posted to shards.
	waitingFrames []wire.ClientFrame
	requests      map[shard.Ref]*request
	lastRequest   shard.Ref

	load
	barrier  drainBarrier
	tasks    deliveries
	pace     pace
	clock    clock
	draining bool
	// resting: an admin wants the client to get no more tasks over this socket.
	resting bool

	profile profile
}

// load is what the client has asked and not read the answer of. full says that the reader
// waits.
type load struct {
	unanswered      int
	unansweredBytes int
	full            bool
}

// NewConversation makes the conversation of a socket that was opened at a moment, Unix
// milliseconds.
func NewConversation(facts Facts, openedAtMs int64) *Conversation {
	return &Conversation{
		facts:    facts,
		requests: make(map[shard.Ref]*request),
		tasks:    newDeliveries(),
		clock:    clock{pingForMs: int64(facts.pingSeconds()) * 1000, helloByMs: openedAtMs + helloForMs},
		profile:  profile{openedAtMs: openedAtMs, heardAtMs: openedAtMs},
	}
}

// Step changes the conversation by one event at a moment, Unix milliseconds, and returns what
// the caller must do. The slices in the actions belong to the caller.
func (c *Conversation) Step(nowMs int64, e Event) Actions {
	c.out = Actions{}
	if c.over {
		return c.out
	}
	c.nowMs = nowMs
	c.profile.hears(nowMs, e)
	c.step(e)
	if c.draining && !c.over {
		c.leaveWhenIdle()
	}
	if taken := c.tasks.takenBytes; taken > 0 {
		c.tasks.takenBytes = 0
		c.out.TakenBytes, c.out.Bound = taken, c.pace.takes(taken, nowMs)
	}
	out := c.out
	c.out = Actions{}
	return out
}

func (c *Conversation) step(e Event) {
	switch e := e.(type) {
	case *ClientMessage:
		c.clientMessage(e.Data)
	case *Continue:
		c.proceed()
	case *Admitted:
		c.admitted(e)
	case *denied:
		c.denied(e.Err)
	case *recheck:
		c.rechecked(e.Principal)
	case *Effects:
		for _, effect := range e.List {
			c.effect(effect)
		}
	case *Unposted:
		c.unposted(e)
	case *Written:
		c.written(e.Frames)
	case *Pong:
		c.pong(e.Payload)
	case *Ping:
		// Not nil for an empty payload, which needs a pong as well.
		c.out.Pong = append([]byte{}, e.Payload...)
	case *violation:
		c.violated(e.Err)
	case *Timer:
		c.timer(e)
	case *serverDrains:
		c.serverDrains(e.GraceSeconds)
	case *serverCloses:
		c.closeSocket(CloseRestart, "the server restarts; connect again")
	case *adminDrains:
		c.adminDrains()
	case *adminCloses:
		c.closeSocket(CloseRestart, "an admin has disconnected this session; connect again")
	case *Replaced:
		c.closeSocket(CloseReplaced, "the session goes on over another socket")
	case *SocketEnded:
		c.socketGone(e.Code)
	default:
		panic(fmt.Sprintf("session: step by an unknown event %T", e))
	}
}

// Over reports that the conversation has ended; later steps do nothing.
func (c *Conversation) Over() bool { return c.over }

// Open reports that the client has said a good hello.
func (c *Conversation) Open() bool { return c.principal != nil }

// isOf reports an open session of a tenant whose client has its welcome.
func (c *Conversation) isOf(tenant string) bool {
	return c.principal != nil && c.principal.Tenant == tenant && c.greeting == nil && !c.over
}

// Asking is the hello whose credential must be checked, nil unless Needs is NeedPrincipal.
func (c *Conversation) Asking() *wire.Hello { return c.asking }

// Needs is what the conversation needs. The caller reads the next message only while it is
// NeedNothing.
func (c *Conversation) Needs() Need {
	switch {
	case c.over:
		return NeedNothing
	case c.asking != nil:
		return NeedPrincipal
	case c.full || c.greeting != nil:
		return NeedAnswers
	}
	return NeedNothing
}
