package session

import (
	"context"
	"math"
	"sync"

	"github.com/lxzan/gws"

	"codeq/actor"
	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// session is a conversation with a socket around it.
type session struct {
	// Set before the goroutines start.
	registry *Registry
	socket   *socket
	conn     *gws.Conn
	// header is who the Authorization header of the upgrade stands for, nil
	// without one.
	header *auth.Principal
	box    *mailbox.Mailbox[[]shard.Effect]
	writer *actor.Actor
	ctx    context.Context
	cancel context.CancelFunc

	// wake is the writer's only control message: look at the outbox.
	wake mailbox.Slot[[]shard.Effect]

	// id is of the session, zero before the hello. The registry's lock guards it.
	id wire.SessionID

	mu sync.Mutex
	// mayRead is signalled when the reader, which waits for answers to leave,
	// shall look again.
	mayRead *sync.Cond
	talk    *Conversation
	seat    *shardactor.Seat
	outbox  []Outgoing
	ping    []byte
	pong    []byte
	closing *Closing

	// holding is what shards granted and the client has not taken.
	holding holding

	// Owned by the reader: a call out of gws into our handlers is under way, and
	// what the socket ended with.
	inHandler bool
	endedWith uint16
	// Owned by the writer.
	sending []Outgoing
	buffer  []byte

	// pingEnd is how much had been written when the last ping had, a number above
	// all while it has not. takenBytes is what the client had taken at lookedAtMs;
	// see pingState. The lock guards them.
	pingEnd    int64
	takenBytes int64
	lookedAtMs int64
	// heardBytes is what had come from the client at heardAtMs; see hears.
	heardBytes int64
	heardAtMs  int64
}

// effectLimits bound what shards delivered and the writer has not looked at.
// The window, the seat's bytes and the bound of unanswered requests keep it far
// below; reaching it is a fault of the server, which costs the session.
var effectLimits = mailbox.Limits{Messages: 1 << 20, Bytes: 1 << 30}

func newSession(r *Registry, socket *socket, header *auth.Principal) *session {
	s := &session{
		registry: r, socket: socket, header: header,
		box: mailbox.New[[]shard.Effect](effectLimits),
	}
	socket.pace.Goes, s.lookedAtMs, s.heardAtMs = s.goesOn, r.o.NowMs(), r.o.NowMs()
	s.mayRead, s.endedWith = sync.NewCond(&s.mu), closeBroken
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.talk = NewConversation(Facts{
		Router: r.o.Engine, Sink: s, Version: r.o.Version, Durability: r.o.Durability,
		PingSeconds: r.o.PingSeconds,
	}, r.o.NowMs())
	return s
}

// Deliver implements shard.Sink: the writer gets the effects. It never
// blocks. After the session has ended they are dropped.
func (s *session) Deliver(effects []shard.Effect) {
	s.registry.holds(s, grantedBytes(effects))
	if s.box.Push([][]shard.Effect{effects}, 0, mailbox.ClassKeep) == mailbox.Full {
		s.registry.o.Log.Error().Msg("session: too many effects wait for one session; it is cut")
		s.socket.cut()
	}
}

// step steps the conversation and carries out what follows. s.mu is held; so
// posts of one session reach a shard in the order of its steps, and nothing is
// posted behind the end of its seat.
func (s *session) step(e Event) {
	a := s.talk.Step(s.registry.o.NowMs(), e)
	if a.Resume != nil {
		s.seat.Resume(*a.Resume)
	}
	if a.Hold > 0 {
		s.seat.Hold(a.Hold)
	}
	if a.SetsWindow {
		s.seat.SetWindow(a.Window)
	}
	if a.Fence != nil {
		s.seat.Fence(*a.Fence)
	}
	for _, p := range a.Posts {
		verdict := s.registry.o.Engine.Post(p.Shard, p.Messages, p.Bytes, p.Class)
		if verdict != mailbox.Accepted {
			s.step(&Unposted{Post: p, Verdict: verdict})
		}
	}
	if a.Give > 0 {
		s.seat.Give(a.Give)
	}
	if a.WrittenBytes > 0 {
		s.registry.holds(s, -int64(a.WrittenBytes))
	}
	if a.TakenBytes > 0 {
		s.seat.Taken(a.TakenBytes, a.Bound)
	}
	if a.CloseSeat {
		s.seat.Close(a.CloseCode)
	}
	s.outbox = append(s.outbox, a.Frames...)
	if a.Pong != nil {
		s.pong = a.Pong
	}
	if a.Ping != nil {
		s.ping, s.pingEnd = a.Ping, math.MaxInt64
	}
	if a.Close != nil {
		s.closing = a.Close
	}
	if s.talk.Over() {
		s.registry.ended(s)
		s.registry.gaveBack(s)
		s.cancel()
	}
	if s.talk.Over() || s.talk.MayContinue() {
		s.mayRead.Broadcast()
	}
}

// happened steps the conversation from a goroutine that does not hold s.mu and
// wakes the writer.
func (s *session) happened(e Event) {
	s.mu.Lock()
	s.step(e)
	s.mu.Unlock()
	s.wakeWriter()
}

func (s *session) wakeWriter() {
	// Closed means that the writer has ended or is about to; it needs no waking.
	_ = s.box.PushSlot(&s.wake, nil, nil)
}
