package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"codeq/client"
	"codeq/wire"
)

type watchCmd struct {
	Thing  string   `arg:"" help:"Id of a task, or a queue; billing.* is every queue whose name begins with billing."`
	Causes []string `name:"cause" placeholder:"CAUSE" help:"Only events with these causes, such as nack or lease_expired; only for queues."`
	times
}

// Help is the longer text of "codeq task watch --help".
func (w *watchCmd) Help() string {
	return `Prints one line each time a task moves: when, why, where it is then, and how long it was where it had been. Of a task
also what its worker reports: how far it is, and what its program prints. A task
is watched until it ends, and the exit code is that of its end; a queue is watched until you press Ctrl-C. If the connection
is lost, it is made again. A line says how many events are missing, if any.`
}

// Run follows one task to its end, or the tasks of queues.
func (w *watchCmd) Run(a *app) error {
	v := &watchView{app: a}
	var of client.Subscription = client.EventWatch{Commands: []string{w.Thing}, Causes: w.Causes, MaxPerSecond: wire.MaxWatchPerSecond}
	if id, ok := wire.ParseTaskID(w.Thing); ok {
		if len(w.Causes) > 0 {
			return wrong("--cause is for the tasks of a queue, and %s is the id of one task: leave the flag out", id)
		}
		v.id, of = id, client.TaskWatch{TaskID: id}
	}
	v.lines = a.table(v.columns()...)
	a.once = true // what is not there can not be watched
	return a.ask(func(ctx context.Context, c *client.Client) error {
		for news, err := range c.Watch(ctx, of) {
			over := false
			if err == nil {
				over, err = v.show(&news)
			}
			if over || err != nil {
				return err
			}
		}
		return nil
	})
}

// watchView prints what a watch tells, one line each.
type watchView struct {
	app *app
	// id is the task that is watched, zero for queues.
	id    wire.TaskID
	lines *table
}

// columns are time, task, command, cause, place and more; of one task without task and command.
func (v *watchView) columns() []column {
	all := []column{{}, {}, {least: 12}, {least: 13}, {least: 12, state: true}, {}}
	if v.id.IsZero() {
		return all
	}
	return append(all[:1], all[3:]...)
}

// show prints one line, and reports whether it was the last.
func (v *watchView) show(news *client.News) (over bool, err error) {
	switch {
	case news.Gap != nil:
		return false, v.gap(news.Gap)
	case news.Progress != nil:
		return false, v.progress(news.Progress)
	case news.Output != nil:
		return false, v.output(news.Output)
	case news.Event != nil:
		err = v.event(news.Event)
		return v.ends(news.Event.Status, news.Event.To, err)
	case news.Task != nil:
		err = v.task(news.Task)
		return v.ends(news.Task.Status, news.Task.Location, err)
	}
	return false, nil
}

// ends reports the end of the task that is watched, and its error.
func (v *watchView) ends(status wire.Status, at wire.Location, err error) (over bool, _ error) {
	removed := at == ""
	switch {
	case v.id.IsZero() || !removed && !status.Terminal() || err != nil:
		return false, err
	case status == wire.StatusCompleted:
		return true, nil
	case !status.Terminal():
		return true, &exitError{fmt.Errorf("task %s was removed before it ended", v.id), exitNotThere}
	}
	return true, fmt.Errorf("task %s is %s", v.id, status)
}

func (v *watchView) event(e *wire.WatchEvent) error {
	if v.app.JSON {
		return v.app.writeLine(wire.AppendWatchFrame(nil, e))
	}
	var more []string
	if e.Worker != "" {
		more = append(more, "worker "+e.Worker)
	}
	if e.Delivery > 0 {
		more = append(more, fmt.Sprintf("delivery %d", e.Delivery))
	}
	if e.Attempts > 0 {
		more = append(more, fmt.Sprintf("failed %d", e.Attempts))
	}
	if from := places[e.From]; from != "" {
		more = append(more, fmt.Sprintf("%s for %v", from, time.Duration(e.SpentMs)*time.Millisecond))
	}
	return v.line(e.AtMs, e.Task, e.Command, e.Cause, whereIs(e.Status, e.To), strings.Join(more, ", "))
}

// task prints where the task is at the beginning, and after a connection was lost.
func (v *watchView) task(t *wire.Task) error {
	if v.app.JSON {
		return v.app.writeLine(wire.AppendWatchFrame(nil, &wire.WatchSnapshot{ID: "0", WatchState: wire.WatchState{Task: t}}))
	}
	more := "failed " + failedOf(t)
	if t.WorkerID != "" {
		more = "worker " + t.WorkerID + ", " + more
	}
	return v.line(t.UpdatedAtMs, t.ID, t.Command, "is", whereIs(t.Status, t.Location), more)
}

// progress prints how far the task is.
func (v *watchView) progress(p *wire.WatchProgress) error {
	if v.app.JSON {
		return v.app.writeLine(wire.AppendWatchFrame(nil, p))
	}
	return v.line(p.AtMs, p.Task, "", "progress", percentOf(&p.TaskProgress), sayProgress(&p.TaskProgress))
}

// percentOf is the percent of a progress; sayProgress what else it says.
func percentOf(p *wire.TaskProgress) string {
	if !p.HasPercent {
		return ""
	}
	return fmt.Sprintf("%d %%", p.Percent)
}

func sayProgress(p *wire.TaskProgress) string {
	return strings.TrimSpace(wire.FirstLine(p.Note) + " " + wire.Head(string(p.Data), wire.MaxNoteBytes))
}

// output prints what the program of the task prints, standard output on that of this command.
func (v *watchView) output(o *wire.WatchOutput) error {
	if v.app.JSON {
		return v.app.writeLine(wire.AppendWatchFrame(nil, o))
	}
	for text := range strings.Lines(o.Text) {
		if err := v.line(o.AtMs, o.Task, "", o.Stream, "", strings.TrimRight(text, "\r\n")); err != nil {
			return err
		}
	}
	return nil
}

func (v *watchView) gap(g *wire.WatchGap) error {
	if v.app.JSON {
		return v.app.writeLine(wire.AppendWatchFrame(nil, g))
	}
	missed := fmt.Sprintf("%d events are missing here", g.Missed)
	if g.Of == wire.GapOutput {
		missed = "output may be missing here"
	}
	switch g.Reason {
	case wire.GapRestarted:
		missed += ": the server has restarted, and keeps none over that"
	case client.GapReplaced:
		missed = "the server has other data than before: nobody knows what is missing here"
	case wire.GapSampled:
		missed += fmt.Sprintf(": there were more than %d in a second", wire.MaxWatchPerSecond)
	case wire.GapSlow:
		missed += ": the output is read too slowly"
	case wire.GapEvicted:
		missed += ": the server does not have them any more"
	}
	v.app.complain("%s", missed)
	return nil
}

// whereIs is the status of a task that has ended, or its place.
func whereIs(status wire.Status, at wire.Location) string {
	switch {
	case at == "":
		return "removed"
	case status.Terminal():
		return string(status)
	}
	return places[at]
}

// line prints one line: when, of queues the task and its command, and what happened.
func (v *watchView) line(atMs int64, task wire.TaskID, command string, what ...any) error {
	at := v.app.moment(atMs)
	if v.app.outIsTerminal && !v.app.utc {
		at = time.UnixMilli(atMs).Format("15:04:05.000")
	}
	cells := []any{at, task, command}
	if !v.id.IsZero() {
		cells = cells[:1]
	}
	if last := len(what) - 1; what[last] == "" {
		what = what[:last]
	}
	return v.lines.line(append(cells, what...)...)
}
