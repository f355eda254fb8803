package session

import (
	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// Event is one thing that happened to a session. The set is closed: the types of this file.
type Event interface{ event() }

// ClientMessage is a text message of the client. Data belongs to the conversation.
type ClientMessage struct{ Data []byte }

// Continue continues with the frames that wait; see Conversation.Needs.
type Continue struct{}

// Admitted answers NeedPrincipal: the credential is good. The first one has the id of the
// session, the consumer of this socket and the key by which the session can be resumed;
// later ones renew the credential.
type Admitted struct {
	Principal *auth.Principal
	ID        wire.SessionID
	Consumer  *shard.Consumer
	Key       string
	// Resumed: the session had another socket before.
	Resumed bool
}

// denied answers NeedPrincipal: the credential is refused.
type denied struct{ Err *wire.Error }

// recheck has the principal that the credential stands for now; nil if it was revoked.
type recheck struct{ Principal *auth.Principal }

// Effects are effects of shards, in order.
type Effects struct{ List []shard.Effect }

// Unposted is a post that a shard did not take.
type Unposted struct {
	Post    Post
	Verdict mailbox.Verdict
}

// Written are frames that have left the outbox, in order.
type Written struct{ Frames []Outgoing }

// Pong is a pong of the client.
type Pong struct{ Payload []byte }

// Ping is a ping of the client.
type Ping struct{ Payload []byte }

// violation is a message that the protocol does not have, such as a binary one.
type violation struct{ Err *wire.Error }

// Timer says that DeadlineMs has come, and where the last byte of the last ping is. Hears says
// that the client is sending a large message fast enough; its pong comes after that.
type Timer struct {
	Ping  PingState
	Hears bool
}

// PingState is where the last byte of a ping is.
type PingState int

const (
	// PingArrived: at the client, as far as the system knows.
	PingArrived PingState = iota
	// PingWaits: behind other bytes, and not for long.
	PingWaits
	// PingMoves: behind other bytes, which the client takes fast enough.
	PingMoves
	// PingStuck: behind other bytes, of which the client takes less than it must.
	PingStuck
)

// serverDrains says that the server begins to stop: the client may finish its tasks.
type serverDrains struct{ GraceSeconds int }

// serverCloses says that the grace is over.
type serverCloses struct{}

// adminDrains says that an admin wants the client to get no more tasks over this socket.
type adminDrains struct{}

// adminCloses says that an admin ends this socket.
type adminCloses struct{}

// Replaced says that the session goes on over another socket.
type Replaced struct{}

// SocketEnded says that the socket has ended, with its close code; 0 if it is not known.
type SocketEnded struct{ Code uint16 }

func (*ClientMessage) event() {}
func (*Continue) event()      {}
func (*Admitted) event()      {}
func (*denied) event()        {}
func (*recheck) event()       {}
func (*Effects) event()       {}
func (*Unposted) event()      {}
func (*Written) event()       {}
func (*Pong) event()          {}
func (*Ping) event()          {}
func (*violation) event()     {}
func (*Timer) event()         {}
func (*serverDrains) event()  {}
func (*serverCloses) event()  {}
func (*adminDrains) event()   {}
func (*adminCloses) event()   {}
func (*Replaced) event()      {}
func (*SocketEnded) event()   {}
