package session

import (
	"sync"

	"codeq/shard"
)

// What shards granted and a client has not taken is held by its session. The
// seat bounds that for one session; the budget bounds it for all of them: over
// it, the session whose client has taken nothing for longest is cut, and what it
// did not take goes back at once. So clients that are stuck cost each other, and
// nobody who reads, a connection.

// holding is what one session holds. Nothing else is locked under its lock.
type holding struct {
	mu    sync.Mutex
	bytes int64
	// sinceMs is when the client last took anything of it, or when it began.
	sinceMs int64
	// over: the session has ended and holds nothing any more. relieved: it was
	// cut because of what it held.
	over, relieved bool
}

// worseThan says whether a session is further behind than another, of those
// that hold anything.
func (h *holding) worseThan(bytes, sinceMs int64) bool {
	return h.bytes > 0 && (bytes == 0 || h.sinceMs < sinceMs || h.sinceMs == sinceMs && h.bytes > bytes)
}

// grantedBytes is the payload that comes with effects.
func grantedBytes(effects []shard.Effect) (bytes int64) {
	for _, e := range effects {
		if g, ok := e.(*shard.Granted); ok {
			bytes += int64(len(g.Task.Payload))
		}
	}
	return bytes
}

// holds notes payload bytes that came to s, or left it when bytes is negative.
// From any goroutine.
func (r *Registry) holds(s *session, bytes int64) {
	h := &s.holding
	h.mu.Lock()
	if h.over || bytes == 0 {
		h.mu.Unlock()
		return
	}
	if h.bytes == 0 || bytes < 0 {
		h.sinceMs = r.o.NowMs()
	}
	h.bytes += bytes
	total := r.unsentBytes.Add(bytes)
	h.mu.Unlock()
	if bytes > 0 && r.o.OutboxBytes > 0 && total > r.o.OutboxBytes {
		r.relieve()
	}
}

// relieve cuts the session that is furthest behind. It does nothing while the
// last one that was cut has not given back what it held.
func (r *Registry) relieve() {
	if !r.relieving.CompareAndSwap(false, true) {
		return
	}
	var most *session
	var bytes, sinceMs int64
	for _, s := range r.running() {
		s.holding.mu.Lock()
		if s.holding.worseThan(bytes, sinceMs) {
			most, bytes, sinceMs = s, s.holding.bytes, s.holding.sinceMs
		}
		s.holding.mu.Unlock()
	}
	if most == nil || !most.holding.relieve() {
		r.relieving.Store(false)
		return
	}
	r.o.Log.Warn().Int64("bytes", bytes).Stringer("remote", most.socket.RemoteAddr()).
		Msg("session: clients have not taken more than there is memory for; the one that is furthest behind is cut")
	most.socket.cut()
}

// relieve notes that the session is cut, and reports false if it has ended.
func (h *holding) relieve() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.relieved = !h.over
	return h.relieved
}

// gaveBack notes that a session has ended, and what it held is dropped with it.
func (r *Registry) gaveBack(s *session) {
	h := &s.holding
	h.mu.Lock()
	r.unsentBytes.Add(-h.bytes)
	relieved := h.relieved
	h.bytes, h.over, h.relieved = 0, true, false
	h.mu.Unlock()
	if relieved {
		r.relieving.Store(false)
	}
}
