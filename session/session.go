package session

import (
	"context"
	"math"
	"sync"

	"github.com/lxzan/gws"

	"codeq/actor"
	"codeq/internal/auth"
	"codeq/internal/socket"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/shardactor"
	"codeq/wire"
)

// session is one socket with its conversation and its two goroutines, reader and writer.
type session struct {
	// Set before the goroutines start.
	registry *Registry
	socket   *socket.Socket
	conn     *gws.Conn
	upgrade
	box    *mailbox.Mailbox[[]shard.Effect]
	writer *actor.Actor
	ctx    context.Context
	cancel context.CancelFunc

	// wake is the only control message of the writer: it sends what is in the outbox.
	wake mailbox.Slot[[]shard.Effect]

	named

	mu sync.Mutex
	// mayRead is signalled when the reader, which waits until answers have left, must check
	// again.
	mayRead  *sync.Cond
	talk     *Conversation
	consumer *shardactor.Consumer
	waiting
	progress

	// holding is the payload that shards granted and the client has not taken.
	holding holding

	// Owned by the reader: whether gws is calling one of our handlers, and the close code of
	// the socket.
	inHandler bool
	endedWith uint16
	writing
}

// named says which session it is, by the registry, whose lock guards it.
type named struct {
	// id is zero before the hello.
	id wire.SessionID
	// of is whose session it is once it is open.
	of subject
}

// upgrade is what the request for the session said.
type upgrade struct {
	// header is its principal, nil without a credential in it.
	header *auth.Principal
	// tenant is the one that it names, "" for none: credentials of hellos act for it.
	tenant string
}

// writing is owned by the writer: the frames that it has fetched, the buffer of the message that
// it encodes, and whether this round has written a ping.
type writing struct {
	sending []Outgoing
	buffer  []byte
	pinged  bool
}

// waiting is what the writer has not fetched yet. The lock of the session guards it.
type waiting struct {
	outbox  []Outgoing
	ping    []byte
	pong    []byte
	closing *Closing
	// sleepsUntilMs is the deadline until which the writer sleeps; 0 is for ever.
	sleepsUntilMs int64
}

func (w *waiting) any() bool {
	return len(w.outbox) > 0 || w.ping != nil || w.pong != nil || w.closing != nil
}

// progress is how far the client has read and sent. The lock of the session guards it.
type progress struct {
	// pingEnd is how many bytes had been written after the last ping, math.MaxInt64 until it is
	// written. takenBytes is what the client had taken at lookedAtMs; see pingState.
	pingEnd    int64
	takenBytes int64
	lookedAtMs int64
	// heardBytes is what the client had sent at heardAtMs; see hears.
	heardBytes int64
	heardAtMs  int64
}

// effectLimits bound the effects that the writer has not read. The window, the bytes of the
// consumer and the bound of unanswered requests keep them far below; reaching the bound is a
// fault of the server and ends the session.
var effectLimits = mailbox.Limits{Messages: 1 << 20, Bytes: 1 << 30}

func newSession(r *Registry, conn *socket.Socket, header *auth.Principal) *session {
	s := &session{
		registry: r, socket: conn, upgrade: upgrade{header: header},
		box: mailbox.New[[]shard.Effect](effectLimits),
	}
	conn.Pace.Goes, s.lookedAtMs, s.heardAtMs = s.keepsWriting, r.o.NowMs(), r.o.NowMs()
	s.mayRead, s.endedWith = sync.NewCond(&s.mu), closeBroken
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.talk = NewConversation(Facts{
		Router: r.o.Engine, Sink: s, Version: r.o.Version, Durability: r.o.Durability,
		PingSeconds: r.o.PingSeconds, Leader: r.o.Leader,
	}, r.o.NowMs())
	return s
}

// Deliver implements shard.Sink: the writer gets the effects. It does not block. After the
// end of the session the effects are dropped.
func (s *session) Deliver(effects []shard.Effect) {
	s.registry.holds(s, grantedBytes(effects))
	if s.box.Push([][]shard.Effect{effects}, 0, mailbox.ClassKeep) == mailbox.Full {
		s.registry.o.Log.Error().Msg("session: too many effects wait for one session; it is closed")
		s.socket.Cut()
	}
}

// step steps the conversation and does its actions. s.mu is held, so the posts of one session
// reach a shard in the order of its steps, and nothing is posted after the end of its
// consumer.
func (s *session) step(e Event) {
	a := s.talk.Step(s.registry.o.NowMs(), e)
	if a.Resume != nil {
		s.consumer.Resume(*a.Resume)
	}
	if a.InFlight > 0 {
		s.consumer.Hold(a.InFlight)
	}
	if a.SetsWindow {
		s.consumer.SetWindow(a.Window)
	}
	if a.Barrier != nil {
		s.consumer.Drain(*a.Barrier)
	}
	for _, p := range a.Posts {
		verdict := s.registry.o.Engine.Post(p.Shard, p.Messages, p.Bytes, p.Class)
		if verdict != mailbox.Accepted {
			s.step(&Unposted{Post: p, Verdict: verdict})
		}
	}
	if a.Credit > 0 {
		s.consumer.Return(a.Credit)
	}
	if a.WrittenBytes > 0 {
		s.registry.holds(s, -int64(a.WrittenBytes))
	}
	if a.TakenBytes > 0 {
		s.consumer.Taken(a.TakenBytes, a.Bound)
	}
	if a.CloseConsumer {
		s.consumer.Close(a.ConsumerCloseCode)
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
		s.registry.release(s)
		s.cancel()
	}
	if s.talk.Over() || s.talk.MayContinue() {
		s.mayRead.Broadcast()
	}
}

// happened steps the conversation and wakes the writer. s.mu is not held.
func (s *session) happened(e Event) {
	s.mu.Lock()
	s.step(e)
	s.wakeWriter()
	s.mu.Unlock()
}

// wakeWriter wakes the writer if something waits for it, or if it sleeps beyond the deadline of
// the conversation: most messages of a client are answered by effects, which wake it. s.mu is
// held.
func (s *session) wakeWriter() {
	at := s.talk.DeadlineMs()
	if !s.talk.Over() && !s.waiting.any() && (at == 0 || s.sleepsUntilMs != 0 && s.sleepsUntilMs <= at) {
		return
	}
	// Closed: the writer ends and needs no waking.
	_ = s.box.PushSlot(&s.wake, nil, nil)
}
