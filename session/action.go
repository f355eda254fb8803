package session

import (
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// Close codes of the protocol.
const (
	CloseProtocol   = 4400
	CloseCredential = 4401
	CloseIdle       = 4408
	CloseReplaced   = 4409
	CloseTooMany    = 4429
	CloseRestart    = 1012
	// closeBroken is how a socket ended that said no goodbye.
	closeBroken = 1006
)

// Actions is what follows from one step. They are carried out in the order of
// the fields; none of them can fail but a post, which comes back as Unposted.
type Actions struct {
	// Resume has the seat ask every shard what the session has in hand, in the
	// name of the asker; nil is nothing to ask.
	Resume *shard.Asker
	// Hold is how many units of room are out from the start.
	Hold int
	// Window is the new size of the seat's window, if SetsWindow.
	Window     int
	SetsWindow bool
	// Fence has the seat ask every shard for a word behind all that it has
	// granted, in the name of the asker; nil is nothing to ask.
	Fence *shard.Asker
	// Posts are for the mailboxes of shards, at most one per shard and class.
	Posts []Post
	// Give is how many units of room come back to the seat.
	Give int
	// WrittenBytes of payload have left the outbox.
	WrittenBytes int
	// TakenBytes of payload were confirmed by the client; Bound goes with that: how
	// much may be unconfirmed from now on.
	TakenBytes int
	Bound      int
	// Frames go to the end of the outbox.
	Frames []Outgoing
	// Pong and Ping are payloads of control frames that go out before the next
	// frame; nil is none. A newer one replaces one that still waits.
	Pong []byte
	Ping []byte
	// CloseSeat ends the seat: once in the life of a session that had one. CloseCode
	// is how its socket ended, 0 if that is not known.
	CloseSeat bool
	CloseCode uint16
	// Close ends the socket behind what the outbox holds, task frames left
	// out.
	Close *Closing
}

// Closing is how the server ends a socket.
type Closing struct {
	Code   uint16
	Reason string
}

// Post is one push into the mailbox of one shard.
type Post struct {
	Shard    int
	Class    mailbox.Class
	Messages []shard.Message
	Bytes    int
}

// Outgoing is a frame in the outbox, with what is freed when it has left.
type Outgoing struct {
	Frame wire.ServerFrame
	// payloadBytes are the seat's.
	payloadBytes int
	// answers says that the frame answers a request of requestBytes.
	answers      bool
	requestBytes int
}

// messageBytes is what a message is taken to hold in memory beside its
// variable parts.
const messageBytes = 512

// post adds a message to the one post of a shard and class in this step.
func (c *Conversation) post(shardNo int, class mailbox.Class, m shard.Message, bytes int) {
	for i := range c.out.Posts {
		p := &c.out.Posts[i]
		if p.Shard == shardNo && p.Class == class {
			p.Messages = append(p.Messages, m)
			p.Bytes += bytes
			return
		}
	}
	c.out.Posts = append(c.out.Posts, Post{
		Shard: shardNo, Class: class, Messages: []shard.Message{m}, Bytes: bytes,
	})
}

// send puts a frame that answers nobody into the outbox.
func (c *Conversation) send(f wire.ServerFrame) {
	c.out.Frames = append(c.out.Frames, Outgoing{Frame: f})
}

func (c *Conversation) setWindow(size int) {
	c.out.Window, c.out.SetsWindow = size, true
	c.profile.window = size
}

// end closes the conversation; the socket is closed with the code.
func (c *Conversation) end(code uint16, reason string) {
	c.finish(code)
	c.out.Close = &Closing{Code: code, Reason: reason}
}

// finish ends the conversation whatever the socket does. Nothing that comes
// later is looked at.
func (c *Conversation) finish(code uint16) {
	c.over = true
	c.out.CloseCode = code
	c.backlog = nil
	c.out.CloseSeat = c.principal != nil
}
