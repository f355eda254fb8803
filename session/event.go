package session

import (
	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// Event is one thing that happened to a conversation. The set is closed: the
// types of this file.
type Event interface{ event() }

// ClientMessage is a text message of the client. The conversation owns Data
// from now on.
type ClientMessage struct {
	Data []byte
}

// Continue lets the conversation go on with frames it had to put off; see
// Conversation.Needs.
type Continue struct{}

// Admitted answers NeedPrincipal: the credential is good. The first one
// carries the id of the session, the seat of this socket and the key by which
// the session may be resumed; later ones renew.
type Admitted struct {
	Principal *auth.Principal
	ID        wire.SessionID
	Seat      *shard.Seat
	Key       string
	// Resumed: the session was here before, on another socket.
	Resumed bool
}

// Denied answers NeedPrincipal: the credential is not good.
type Denied struct {
	Err *wire.Error
}

// Standing tells what the credential of the session stands for now; nil when
// it was taken back.
type Standing struct {
	Principal *auth.Principal
}

// Effects are what shards delivered, in order.
type Effects struct {
	List []shard.Effect
}

// Unposted returns a post that a shard did not take.
type Unposted struct {
	Post    Post
	Verdict mailbox.Verdict
}

// Written tells that frames left the outbox, in order.
type Written struct {
	Frames []Outgoing
}

// Pong is a pong of the client.
type Pong struct {
	Payload []byte
}

// Ping is a ping of the client.
type Ping struct {
	Payload []byte
}

// Violation is a message the protocol does not know, such as a binary one.
type Violation struct {
	Err *wire.Error
}

// Timer tells that DeadlineMs has come, and where the last byte of the last ping
// is. Hears says that something comes from the client that is not whole yet, fast
// enough: its pong stands behind that.
type Timer struct {
	Ping  PingState
	Hears bool
}

// PingState says whether the last byte of a ping has reached the client.
type PingState int

const (
	// PingArrived: it has, as far as the system says.
	PingArrived PingState = iota
	// PingWaits: it stands behind other bytes, and has not for long.
	PingWaits
	// PingMoves: it does, and the client takes those fast enough.
	PingMoves
	// PingStuck: it does, and the client takes less than it must.
	PingStuck
)

// ServerDrains tells that the server is going: what is in hand may be
// finished.
type ServerDrains struct {
	GraceSeconds int
}

// ServerCloses tells that the grace is over.
type ServerCloses struct{}

// Replaced tells that the session goes on over another socket.
type Replaced struct{}

// SocketEnded tells that the socket is gone, by whichever side, and with which
// close code, 0 if that is not known.
type SocketEnded struct{ Code uint16 }

func (*ClientMessage) event() {}
func (*Continue) event()      {}
func (*Admitted) event()      {}
func (*Denied) event()        {}
func (*Standing) event()      {}
func (*Effects) event()       {}
func (*Unposted) event()      {}
func (*Written) event()       {}
func (*Pong) event()          {}
func (*Ping) event()          {}
func (*Violation) event()     {}
func (*Timer) event()         {}
func (*ServerDrains) event()  {}
func (*ServerCloses) event()  {}
func (*Replaced) event()      {}
func (*SocketEnded) event()   {}
