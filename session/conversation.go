package session

import (
	"fmt"

	"codeq/internal/auth"
	"codeq/shard"
	"codeq/wire"
)

// Router says where the tasks of a conversation live.
type Router interface {
	// Shards is their number.
	Shards() int
	// ShardOf is the shard that owns a task.
	ShardOf(id wire.TaskID) int
	// Route draws the id of a new task and says which shard owns it.
	Route(tenant, command, key string) (wire.TaskID, int)
}

// Facts are what a conversation is told once.
type Facts struct {
	Router Router
	// Sink gets the answers of shards; what it gets comes back as Effects.
	Sink       shard.Sink
	Version    string
	Durability string
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

// Need says what a conversation waits for before it looks at more frames.
type Need int

const (
	// NeedNothing: it takes the next message.
	NeedNothing Need = iota
	// NeedPrincipal: the credential of Asking must be judged; Admitted or
	// Denied.
	NeedPrincipal
	// NeedAnswers: too many requests are unanswered, or shards have still to say
	// what a resumed session has in hand. Continue once MayContinue says so.
	NeedAnswers
)

// Conversation is one session as a value. It is not safe for several
// goroutines; whoever steps it holds a lock or is the only one.
type Conversation struct {
	facts Facts
	nowMs int64
	out   Actions
	over  bool

	// Who speaks. principal is nil before the first good hello; asking is the
	// hello whose credential is being judged.
	principal *auth.Principal
	seat      *shard.Seat
	asking    *wire.Hello
	// greeting is the welcome of a session that is being resumed, until every
	// shard has said what it has in hand.
	greeting *greeting
	// subscribed are the commands of the last subscribe, nil before it.
	subscribed []string

	// What the client asked. backlog are frames of the last message that are
	// put off; lastRequest numbers the requests that went to shards.
	backlog     []wire.ClientFrame
	requests    map[uint64]*request
	lastRequest uint64

	// What is owed to the client. full says that the reader stands still.
	unanswered      int
	unansweredBytes int
	full            bool

	fence    fence
	tasks    deliveries
	pace     pace
	clock    clock
	draining bool

	profile profile
}

// NewConversation begins with a socket that opened at a time in Unix
// milliseconds.
func NewConversation(facts Facts, openedAtMs int64) *Conversation {
	return &Conversation{
		facts:    facts,
		requests: make(map[uint64]*request),
		tasks:    newDeliveries(),
		clock:    clock{pingForMs: int64(facts.pingSeconds()) * 1000, helloByMs: openedAtMs + helloForMs},
		profile:  profile{openedAtMs: openedAtMs, heardAtMs: openedAtMs},
	}
}

// Step changes the conversation by one event at a time in Unix milliseconds
// and returns what follows from it. The slices in the actions are the
// caller's.
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
	case *Denied:
		c.denied(e.Err)
	case *Standing:
		c.standing(e.Principal)
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
		// Not nil even for an empty payload, which is answered like any other.
		c.out.Pong = append([]byte{}, e.Payload...)
	case *Violation:
		c.violated(e.Err)
	case *Timer:
		c.timer(e)
	case *ServerDrains:
		c.serverDrains(e.GraceSeconds)
	case *ServerCloses:
		c.end(CloseRestart, "the server restarts; connect again")
	case *Replaced:
		c.end(CloseReplaced, "the session goes on over another socket")
	case *SocketEnded:
		c.finish(e.Code)
	default:
		// The set of events is closed; a new one without a case is a bug.
		panic(fmt.Sprintf("session: step by an unknown event %T", e))
	}
}

// Over reports that the conversation has ended; every later step is empty.
func (c *Conversation) Over() bool { return c.over }

// Open reports that the client has said a good hello.
func (c *Conversation) Open() bool { return c.principal != nil }

// Asking is the hello whose credential is to be judged, nil unless Needs is
// NeedPrincipal.
func (c *Conversation) Asking() *wire.Hello { return c.asking }

// Needs says what the conversation waits for before it reads on. While it is
// not NeedNothing the caller reads no further message.
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
