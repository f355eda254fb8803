package main

import (
	"context"

	"codeq/client"
	"codeq/wire"
)

type queuesCmd struct{ times }

// Run shows the figures of every queue.
func (q *queuesCmd) Run(a *app) error {
	return show(a, func(ctx context.Context, c *client.Client) ([]wire.QueueFigures, error) {
		return c.Queues(ctx)
	}, func(queues []wire.QueueFigures) error {
		if len(queues) == 0 {
			a.say("no task has been posted yet")
			return nil
		}
		return a.queueTable(queues)
	})
}

// pausedOf says whether the tasks of a queue are kept from workers, and whether because
// it is being deleted.
func pausedOf(q *wire.QueueFigures) string {
	if q.Deleting {
		return "deleting"
	}
	return yesOrNo(q.Paused)
}

func (a *app) queueTable(queues []wire.QueueFigures) error {
	t := a.table(
		column{name: "COMMAND", least: 16}, column{name: "READY"}, column{name: "DELAYED", spare: 2}, column{name: "IN PROGRESS"},
		column{name: "DEAD"}, column{name: "PAUSED", spare: 1, state: true}, column{name: "OLDEST READY", spare: 3},
	)
	for _, q := range queues {
		t.row(q.Command, q.Ready, q.Delayed, q.InProgress, q.Dead, pausedOf(&q), a.moment(q.OldestReadyAtMs))
	}
	return t.write()
}
