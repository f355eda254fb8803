package shardactor

import (
	"fmt"

	"codeq/mailbox"
)

// astray is where shards send new tasks that belong elsewhere. It has no state:
// what it posts carries the settings by which it was sent, so a shard that has
// older ones waits for its own, and with every change of those a task moves once
// at most.
type astray struct{ engine *Engine }

// Deliver implements Sink.
func (a *astray) Deliver(effects []Effect) {
	if a.engine.strayed != nil {
		a.engine.strayed(effects)
	}
	for _, e := range effects {
		m, ok := e.(*Misplaced)
		if !ok {
			panic(fmt.Sprintf("shardactor: the router was told %T", e))
		}
		a.engine.reroute(m)
	}
}

// reroute sends a new task where it belongs. It has been accepted by a mailbox
// before, so no full one refuses it now.
func (e *Engine) reroute(back *Misplaced) {
	m := *back.Enqueue
	m.RoutedBy = back.Settings.Version
	var shard int
	m.ID, shard = e.router.reroute(e.nowMs(), &m, back.Settings.Ordered)
	if e.loops[shard].box.PushSlot(new(mailbox.Slot[Message]), &m, nil) == mailbox.Closed && m.Sink != nil {
		m.Sink.Deliver([]Effect{&Refused{Ref: m.Ref, Err: stoppingError()}})
	}
}

// turnAway answers, once no shard runs any more, whoever waits in one for a
// change that was cut short.
func (e *Engine) turnAway() {
	for _, l := range e.loops {
		if left := l.core.TurnAway(); len(left) > 0 {
			deliver(left)
		}
	}
}
