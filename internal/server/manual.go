package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"codeq/shardactor"
	"codeq/store"
)

// manualSteps bounds the moments at which one advance stops; see Server.Advance.
const manualSteps = 1000

// manualMost is the longest advance.
const manualMost = 10 * 365 * 24 * time.Hour

// Manual makes a server for tests: its engine has a clock that only Server.Advance moves, and ids
// and jitter come from a seed. Sockets, pings and waits of HTTP stay on the time of the machine.
// One Manual may outlive several servers, one after another. Its methods may be called from any
// goroutine.
type Manual struct {
	startMs int64
	began   time.Time
	nowMs   atomic.Int64
	random  *seeded
	// advancing is held by the one advance that moves the clock.
	advancing sync.Mutex

	mu sync.Mutex
	// gates wake the shards of the server that runs, rounds are those of this server.
	gates  *shardactor.Gates
	rounds []shardRound
	// moved is closed, and made anew, at each round.
	moved chan struct{}
}

// shardRound is the last round of one shard.
type shardRound struct {
	nowMs, nextAtMs int64
	batch           uint64
	again           bool
}

// NewManual makes a clock that stands at a time.
func NewManual(start time.Time, seed uint64) *Manual {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	m := &Manual{startMs: start.UnixMilli(), began: time.Now(), random: &seeded{source: rand.NewChaCha8(key)}, moved: make(chan struct{})}
	m.nowMs.Store(m.startMs)
	return m
}

// Now is the time of the clock.
func (m *Manual) Now() time.Time { return time.UnixMilli(m.nowMs.Load()).UTC() }

// Time is the clock as the source of time of a server, and makes it one for tests.
func (m *Manual) Time() TimeSource {
	now := func() int64 { return m.nowMs.Load() * int64(time.Millisecond) }
	return TimeSource{WallNs: now, ElapsedNs: now, manual: m}
}

// socketMs is the time of sockets: it begins with the clock and passes with the machine's.
func (m *Manual) socketMs() int64 { return m.startMs + time.Since(m.began).Milliseconds() }

// serves makes it the clock of a server that starts.
func (m *Manual) serves(gates *shardactor.Gates) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gates, m.rounds = gates, nil
}

// wake has every shard do a round.
func (m *Manual) wake(level store.Level) {
	m.mu.Lock()
	gates := m.gates
	m.mu.Unlock()
	gates.SpaceChanged(level)
}

// observe notes a round.
func (m *Manual) observe(o *shardactor.Observed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.rounds) <= o.Shard {
		m.rounds = append(m.rounds, shardRound{})
	}
	m.rounds[o.Shard] = shardRound{o.NowMs, o.Outcome.NextAtMs, o.Batch, o.Outcome.Again}
	close(m.moved)
	m.moved = make(chan struct{})
}

// settled returns the next moment at which something is due, 0 for none, and the number of batches,
// when each shard has worked off what is due at nowMs.
func (m *Manual) settled(ctx context.Context, shards int, nowMs int64) (nextAtMs int64, batches uint64, err error) {
	for {
		m.mu.Lock()
		moved, busy := m.moved, len(m.rounds) < shards
		nextAtMs, batches = 0, 0
		for _, r := range m.rounds {
			due := r.nextAtMs != 0 && r.nextAtMs <= nowMs
			busy = busy || r.nowMs < nowMs || r.again || due
			if r.nextAtMs != 0 && (nextAtMs == 0 || r.nextAtMs < nextAtMs) {
				nextAtMs = r.nextAtMs
			}
			batches += r.batch
		}
		m.mu.Unlock()
		if !busy {
			return nextAtMs, batches, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		}
	}
}

// Advance moves the clock of a server for tests and returns when what became due is worked off and
// on disk. It stops at each moment at which something is due, in order, so that what follows from
// that is due in its turn; moments that are closer together than a thousandth of the whole are one.
// Only one Advance runs at a time.
func (s *Server) Advance(ctx context.Context, by time.Duration) error {
	m := s.o.Time.manual
	if m == nil {
		panic("Advance of a server whose clock is the machine's")
	}
	m.advancing.Lock()
	defer m.advancing.Unlock()
	from := m.nowMs.Load()
	target := from + by.Milliseconds()
	for {
		next, err := s.workOff(ctx, m.nowMs.Load())
		if err != nil {
			return fmt.Errorf("advance the clock: %w", err)
		}
		now := m.nowMs.Load()
		if now >= target {
			return nil
		}
		if next == 0 {
			next = target
		}
		m.nowMs.Store(min(max(next, now+(target-from)/manualSteps, now+1), target))
	}
}

// workOff wakes all shards until a pass writes nothing more, and returns the next moment at which
// something is due. What one shard tells another is released by a sync, hence the passes.
func (s *Server) workOff(ctx context.Context, nowMs int64) (nextAtMs int64, err error) {
	for last := ^uint64(0); ; {
		s.o.Time.manual.wake(s.store.Guard().Level())
		next, batches, err := s.o.Time.manual.settled(ctx, s.Shards(), nowMs)
		if err != nil {
			return 0, err
		}
		if err := s.store.Barrier(); err != nil {
			return 0, fmt.Errorf("sync: %w", err)
		}
		if batches == last {
			return next, nil
		}
		last = batches
	}
}

// withAdvance serves POST /advance of a server for tests beside the API.
func (s *Server) withAdvance(api http.Handler) http.Handler {
	if s.o.Time.manual == nil {
		return api
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/advance" || r.Method != http.MethodPost {
			api.ServeHTTP(w, r)
			return
		}
		var by struct{ Ms int64 }
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<10))
		if err == nil {
			err = json.Unmarshal(body, &by)
		}
		if err == nil && (by.Ms < 0 || by.Ms > manualMost.Milliseconds()) {
			err = fmt.Errorf("ms must be from 0 to %d, got %d", manualMost.Milliseconds(), by.Ms)
		}
		if err == nil {
			err = s.Advance(r.Context(), time.Duration(by.Ms)*time.Millisecond)
		}
		w.Header().Set("Content-Type", "application/json")
		said := map[string]any{"now": s.o.Time.manual.Now().Format("2006-01-02T15:04:05.000Z")}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			said = map[string]any{"error": err.Error(), "code": "invalid_argument", "retryable": false}
		}
		if err := json.NewEncoder(w).Encode(said); err != nil {
			s.o.Log.Debug().Err(err).Msg("nobody read the answer to an advance")
		}
	})
}

// seeded is a source of random bytes from a seed. Any goroutine.
type seeded struct {
	mu     sync.Mutex
	source *rand.ChaCha8
}

// Read implements io.Reader.
func (s *seeded) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source.Read(p)
}
