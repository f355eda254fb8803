package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/lxzan/gws"

	"codeq/actor"
	"codeq/internal/paced"
	"codeq/shard"
	"codeq/wire"
)

// bufferKeepBytes bounds the encoding buffer that a session keeps between messages.
const bufferKeepBytes = wire.MaxServerMessageBytes + 64<<10

// write is a round of the writer, an actor: it steps the conversation by effects and deadlines,
// and sends what waits.
func (s *session) write(batch [][]shard.Effect) time.Duration {
	s.mu.Lock()
	for _, effects := range batch {
		if effects != nil {
			s.step(&Effects{List: effects})
		}
	}
	s.mu.Unlock()
	s.socket.Hold()
	for s.sendNext() {
	}
	if s.wrote(s.socket.Release()) && s.pinged {
		s.pingWritten()
	}
	s.pinged = false
	return s.sleepFor()
}

// sleepFor runs the timer if it is due, and is the time until it is due next.
func (s *session) sleepFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runTimer() {
		return 0
	}
	s.sleepsUntilMs = s.talk.DeadlineMs()
	if s.sleepsUntilMs == 0 {
		return actor.Forever
	}
	return time.Duration(s.untilDeadlineMs()) * time.Millisecond
}

// runTimer runs the timer if it is due, and reports whether it was. s.mu is held.
func (s *session) runTimer() bool {
	if s.talk.DeadlineMs() == 0 || s.untilDeadlineMs() > 0 {
		return false
	}
	s.step(&Timer{Ping: s.pingState(), Hears: s.hears()})
	return true
}

// hears reports whether the client has sent, since the last call, at least as fast as a client
// must take. s.mu is held.
func (s *session) hears() bool {
	nowMs, read := s.registry.o.NowMs(), s.socket.ReadBytes.Load()
	least := paced.LeastBytes * (nowMs - s.heardAtMs) / paced.Window.Milliseconds()
	hears := read-s.heardBytes >= max(least, 1)
	s.heardBytes, s.heardAtMs = read, nowMs
	return hears
}

// keepsWriting runs the timer while a write takes long, and ends the write of a session that has
// ended.
func (s *session) keepsWriting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runTimer()
	return !s.talk.Over()
}

// pingState is where the last byte of the last ping is. s.mu is held.
func (s *session) pingState() PingState {
	nowMs, taken := s.registry.o.NowMs(), s.socket.Pace.Taken()
	tookMs, tookBytes := nowMs-s.lookedAtMs, taken-s.takenBytes
	if taken < s.pingEnd && tookMs < paced.Window.Milliseconds() {
		return PingWaits
	}
	s.takenBytes, s.lookedAtMs = taken, nowMs
	switch {
	case taken >= s.pingEnd:
		return PingArrived
	case tookBytes >= paced.LeastBytes*tookMs/paced.Window.Milliseconds():
		return PingMoves
	}
	return PingStuck
}

func (s *session) untilDeadlineMs() int64 {
	return s.talk.DeadlineMs() - s.registry.o.NowMs()
}

// sendNext sends the control frames that wait and one message, and reports whether there can be
// more.
func (s *session) sendNext() bool {
	t := s.next()
	if t.pong != nil && !s.wrote(s.conn.WritePong(t.pong)) {
		return false
	}
	if t.ping != nil {
		if !s.wrote(s.conn.WritePing(t.ping)) {
			return false
		}
		s.pinged = true
	}
	if len(s.sending) > 0 {
		n := s.compose()
		if !s.wrote(s.conn.WriteMessage(gws.OpcodeText, s.buffer)) {
			return false
		}
		s.written(n)
		return true
	}
	if t.closing != nil {
		// Every frame was written before, so this takes no longer than one write. The reader ends
		// when the client closes, or after lingerFor.
		_ = s.conn.WriteClose(t.closing.Code, []byte(t.closing.Reason)) // it closes the socket in any case
		return false
	}
	return false
}

// turn is what the writer sends next besides the frames in s.sending.
type turn struct {
	pong    []byte
	ping    []byte
	closing *Closing
}

// next fetches what waits. After the end of the session it is only the close frame, after all
// frames but those of tasks.
func (s *session) next() turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sending) == 0 {
		s.sending, s.outbox = s.outbox, s.sending[:0]
	}
	if s.talk.Over() {
		t := turn{closing: s.closing}
		s.closing = nil
		if t.closing == nil {
			s.sending = nil
			return t
		}
		s.sending = append(s.sending, s.outbox...)
		s.outbox = nil
		s.sending = withoutTasks(s.sending)
		if len(s.sending) > 0 {
			// The close frame is sent when these have left.
			s.closing, t.closing = t.closing, nil
		}
		return t
	}
	t := turn{pong: s.pong, ping: s.ping}
	s.pong, s.ping = nil, nil
	return t
}

func withoutTasks(frames []Outgoing) []Outgoing {
	rest := frames[:0]
	for _, o := range frames {
		if _, isTask := o.Frame.(*wire.TaskFrame); !isTask {
			rest = append(rest, o)
		}
	}
	return rest
}

// compose encodes as many frames as fit into one message, and returns how many. A frame that is
// too large gets a message of its own.
func (s *session) compose() int {
	if cap(s.buffer) > bufferKeepBytes {
		s.buffer = nil
	}
	b := append(s.buffer[:0], '[')
	n := 0
	for _, o := range s.sending {
		before := len(b)
		// A payload that does not fit is not encoded first.
		if n > 0 && before+o.payloadBytes >= wire.MaxServerMessageBytes {
			break
		}
		if n > 0 {
			b = append(b, ',')
		}
		b = wire.AppendServerFrame(b, o.Frame)
		if n > 0 && len(b) >= wire.MaxServerMessageBytes {
			b = b[:before]
			break
		}
		n++
	}
	s.buffer = append(b, ']')
	return n
}

// pingWritten sets pingEnd after a ping was written, unless a newer one waits.
func (s *session) pingWritten() {
	s.mu.Lock()
	if s.ping == nil {
		s.pingEnd = s.socket.Pace.Written()
	}
	s.mu.Unlock()
}

// written steps the conversation by n written frames.
func (s *session) written(n int) {
	s.mu.Lock()
	s.step(&Written{Frames: s.sending[:n]})
	s.mu.Unlock()
	clear(s.sending[:n])
	s.sending = s.sending[n:]
}

// endCode is the close code of a socket after a failed write.
func endCode(err error) uint16 {
	if errors.Is(err, paced.ErrTooSlow) {
		return CloseIdle
	}
	return closeBroken
}

// wrote ends the session after a failed write; every write has a deadline.
func (s *session) wrote(err error) bool {
	if err == nil {
		return true
	}
	s.mu.Lock()
	s.step(&SocketEnded{Code: endCode(err)})
	s.mu.Unlock()
	s.registry.o.Log.Debug().Err(fmt.Errorf("write to session: %w", err)).Msg("session: given up")
	if !s.socket.Parting.Load() {
		// Otherwise gws has sent a close frame, and the reader closes the socket.
		s.socket.Cut()
	}
	return false
}
