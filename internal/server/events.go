package server

import (
	"context"
	"math"

	"codeq/internal/auth"
	"codeq/internal/events"
	"codeq/internal/httpapi"
	"codeq/internal/needs"
	"codeq/internal/tracing"
	"codeq/internal/watch"
	"codeq/store"
	"codeq/wire"
)

// watched is what happened, and the clients that watch it.
type watched struct {
	events  *events.Log
	reports *events.Reports
	// ticker calls the log once a second.
	ticker ticker
	hub    *watch.Hub
	// tracer is nil without a collector.
	tracer *tracing.Tracer
	// reader reads for the hub once the server takes requests.
	reader httpapi.API
}

// watchOptions are those of the clients that watch, over an engine that runs.
func (s *Server) watchOptions() watch.Options {
	source := watch.NewSource(s.events, s.store.ReadEveryQueue, s.socketMs())
	return watch.Options{
		Facts: watch.Facts{
			Events: s.events, Reports: s.reports, CreationID: s.store.CreationID(), Version: s.o.Version, Leader: s.o.NodeURL, ShardOf: s.engine.ShardOf,
			Points: s.events.Points, TotalOf: s.events.TotalOf, Beside: source.Beside, Times: source.Times, Server: s.serverFigures(), Dead: s.deadLetters, Slow: s.slow,
			Target: func(queue wire.SlotName) string {
				problem, _ := s.callbacks.TargetHealth(queue.Tenant, queue.Command)
				return problem
			},
			Sessions: func(tenant string) []wire.SessionFigures {
				all, _ := s.sessions.List(tenant, wire.SessionID{}, math.MaxInt) // there is no next page
				return all
			},
		},
		Refresh: func(b *watch.Board, nowMs int64) {
			if err := source.Refresh(b, nowMs); err != nil {
				s.o.Log.Error().Err(err).Msg("events: the oldest tasks and the pauses of queues cannot be read")
			}
		},
		ReadTasks: func(ctx context.Context, who *auth.Principal, ids []wire.TaskID) ([]*wire.Task, *wire.Error) {
			return s.reader.ReadTasks(ctx, who, ids)
		},
		ReadPage: func(ctx context.Context, who *auth.Principal, f *wire.WatchSubscribe) (*wire.WatchSnapshot, *wire.Error) {
			return s.reader.ReadPage(ctx, who, f)
		},
		Auth: s.auth, NowMs: s.socketMs(), Log: s.o.Log, PingSeconds: s.o.PingSeconds,
		MaxSockets: s.files.connections / greetingPart, Refused: s.refused,
	}
}

// serverFigures makes the function that gives the figures of the server. Those of the last second
// are of the time since its last call.
func (s *Server) serverFigures() func(nowMs int64) wire.ServerFigures {
	startedAtMs, last, lastAtMs := s.engine.NowMs(), s.store.Work(), int64(0)
	return func(nowMs int64) wire.ServerFigures {
		work, guard := s.store.Work(), s.store.Guard()
		f := wire.ServerFigures{
			Version: s.o.Version, Durability: Durability, StartedAtMs: startedAtMs, MemoryBytes: s.o.MemoryBytes,
			Sessions: s.sessions.Count(), Subscribers: s.hub.Count(),
			DiskGuard: guard.Level().String(), DiskFreeBytes: guard.FreeBytes(), DiskReserveBytes: guard.ReserveBytes(),
		}
		// There is no last second after a time without a client.
		if tookMs, syncs := nowMs-lastAtMs, work.Syncs-last.Syncs; tookMs > 0 && tookMs < 5000 && syncs > 0 {
			f.CommitsPer, f.SyncsPer = int64(work.Commits-last.Commits)*1000/tookMs, int64(syncs)*1000/tookMs
			f.SyncMicros = int64((work.SyncSeconds - last.SyncSeconds) * 1e6 / float64(syncs))
		}
		last, lastAtMs = work, nowMs
		for shard := range s.engine.Shards() {
			box := s.engine.MailboxFigures(shard)
			f.Shards = append(f.Shards, wire.ShardFigures{
				Messages: box.Depth, NewMessages: box.New, Bytes: box.DepthBytes, BacklogMs: box.BacklogForMs,
				Drained: box.LastBatch, WaitMicros: box.LastWait.Microseconds(),
				Accepted: int64(box.Pushed), Refused: int64(box.Refused),
			})
		}
		return f
	}
}

// deadRead bounds the newest dead letters of a queue whose reasons are counted.
const deadRead = 200

// deadLetters looks at the dead letters of a queue. What cannot be read is left out.
func (s *Server) deadLetters(name wire.SlotName) (d needs.DeadLetters) {
	q := store.ListQuery{State: store.ListDead, UntilMs: math.MaxInt64, Limit: 1, MostRead: 1}
	q.Queue.Command, q.Queue.Tenant = name.Command, name.Tenant
	if page, err := s.store.Find(&q); err == nil && len(page.Found) > 0 {
		d.SinceMs = page.Found[0].AtMs
	}
	q.Limit, q.MostRead = deadRead, deadRead
	page, err := s.store.DeadReasons(&q)
	if err != nil {
		s.o.Log.Error().Err(err).Msg("events: dead letters cannot be read")
		return d
	}
	for i := range page.Reasons {
		r := &page.Reasons[i]
		if d.Of += r.Count; r.Count > d.Same {
			d.Same, d.Reason = r.Count, r.Error
		}
	}
	return d
}

// slowRead bounds the tasks in progress of a queue that are looked at, those made first.
const slowRead = 200

// slow looks for deliveries of a queue that began before a time. What cannot be read is left out.
func (s *Server) slow(name wire.SlotName, beforeMs int64) (found needs.Slow) {
	q := store.ListQuery{State: store.ListInProgress, Limit: slowRead, MostRead: slowRead}
	q.Queue.Command, q.Queue.Tenant = name.Command, name.Tenant
	page, err := s.store.ListTasks(&q)
	if err != nil {
		s.o.Log.Error().Err(err).Msg("events: tasks in progress cannot be read")
		return found
	}
	for _, t := range page.Tasks {
		if t.UpdatedAtMs > beforeMs || t.Location != wire.LocationInProgress {
			continue
		}
		if found.Count++; found.SinceMs == 0 || t.UpdatedAtMs < found.SinceMs {
			found.SinceMs = t.UpdatedAtMs
		}
	}
	return found
}
