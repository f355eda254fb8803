package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"codeq/client"
	"codeq/wire"
)

type topCmd struct {
	Commands []string      `arg:"" optional:"" name:"command" help:"Queues to show; billing.* is every queue whose name begins with billing. Without any: all."`
	Sort     string        `default:"ready" enum:"command,ready,delayed,in-progress,dead,in,done,retried,failed,oldest-ready,wait-p99,run-p99,workers,paused" help:"Column by which the queues are sorted, the largest value first: ${enum}."`
	Reverse  bool          `help:"Sort the smallest value first."`
	Filter   string        `placeholder:"TEXT" help:"Only queues whose name contains this text."`
	Every    time.Duration `default:"1s" least:"250ms" most:"10s" help:"Time between two looks at the figures."`
	Once     bool          `help:"Print the table once, as in a pipe."`
	times
}

// Help is the longer text of "codeq queue top --help".
func (t *topCmd) Help() string {
	return `On a terminal the table is live. < and > choose the column by which it is sorted, r turns the order around, / filters by
name and Esc shows all again, q ends. In a pipe, or with --once, the table is printed once.

IN/S, DONE/S, RETRIED/S and FAILED/S count the tasks that were posted, completed, sent back to be retried, and given up
in the last second. WAIT P99 and RUN P99 are the times within which 99 of 100 tasks were taken and ended by a worker.`
}

// Run shows the figures of queues.
func (t *topCmd) Run(a *app) error {
	v := &topView{app: a, topCmd: t, sort: slices.IndexFunc(topColumns, func(c topColumn) bool { return c.word() == t.Sort })}
	a.once = true
	return a.ask(func(ctx context.Context, c *client.Client) error {
		if a.outIsTerminal && a.inIsTerminal && !t.Once && !a.JSON && os.Getenv("TERM") != "dumb" {
			return onScreen(os.Stdin, os.Stdout, func(s *screen) error { return v.live(ctx, c, s) })
		}
		for figures, err := range v.watch(ctx, c) {
			if v.topFigures = figures; err != nil {
				return err
			}
			break
		}
		switch {
		case a.JSON:
			return v.writeRows()
		case len(v.queues) == 0:
			a.say("there is no queue to show: none with such a name has had a task")
			return nil
		}
		return v.table().write()
	})
}

// topFigures are what a table shows. workers are the sessions that take tasks of a
// command, nil if this credential may not see them.
type topFigures struct {
	queues  []client.WatchedQueue
	workers map[string]int64
}

// topColumn is a column of the table: a figure of a queue, the workers or the name.
type topColumn struct {
	column
	member string // of the answer in JSON
	figure int
	show   func(a *app, n int64) string // nil shows the number
}

const (
	topName = -1 - iota
	topWorkers
)

var topColumns = []topColumn{
	{column{name: "COMMAND", least: 16}, "", topName, nil},
	{column{name: "READY"}, "ready", wire.FigureReady, nil},
	{column{name: "DELAYED", spare: 5}, "delayed", wire.FigureDelayed, nil},
	{column{name: "IN PROGRESS", spare: 2}, "inProgress", wire.FigureInProgress, nil},
	{column{name: "DEAD"}, "dead", wire.FigureDead, nil},
	{column{name: "IN/S"}, "inPerSecond", wire.FigureInPer, nil},
	{column{name: "DONE/S"}, "donePerSecond", wire.FigureCompletedPer, nil},
	{column{name: "RETRIED/S", spare: 4}, "retriedPerSecond", wire.FigureRetriedPer, nil},
	{column{name: "FAILED/S"}, "failedPerSecond", wire.FigureFailedPer, nil},
	{column{name: "OLDEST READY"}, "", wire.FigureOldestReadyAt, (*app).moment},
	{column{name: "WAIT P99", spare: 6}, "waitP99Ms", wire.FigureWaitP99, (*app).span},
	{column{name: "RUN P99", spare: 7}, "runP99Ms", wire.FigureRunP99, (*app).span},
	{column{name: "WORKERS", spare: 1}, "workers", topWorkers, nil},
	{column{name: "PAUSED", spare: 3, state: true}, "", wire.FigurePaused, func(_ *app, n int64) string { return yesOrNo(n != 0) }},
}

// word is the column as --sort calls it.
func (c *topColumn) word() string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSuffix(c.name, "/S")), " ", "-")
}

func (a *app) span(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

// topView is the state of the table: the figures, and what keys have changed.
type topView struct {
	*topCmd
	topFigures
	app  *app
	sort int
	// typing: keys go into the filter.
	typing bool
}

// of is the figure of a queue in a column; -1 is not known.
func (v *topView) of(c *topColumn, q *client.WatchedQueue) int64 {
	switch {
	case c.figure >= 0:
		return q.Figures[c.figure]
	case v.workers == nil:
		return -1
	}
	return v.workers[q.Command] + v.workers[wire.AllCommands]
}

// compare says which of two queues comes first. The oldest task is the one of the smallest
// time, and no task is none.
func (v *topView) compare(a, b client.WatchedQueue) int {
	c := &topColumns[v.sort]
	order := cmp.Compare(v.of(c, &b), v.of(c, &a))
	switch c.figure {
	case topName:
		order = cmp.Compare(a.Command, b.Command)
	case wire.FigureOldestReadyAt:
		order = cmp.Compare(uint64(a.Figures[c.figure]-1), uint64(b.Figures[c.figure]-1))
	}
	if v.Reverse {
		order = -order
	}
	return cmp.Or(order, cmp.Compare(a.Command, b.Command), cmp.Compare(a.TenantID, b.TenantID))
}

// rows are the queues that the filter leaves, sorted.
func (v *topView) rows() []client.WatchedQueue {
	filtered := slices.DeleteFunc(slices.Clone(v.queues), func(q client.WatchedQueue) bool { return !strings.Contains(q.Command, v.Filter) })
	slices.SortFunc(filtered, v.compare)
	return filtered
}

// writeRows prints each queue as a line of JSON. What is not known is left out.
func (v *topView) writeRows() error {
	for _, q := range v.rows() {
		line := map[string]any{"tenantId": q.TenantID, "command": q.Command, "paused": q.Figures[wire.FigurePaused] != 0}
		for i := range topColumns {
			c := &topColumns[i]
			if n := v.of(c, &q); c.member != "" && n >= 0 {
				line[c.member] = n
			}
		}
		if at := q.Figures[wire.FigureOldestReadyAt]; at != 0 {
			line["oldestReadyAt"] = v.app.moment(at)
		}
		if err := v.app.writeJSON(line); err != nil {
			return err
		}
	}
	return nil
}

// table is the rows. Queues of several tenants have the tenant before their name.
func (v *topView) table() *table {
	columns := make([]column, len(topColumns))
	for i := range topColumns {
		columns[i] = topColumns[i].column
	}
	t := v.app.table(columns...)
	several := slices.ContainsFunc(v.queues, func(q client.WatchedQueue) bool { return q.TenantID != v.queues[0].TenantID })
	for _, q := range v.rows() {
		cells := make([]any, len(topColumns))
		for i := range topColumns {
			c := &topColumns[i]
			switch n := v.of(c, &q); {
			case c.figure == topName && several:
				cells[i] = q.TenantID + "/" + q.Command
			case c.figure == topName:
				cells[i] = q.Command
			case c.show != nil:
				cells[i] = c.show(v.app, n)
			case n < 0:
				cells[i] = ""
			default:
				cells[i] = n
			}
		}
		t.row(cells...)
	}
	return t
}

// watch tells the figures of the queues, with the workers of at most two seconds before.
func (v *topView) watch(ctx context.Context, c *client.Client) iter.Seq2[topFigures, error] {
	return func(yield func(topFigures, error) bool) {
		var workers map[string]int64
		var counted time.Time
		for news, err := range c.Watch(ctx, client.QueueWatch{Commands: v.Commands, Every: v.Every}) {
			if time.Since(counted) >= 2*time.Second && err == nil {
				workers, counted = countWorkers(ctx, c), time.Now()
			}
			if !yield(topFigures{news.Queues, workers}, err) {
				return
			}
		}
	}
}

// countWorkers counts the sessions by the commands whose tasks they take; nil if the server
// does not tell.
func countWorkers(ctx context.Context, c *client.Client) map[string]int64 {
	workers := map[string]int64{}
	for more, cursor := true, ""; more; more = cursor != "" {
		page, err := c.Sessions(ctx, cursor)
		if err != nil {
			return nil
		}
		for i := range page.Sessions {
			for _, command := range page.Sessions[i].Commands {
				workers[command]++
			}
		}
		cursor = page.Cursor
	}
	return workers
}

// look is what the goroutine of a live table has to tell.
type look struct {
	topFigures
	err error
	// panicked is what its panic was, which must reach the goroutine that has the screen.
	panicked any
}

// live shows the table on a screen until a key, a signal or an error ends it. What would be
// said on standard error stands in the second line until there are new figures.
func (v *topView) live(ctx context.Context, c *client.Client, s *screen) error {
	ctx, cancel := context.WithCancel(ctx)
	said, stderr, looks := &lastSaid{}, v.app.err, make(chan look)
	v.app.err = said
	go func() {
		defer close(looks)
		defer func() {
			if p := recover(); p != nil {
				looks <- look{panicked: p}
			}
		}()
		for figures, err := range v.watch(ctx, c) {
			looks <- look{topFigures: figures, err: err}
		}
	}()
	defer func() {
		cancel()
		for range looks {
		}
		v.app.err = stderr
	}()
	for {
		columns, rows := s.size()
		v.app.outWidth = columns
		if err := s.draw(v.lines(rows, said.get())); err != nil {
			return err
		}
		select {
		case l := <-looks:
			if l.panicked != nil {
				panic(l.panicked)
			}
			if l.err != nil {
				return l.err
			}
			v.topFigures = l.topFigures
			said.set("")
		case k, open := <-s.keys:
			if !open || v.key(k) {
				return nil
			}
		case signal := <-s.ends:
			return &exitError{fmt.Errorf("stopped by %s", signal), exitFailed}
		}
	}
}

// key does what a key is for, and reports whether it ends the command.
func (v *topView) key(k string) (quits bool) {
	const ctrlC, backspace, erase = "\x03", "\x7f", "\b"
	switch {
	case k == ctrlC:
		return true
	case k == escape:
		v.Filter, v.typing = "", false
	case v.typing && (k == "\r" || k == "\n"):
		v.typing = false
	case v.typing && (k == backspace || k == erase):
		runes := []rune(v.Filter)
		v.Filter = string(runes[:max(0, len(runes)-1)])
	case v.typing && !strings.HasPrefix(k, escape):
		v.Filter += printable(k)
	case v.typing:
	case k == "q":
		return true
	case k == "/":
		v.typing = true
	case k == "r":
		v.Reverse = !v.Reverse
	case k == ">", k == "<":
		step := map[string]int{">": 1, "<": len(topColumns) - 1}[k]
		v.sort = (v.sort + step) % len(topColumns)
	}
	return false
}

// lines are what the screen shows, at most so many.
func (v *topView) lines(rows int, said string) [][]byte {
	var sum wire.Figures
	for _, q := range v.queues {
		for i, n := range q.Figures {
			sum[i] += n
		}
	}
	head := fmt.Sprintf("codeq %s  queues %d  ready %d  in progress %d  dead %d  in %d/s  done %d/s", v.app.URL, len(v.queues),
		sum[wire.FigureReady], sum[wire.FigureInProgress], sum[wire.FigureDead], sum[wire.FigureInPer], sum[wire.FigureCompletedPer])
	order := map[bool]string{true: "smallest first", false: "largest first"}[v.Reverse]
	help := fmt.Sprintf("sorted by %s, %s (< > r)  filter %q (/)  q quits", topColumns[v.sort].name, order, v.Filter)
	if v.typing {
		help = "filter: " + v.Filter + "_  (Enter keeps it, Esc shows all)"
	}
	if said != "" {
		help = said
	}
	lines := [][]byte{[]byte(cutTo(oneLine(head), v.app.outWidth)), []byte(cutTo(oneLine(help), v.app.outWidth))}
	lines = append(lines, bytes.Split(bytes.TrimSuffix(v.table().page(), []byte("\n")), []byte("\n"))...)
	return lines[:min(len(lines), rows)]
}
