package shard

import (
	"codeq/internal/credit"
	"codeq/record"
)

// scriptLimiter is the limiter of a queue in a script. Places that it hands to this shard
// wait for the next round, those for others stay with them.
type scriptLimiter struct {
	*credit.Window
	credit.Rate
}

func (w *scriptWorld) limiterOf(key record.QueueKey) Limiter {
	if known := w.limiters[key]; known != nil {
		return known
	}
	made := &scriptLimiter{}
	made.Window = credit.New(1, 1, func(shard int) {
		if shard == w.shard {
			w.control = append(w.control, &HandedPlaces{Limiter: made, Queue: key, Places: 1})
		}
	})
	w.limiters[key] = made
	return made
}

func (l *scriptLimiter) Set(maxInProgress, startsPerSecond int, nowMs int64) {
	if maxInProgress == 0 {
		maxInProgress = 1 << 28
	}
	l.SetWindow(maxInProgress)
	l.SetRate(startsPerSecond, nowMs)
}

func (l *scriptLimiter) Deliver(effects []Effect) {
	for _, e := range effects {
		l.Return(e.(*Freed).Places)
	}
}

// deliverFreed gives limiters what the durable rounds have freed.
func (w *scriptWorld) deliverFreed() {
	for _, a := range w.freed {
		a.Sink.Deliver([]Effect{a.Effect})
	}
	w.freed = nil
}
