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

// bufferKeepBytes is the largest encoding buffer that a session keeps between
// messages.
const bufferKeepBytes = wire.MaxServerMessageBytes + 64<<10

// write is the writer, an actor: it steps the conversation by effects and by
// its deadlines, and sends what waits in the outbox.
func (s *session) write(batch [][]shard.Effect) time.Duration {
	s.mu.Lock()
	for _, effects := range batch {
		if effects != nil {
			s.step(&Effects{List: effects})
		}
	}
	s.mu.Unlock()
	for s.sendNext() {
	}
	return s.sleepFor()
}

// sleepFor runs the timer if it is due and says when it is due next.
func (s *session) sleepFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.talk.DeadlineMs() == 0 {
		return actor.Forever
	}
	if s.runTimer() {
		return 0
	}
	return time.Duration(s.untilDeadlineMs()) * time.Millisecond
}

// runTimer reports whether the timer was due. s.mu is held.
func (s *session) runTimer() bool {
	if s.talk.DeadlineMs() == 0 || s.untilDeadlineMs() > 0 {
		return false
	}
	s.step(&Timer{Ping: s.pingState(), Hears: s.hears()})
	return true
}

// hears says whether the client has sent as much, since this was asked last, as one
// must take that is not too slow. s.mu is held.
func (s *session) hears() bool {
	nowMs, read := s.registry.o.NowMs(), s.socket.readBytes.Load()
	least := paced.LeastBytes * (nowMs - s.heardAtMs) / paced.Window.Milliseconds()
	hears := read-s.heardBytes >= max(least, 1)
	s.heardBytes, s.heardAtMs = read, nowMs
	return hears
}

// goesOn is asked while a write takes long: the timer runs meanwhile, and nothing
// is written for a session that has ended.
func (s *session) goesOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runTimer()
	return !s.talk.Over()
}

// pingState says where the last ping is, and how fast the client takes what is in
// front of it. s.mu is held.
func (s *session) pingState() PingState {
	nowMs, taken := s.registry.o.NowMs(), s.socket.pace.Taken()
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

// sendNext sends the next thing: the control frames that wait and one message.
// It reports whether there may be more.
func (s *session) sendNext() bool {
	t := s.next()
	if t.pong != nil && !s.wrote(s.conn.WritePong(t.pong)) {
		return false
	}
	if t.ping != nil {
		if !s.wrote(s.conn.WritePing(t.ping)) {
			return false
		}
		s.pingLeft()
	}
	if len(s.sending) > 0 {
		n := s.compose()
		if !s.wrote(s.conn.WriteMessage(gws.OpcodeText, s.buffer)) {
			return false
		}
		s.left(n)
		return true
	}
	if t.closing != nil {
		// Nothing of ours is in the way of it, so it takes no longer than one
		// write; the reader ends when the client or the linger does.
		_ = s.conn.WriteClose(t.closing.Code, []byte(t.closing.Reason)) // it closes the socket either way
		return false
	}
	return false
}

// turn is what the writer takes at a time beside the frames in s.sending.
type turn struct {
	pong    []byte
	ping    []byte
	closing *Closing
}

// next fetches what waits. Once the session is over only its close is sent,
// behind the frames that are no tasks.
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
			// Its turn comes when these have left.
			s.closing, t.closing = t.closing, nil
		}
		return t
	}
	t := turn{pong: s.pong, ping: s.ping}
	s.pong, s.ping = nil, nil
	return t
}

func withoutTasks(frames []Outgoing) []Outgoing {
	kept := frames[:0]
	for _, o := range frames {
		if _, isTask := o.Frame.(*wire.TaskFrame); !isTask {
			kept = append(kept, o)
		}
	}
	return kept
}

// compose encodes as many frames as one message takes and says how many. A
// frame that is too large for it has a message of its own.
func (s *session) compose() int {
	if cap(s.buffer) > bufferKeepBytes {
		s.buffer = nil
	}
	b := append(s.buffer[:0], '[')
	n := 0
	for _, o := range s.sending {
		before := len(b)
		// Not encoded only to be thrown away, when its payload alone is too much.
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

// pingLeft notes where the last byte of the ping stands that was just written.
func (s *session) pingLeft() {
	s.mu.Lock()
	if s.ping == nil {
		s.pingEnd = s.socket.pace.Written()
	}
	s.mu.Unlock()
}

// left reports n written frames to the conversation.
func (s *session) left(n int) {
	s.mu.Lock()
	s.step(&Written{Frames: s.sending[:n]})
	s.mu.Unlock()
	clear(s.sending[:n])
	s.sending = s.sending[n:]
}

// endCode is how a socket ended that could not be written to.
func endCode(err error) uint16 {
	if errors.Is(err, paced.ErrTooSlow) {
		return CloseIdle
	}
	return closeBroken
}

// wrote ends the session if a write failed, which its deadline sees to.
func (s *session) wrote(err error) bool {
	if err == nil {
		return true
	}
	s.mu.Lock()
	s.step(&SocketEnded{Code: endCode(err)})
	s.mu.Unlock()
	s.registry.o.Log.Debug().Err(fmt.Errorf("write to session: %w", err)).Msg("session: given up")
	if !s.socket.parting.Load() {
		// Otherwise gws has said goodbye for us; the reader sees to the rest.
		s.socket.cut()
	}
	return false
}
