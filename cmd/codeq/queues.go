package main

import (
	"fmt"
	"text/tabwriter"

	"codeq/wire"
)

type queuesCmd struct{}

// Run shows the figures of every queue.
func (q *queuesCmd) Run(a *app) error {
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	answer, err := c.Queues(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.writeLine(answer.Raw)
	}
	if len(answer.Queues) == 0 {
		a.say("no task has been posted yet")
		return nil
	}
	return a.queueTable(answer.Queues)
}

func (a *app) queueTable(queues []wire.QueueFigures) error {
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "COMMAND\tREADY\tDELAYED\tIN PROGRESS\tDEAD\tPAUSED\tOLDEST READY")
	for _, q := range queues {
		paused, oldest := "no", "-"
		if q.Paused {
			paused = "yes"
		}
		if q.OldestReadyAtMs != 0 {
			oldest = moment(q.OldestReadyAtMs)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n",
			oneCell(q.Command), q.Ready, q.Delayed, q.InProgress, q.Dead, paused, oldest)
	}
	return flush(w)
}
