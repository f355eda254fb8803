package server

import (
	crand "crypto/rand"
	"math/rand/v2"
	"strings"
	"time"

	"codeq/internal/callback"
	"codeq/internal/events"
	"codeq/wire"
)

// webhooks post the outcomes of tasks; artifacts are the files that belong to them.
type webhooks struct {
	callbacks *callback.Worker
	poster    *callback.Poster
	notifier  *callback.Notifier
	artifacts artifacts
}

// openNotifier makes what tells subscribers of work without a worker, over an engine that runs.
func (s *Server) openNotifier() {
	s.notifier = callback.NewNotifier(callback.NotifierOptions{
		Engine: s.engine, Ready: s.readyQueues(), Read: s.store.ReadQueue, Send: s.poster.Send, PublicURL: s.o.PublicURL,
		NewID: func() string { return "ntf-" + strings.ToLower(crand.Text()) },
	})
}

// readyQueues makes the function that calls each with every queue that has ready tasks. It looks at
// the queues that have changed since its last call.
func (s *Server) readyQueues() func(each func(tenant, command string)) {
	since, ready := uint64(0), make(map[uint32]wire.SlotName)
	return func(each func(tenant, command string)) {
		since, _ = s.events.Figures(since, func(name wire.SlotName, f *events.Figures) {
			if name.Command == "" || f.Row[wire.FigureReady] == 0 {
				delete(ready, name.Slot)
			} else {
				ready[name.Slot] = name
			}
		})
		for _, name := range ready {
			each(name.Tenant, name.Command)
		}
	}
}

func after(ms int64, do func()) { time.AfterFunc(time.Duration(ms)*time.Millisecond, do) }

// openWebhooks makes the worker, which gets the events of the engine before the log of events
// does, and takes callbacks once the engine runs.
func (s *Server) openWebhooks() {
	s.poster = callback.NewPoster(callback.PosterOptions{Guard: s.hooks, Secrets: s.store.Secret(), Version: s.o.Version})
	s.callbacks = callback.New(callback.Options{
		Next: s.events, Send: s.poster.Send, After: after, NowMs: func() int64 { return s.engine.NowMs() }, Random: rand.Float64,
		Disabled: func(tenant, name, reason string) {
			s.o.Log.Warn().Str("tenant", tenant).Str("webhook", name).Str("reason", reason).Msg("endpoint disabled")
		},
	})
}
