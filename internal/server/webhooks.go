package server

import (
	"math/rand/v2"
	"time"

	"codeq/internal/callback"
)

// webhooks post the outcomes of tasks; artifacts are the files that belong to them.
type webhooks struct {
	guard     *callback.Guard
	callbacks *callback.Worker
	poster    *callback.Poster
	artifacts artifacts
}

func after(ms int64, do func()) { time.AfterFunc(time.Duration(ms)*time.Millisecond, do) }

// openWebhooks makes the worker, which gets the events of the engine before the log of events
// does, and takes callbacks once the engine runs.
func (s *Server) openWebhooks() {
	s.poster = callback.NewPoster(callback.PosterOptions{Guard: s.webhooks.guard, Secrets: s.store.Secret(), Version: s.o.Version})
	s.callbacks = callback.New(callback.Options{
		Next: s.events, Send: s.poster.Send, After: after, NowMs: func() int64 { return s.engine.NowMs() }, Random: rand.Float64,
		Disabled: func(tenant, name, reason string) {
			s.o.Log.Warn().Str("tenant", tenant).Str("webhook", name).Str("reason", reason).Msg("endpoint disabled")
		},
	})
}
