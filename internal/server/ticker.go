package server

import (
	"cmp"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// openHistory reads the figures of the time before the start. The server does without them
// if it must.
func (s *Server) openHistory() {
	failed := func(err error) {
		s.o.Log.Warn().Err(err).Msg("the history of the queues is not written to disk until the next start; nothing else depends on it")
	}
	if err := s.events.OpenHistory(cmp.Or[vfs.FS](s.o.FS, vfs.Default), s.o.DataDir, s.engine.NowMs(), failed); err != nil {
		failed(err)
	}
}

// ticker calls a function once a second, from a goroutine of its own.
type ticker struct{ stop, stopped chan struct{} }

func (t *ticker) start(tick func()) {
	t.stop, t.stopped = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(t.stopped)
		each := time.NewTicker(time.Second)
		defer each.Stop()
		for {
			select {
			case <-each.C:
				tick()
			case <-t.stop:
				return
			}
		}
	}()
}

// end returns when the function is called no more.
func (t *ticker) end() {
	close(t.stop)
	<-t.stopped
}
