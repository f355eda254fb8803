package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"codeq/client"
	"codeq/wire"
)

// bulkVerb is what a command does with tasks: "12 <what>s of mail <became>".
type bulkVerb struct {
	what, became, would string
	// leavesFailed: dead letters that ended FAILED stay unless their cause is named.
	leavesFailed bool
	// one is the request about one task, nil if the command is about queues alone, and
	// many the request about some tasks of a queue.
	one  taskCall
	many bulkCall
}

// bulkCall is one request of the many that a command makes.
type bulkCall func(*client.Client, context.Context, client.BulkQuery) (*client.BulkAnswer, error)

// flagsOfOne are the flags that the request about one task has, too. The others select tasks.
var flagsOfOne = []string{"url", "token", "json", "quiet", "utc", "to"}

// workOn applies the verb to the task with that id, or to the tasks of a queue that query
// selects.
func (a *app) workOn(thing string, limit int, query func() (client.BulkQuery, error), verb *bulkVerb) error {
	if id, ok := wire.ParseTaskID(thing); ok && verb.one != nil {
		for _, flag := range slices.Sorted(maps.Keys(a.given)) {
			if !slices.Contains(flagsOfOne, flag) {
				return wrong("--%s is for the tasks of a queue, and %s is the id of one task: leave the flag out", flag, id)
			}
		}
		return a.showTask(id, !a.Quiet, verb.one)
	}
	q, err := query()
	if err != nil {
		return err
	}
	return a.ask(func(ctx context.Context, c *client.Client) error {
		w := &bulkWork{bulkVerb: verb, app: a, query: q, limit: limit}
		return w.run(ctx, c)
	})
}

// bulkWork applies a verb to many tasks, one request at a time.
type bulkWork struct {
	*bulkVerb
	app    *app
	query  client.BulkQuery
	limit  int // 0 is no limit
	done   int64
	sample []*wire.Task
}

// run sends requests until no task is left or the limit is reached. It prints the count
// every progressEvery and at the end, also after a failure. With --json it prints the
// body of each answer. A dry run shows some of the tasks.
func (w *bulkWork) run(ctx context.Context, c *client.Client) error {
	a := w.app
	asks, release := endsLater(ctx, answerFor)
	defer release()
	for reported := time.Now(); ; {
		answer, err := w.many(c, asks, w.next())
		if err != nil {
			return w.stoppedEarly(ctx, err, !errors.Is(err, client.ErrOutcomeUnknown))
		}
		w.done, w.query.Cursor = w.done+answer.Done, answer.Cursor
		if len(w.sample) == 0 {
			w.sample = answer.Sample
		}
		if a.JSON {
			if err := a.writeLine(a.answer); err != nil {
				return w.stoppedEarly(ctx, err, true)
			}
		}
		if answer.Cursor == "" && w.done+answer.Remaining == 0 {
			if err := knownQueue(asks, c, w.query.Command); err != nil {
				return err
			}
		}
		if answer.Cursor == "" || w.limit > 0 && w.done >= int64(w.limit) {
			return w.report(asks, c, answer)
		}
		if ctx.Err() != nil {
			return w.stoppedEarly(ctx, context.Cause(ctx), true)
		}
		if time.Since(reported) >= progressEvery {
			reported = time.Now()
			a.say("%s so far", w.count())
		}
	}
}

// next is the query of the next request.
func (w *bulkWork) next() client.BulkQuery {
	q := w.query
	if q.Limit = bulkPart; q.DryRun {
		q.Limit = wire.MaxEndedTasks
	}
	if w.limit > 0 {
		q.Limit = int(min(int64(w.limit)-w.done, int64(q.Limit)))
	}
	return q
}

// stoppedEarly is the error of a command that ended early: the count, and how to continue.
// counted reports whether every request was answered.
func (w *bulkWork) stoppedEarly(ctx context.Context, err error, counted bool) error {
	if w.query.DryRun || w.done == 0 && w.query.Cursor == "" && counted && ctx.Err() == nil {
		return err
	}
	rest, goOn := "", "; the same command continues with those that are left"
	if !counted {
		// The error says already that the command can be repeated.
		rest, goOn = ", and perhaps those of the request without an answer", ""
	}
	if w.query.Cursor != "" {
		goOn = "; the same command with --cursor " + w.query.Cursor + " continues"
	}
	return fmt.Errorf("%s before the command ended%s: %w%s", w.count(), rest, err, goOn)
}

// count is the sentence about all tasks so far.
func (w *bulkWork) count() string {
	became := w.became
	if w.query.DryRun {
		became = w.would
	}
	return countedOf(w.done, w.what, w.query.Command, became)
}

// countedOf is "12 <what>s of <command> <became>".
func countedOf(n int64, what, command, became string) string {
	if n == 1 {
		became = isNotAre.Replace(became)
	}
	return fmt.Sprintf("%s of %s %s", counted(int(n), what), command, became)
}

// askFailed adds to the answer of a dry run how many dead letters would be left.
func (w *bulkWork) askFailed(ctx context.Context, c *client.Client, last *client.BulkAnswer) {
	if queue, err := c.Queue(ctx, w.query.Command); err == nil { // it is only a hint
		last.RemainingFailed = queue.DeadBy[wire.DeadFailed]
	}
}

// shownPayload is how many cells of a payload a dry run shows.
const shownPayload = 60

// showSample shows some of the tasks that the filter selects.
func (w *bulkWork) showSample() error {
	if len(w.sample) == 0 {
		return nil
	}
	t := w.app.table(column{name: "TASK"}, column{name: "PRIORITY", spare: 2}, column{name: "CREATED", spare: 1},
		column{name: "ERROR", least: 12, spare: 3}, column{name: "PAYLOAD", least: 16})
	for _, task := range w.sample {
		t.row(task.ID, task.Priority, w.app.moment(task.CreatedAtMs), wire.FirstLine(task.Error), cutTo(oneLine(string(task.Payload)), shownPayload))
	}
	return t.write()
}

// writeIDs prints the ids of tasks and nothing else.
func (a *app) writeIDs(tasks []*wire.Task) (err error) {
	for _, t := range tasks {
		err = cmp.Or(err, a.writeLine(t.ID.AppendTo(nil)))
	}
	return err
}

// isNotAre makes the plural of a verb singular.
var isNotAre = strings.NewReplacer("are ", "is ", "have ", "has ")

// report prints the result of the whole command, from its last answer.
func (w *bulkWork) report(ctx context.Context, c *client.Client, last *client.BulkAnswer) error {
	a := w.app
	switch {
	case a.JSON:
	case w.query.DryRun && a.Quiet:
		return a.writeIDs(w.sample)
	case w.query.DryRun:
		if w.done == 0 && w.leavesFailed {
			w.askFailed(ctx, c, last)
		}
		if err := a.printText(w.count() + w.failedLeft(last) + "\n"); err != nil {
			return err
		}
		return w.showSample()
	case w.what == deadLetter:
		left := fmt.Sprintf("%d are left", last.Remaining)
		if last.Remaining == 1 {
			left = "1 is left"
		}
		a.say("%s, %s%s", w.count(), left, w.failedLeft(last))
	default:
		a.say("%s", w.count())
	}
	return nil
}
