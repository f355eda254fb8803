package session

import (
	"sync"

	"codeq/shard"
)

// A session holds the payloads that shards granted and its client has not taken. The consumer
// bounds them for one session, the budget for all sessions together: over the budget the
// session whose client has taken nothing for the longest time is closed, and its tasks go
// back at once. Only clients that do not read are disconnected.

// holding is the payload that one session holds. No other lock is taken under its lock.
type holding struct {
	mu    sync.Mutex
	bytes int64
	// sinceMs is when the client last took a part of it, or when the first part came.
	sinceMs int64
	// over: the session has ended and holds nothing. relieved: it was closed because of the
	// budget.
	over, relieved bool
}

// worseThan reports whether a session holds a payload for longer than another one.
func (h *holding) worseThan(bytes, sinceMs int64) bool {
	return h.bytes > 0 && (bytes == 0 || h.sinceMs < sinceMs || h.sinceMs == sinceMs && h.bytes > bytes)
}

// grantedBytes is the payload in effects.
func grantedBytes(effects []shard.Effect) (bytes int64) {
	for _, e := range effects {
		if g, ok := e.(*shard.Granted); ok {
			bytes += int64(len(g.Task.Payload))
		}
	}
	return bytes
}

// holds adds payload bytes to what s holds; negative bytes have left it. Any goroutine.
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

// relieve closes the session that is furthest behind. It does nothing until the last one that
// it closed has released its payloads.
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
	most.socket.Cut()
}

// relieve marks the session as closed because of the budget; false if it has ended already.
func (h *holding) relieve() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.relieved = !h.over
	return h.relieved
}

// release drops what a session held when it ends.
func (r *Registry) release(s *session) {
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
