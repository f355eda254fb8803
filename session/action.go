package session

import (
	"codeq/mailbox"
	"codeq/shard"
	"codeq/wire"
)

// Close codes of the protocol.
const (
	CloseProtocol   = 4400 // socket.CloseProtocol says it too
	CloseCredential = 4401
	CloseIdle       = 4408
	CloseReplaced   = 4409
	CloseTooMany    = 4429
	CloseRestart    = 1012
	// closeBroken is the code of a socket that ended without a close frame.
	closeBroken = 1006
)

// Actions are what the caller must do after one step, in the order of the fields. Only a post
// can fail, which comes back as Unposted.
type Actions struct {
	// Resume makes the consumer ask every shard for the deliveries of the session, with this
	// asker; nil asks nothing.
	Resume *shard.Asker
	// InFlight is how many deliveries of a resumed session take credit.
	InFlight int
	// Window is the new window of the consumer, if SetsWindow.
	Window     int
	SetsWindow bool
	// Barrier makes the consumer ask every shard for an answer after all its grants so far,
	// with this asker; nil asks nothing.
	Barrier *shard.Asker
	// Posts are pushes into mailboxes, at most one for each shard and class.
	Posts []Post
	// Credit is how many credits come back to the consumer.
	Credit int
	// WrittenBytes is the payload that has left the outbox.
	WrittenBytes int
	// TakenBytes is the payload that the client has confirmed; with it comes Bound, the
	// bytes that may be unconfirmed from now on.
	TakenBytes int
	Bound      int
	// Frames go to the end of the outbox.
	Frames []Outgoing
	// Pong and Ping are payloads of control frames that are sent before the next frame; nil is
	// none. A newer one replaces one that was not sent.
	Pong []byte
	Ping []byte
	// CloseConsumer closes the consumer, once for a session that has one. ConsumerCloseCode is
	// the close code of its socket, 0 if it is not known.
	CloseConsumer     bool
	ConsumerCloseCode uint16
	// Close closes the socket after the frames in the outbox, without the task frames.
	Close *Closing
}

// Closing is how the server ends a socket.
type Closing struct {
	Code   uint16
	Reason string
}

// Post is one push into the mailbox of a shard.
type Post struct {
	Shard    int
	Class    mailbox.Class
	Messages []shard.Message
	Bytes    int
}

// Outgoing is a frame in the outbox, with the bytes that it frees when it has left.
type Outgoing struct {
	Frame wire.ServerFrame
	// payloadBytes are the payload of a task frame.
	payloadBytes int
	// answers says that the frame answers a request, which has requestBytes.
	answers      bool
	requestBytes int
}

// messageBytes is the estimated size of a message in memory without its variable parts.
const messageBytes = 512

// post adds a message to the post of a shard and class in this step.
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

// send puts a frame into the outbox that answers no request.
func (c *Conversation) send(f wire.ServerFrame) {
	c.out.Frames = append(c.out.Frames, Outgoing{Frame: f})
}

func (c *Conversation) setWindow(size int) {
	c.out.Window, c.out.SetsWindow = size, true
	c.profile.window = size
}

// closeSocket closes an open socket with the code, which ends the conversation.
func (c *Conversation) closeSocket(code uint16, reason string) {
	c.socketGone(code)
	c.out.Close = &Closing{Code: code, Reason: reason}
}

// socketGone ends the conversation when its socket has ended. Later events have no effect.
func (c *Conversation) socketGone(code uint16) {
	c.over = true
	c.out.ConsumerCloseCode = code
	c.waitingFrames = nil
	c.out.CloseConsumer = c.principal != nil
}
