package server

import (
	"context"
	"fmt"

	"codeq/internal/events"
	"codeq/internal/watch"
	"codeq/wire"
)

// watched is what happened, and the clients that watch it.
type watched struct {
	events *events.Log
	// ticker calls the log once a second.
	ticker ticker
	hub    *watch.Hub
}

// watchOptions are those of the clients that watch, over an engine that runs.
func (s *Server) watchOptions() watch.Options {
	source := watch.NewSource(s.events, s.store.ReadAllQueues, s.engine.NowMs)
	return watch.Options{
		Facts: watch.Facts{
			Events: s.events, CreationID: s.store.CreationID(), Version: s.o.Version, ShardOf: s.engine.ShardOf,
			Points: s.events.Points,
		},
		Refresh: func(b *watch.Board, nowMs int64) {
			if err := source.Refresh(b, nowMs); err != nil {
				s.o.Log.Error().Err(err).Msg("events: the oldest tasks and the pauses of queues cannot be read")
			}
		},
		Load: s.loadTask, Auth: s.auth, NowMs: s.engine.NowMs, Log: s.o.Log, PingSeconds: s.o.PingSeconds,
		MaxSockets: s.files.connections / greetingPart, Refused: s.refused,
	}
}

// loadTask reads a task for a client that watches it.
func (s *Server) loadTask(ctx context.Context, tenant string, id wire.TaskID) (*wire.Task, *wire.Error) {
	task, err := s.store.ReadTask(tenant, id)
	if err == nil {
		err = s.store.WaitDurable(ctx, s.engine.ShardOf(id))
	}
	switch {
	case ctx.Err() != nil:
		return nil, wire.Refuse(wire.CodeDraining, "the connection has ended")
	case err != nil:
		s.o.Log.Error().Err(err).Msg("events: a task cannot be read")
		return nil, wire.Refuse(wire.CodeInternal, "the server failed to read the task; its log says more")
	case task == nil:
		return nil, wire.Refuse(wire.CodeTaskNotFound, fmt.Sprint("there is no task ", id))
	}
	return task, nil
}
