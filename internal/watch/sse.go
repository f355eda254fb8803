package watch

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"codeq/internal/auth"
	"codeq/wire"
)

const (
	// commentForMs is how often a stream without events gets a comment.
	commentForMs = 15_000
	// streamWriteFor is how long one write to a stream may take.
	streamWriteFor = 10 * time.Second
)

// Stream answers a request with the server-sent events of one subscription, until the client
// leaves or the server stops. A refusal comes before the first byte.
func (h *Hub) Stream(w http.ResponseWriter, r *http.Request, who *auth.Principal, f *wire.WatchSubscribe) *wire.Error {
	if refusal := h.reserve(); refusal != nil {
		return refusal
	}
	defer h.release()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := newClient(h, ctx, cancel)
	c.isStream = true
	h.admit(c)
	defer h.do(func() { h.leave(c) })
	var refusal *wire.Error
	c.call(func() { refusal = h.join(c, who, asStream) })
	if refusal == nil {
		shows := c.shows(who, f)
		c.call(func() { refusal = c.sub.Take(h.o.NowMs(), f, shows) })
	}
	if refusal != nil {
		return refusal
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	for {
		select {
		case <-ctx.Done():
			return nil
		case o, more := <-c.out:
			if !more || o.closing != nil {
				return nil
			}
			_ = control.SetWriteDeadline(time.Now().Add(streamWriteFor)) // a connection without deadlines has none to set
			if _, err := w.Write(o.message); err != nil || control.Flush() != nil {
				return nil
			}
			c.written()
		}
	}
}

// appendStreamed appends a frame as a server-sent event. Its id are the positions from which a
// client resumes.
func (s *Subscriber) appendStreamed(dst []byte, f wire.ServerFrame) []byte {
	dst = s.appendStreamID(dst)
	return append(wire.AppendWatchFrame(append(dst, "data: "...), f), "\n\n"...)
}

// endStreamed is the message of a stream: a comment if there was nothing for some time, so that
// proxies keep the connection and the client knows how far it is.
func (s *Subscriber) endStreamed(nowMs int64) []byte {
	if len(s.message) == 0 && nowMs >= s.markAtMs {
		s.message = append(s.appendStreamID(s.message), ":\n\n"...)
	}
	if len(s.message) == 0 {
		return nil
	}
	s.markAtMs = nowMs + commentForMs
	return s.message
}

func (s *Subscriber) appendStreamID(dst []byte) []byte {
	dst = wire.AppendStreamID(append(dst, "id: "...), s.board.CreationID, s.sent())
	if len(s.list) == 1 && s.list[0].reported > 0 {
		dst = strconv.AppendUint(append(dst, '/'), s.list[0].reported, 10)
	}
	return append(dst, '\n')
}
