package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"codeq/client"
	"codeq/wire"
)

type taskCmd struct {
	Show      taskShowCmd  `cmd:"" default:"withargs" eg:"codeq task 01890a5d-ac96-774b-bcce-b302099a8057" help:"Show a task. Short: codeq task ID."`
	List      tasksCmd     `cmd:"" eg:"codeq task list mail --status FAILED" help:"List the tasks of a queue."`
	Find      findCmd      `cmd:"" eg:"codeq find --label customer=acme --state dlq\ncodeq find --command 'billing.*' --error timeout --older 1h" help:"Find tasks in all queues by id, label, error, worker and age."`
	Result    resultCmd    `cmd:"" eg:"codeq result 01890a5d-ac96-774b-bcce-b302099a8057 --wait 30s" help:"Show the result of a task, with --wait also one that is yet to come."`
	Artifacts artifactsCmd `cmd:"" eg:"codeq artifacts 01890a5d-ac96-774b-bcce-b302099a8057\ncodeq artifacts 01890a5d-ac96-774b-bcce-b302099a8057 --to results" help:"List the artifacts of a task that has ended, or get their files."`
	Watch     watchCmd     `cmd:"" eg:"codeq watch 01890a5d-ac96-774b-bcce-b302099a8057\ncodeq watch 'billing.*' --cause nack,lease_expired" help:"Watch a task until it ends, or the tasks of a queue, one line a transition."`
	Cancel    cancelCmd    `cmd:"" eg:"codeq cancel 01890a5d-ac96-774b-bcce-b302099a8057\ncodeq cancel mail --match customer=42 --dry-run" help:"Cancel a task that has not ended, or tasks of a queue."`

	Retry dlqReplayCmd `cmd:"" eg:"codeq task retry 01890a5d-ac96-774b-bcce-b302099a8057" help:"Start a dead letter again with all its attempts. The same as codeq dlq replay."`
	Run   taskRunCmd   `cmd:"" eg:"codeq task run mail --attempts 1" help:"Make a delayed task ready now, or delayed tasks of a queue."`
	Take  taskTakeCmd  `cmd:"" name:"take-back" eg:"codeq task take-back 01890a5d-ac96-774b-bcce-b302099a8057" help:"Take a task in progress from its worker; it is ready again."`
	Move  taskMoveCmd  `cmd:"" eg:"codeq task move mail --to 9 --match customer=42" help:"Change the priority of a waiting task, or of waiting tasks of a queue."`

	Claim     claimCmd     `cmd:"" group:"By hand" help:"Claim a task, for a script that ends it by itself."`
	Complete  completeCmd  `cmd:"" group:"By hand" eg:"codeq complete \"$id\" \"$token\" '{\"sum\":12}'\ncodeq complete \"$id\" \"$token\" --error 'no such file' --exit-code 2" help:"Complete a claimed task with its result."`
	Nack      nackCmd      `cmd:"" group:"By hand" eg:"codeq nack \"$id\" \"$token\" 'no luck' --delay 5m" help:"Report that the work on a claimed task failed; the task is retried."`
	Release   releaseCmd   `cmd:"" group:"By hand" eg:"codeq release \"$id\" \"$token\" --stopping" help:"Hand back a claimed task without work on it; no attempt is counted."`
	Heartbeat heartbeatCmd `cmd:"" group:"By hand" eg:"codeq heartbeat \"$id\" \"$token\" --extend 1m" help:"Extend the lease of a claimed task."`
}

type taskShowCmd struct {
	ID string `arg:"" name:"id" help:"Id of the task."`
	times
}

// Run shows one task.
func (t *taskShowCmd) Run(a *app) error {
	id, err := parseID(t.ID)
	if err != nil {
		return err
	}
	return a.showTask(id, true, (*client.Client).Task)
}

// taskCall is a request about one task.
type taskCall func(*client.Client, context.Context, wire.TaskID) (*wire.Task, error)

// showTask shows the task that do returns, to people only if they want that.
func (a *app) showTask(id wire.TaskID, wanted bool, do taskCall) error {
	return showFields(a, wanted, func(ctx context.Context, c *client.Client) (*wire.Task, error) { return do(c, ctx, id) }, a.taskFields)
}

// taskFields is a task for people.
func (a *app) taskFields(t *wire.Task) *fields {
	f := &fields{}
	f.add("task", t.ID.String())
	f.add("command", t.Command)
	f.add("status", string(t.Status))
	f.add("place", places[t.Location])
	f.add("cause", cmp.Or(t.DeadCause.String(), endedBy(t.CancelCause)))
	f.add("priority", fmt.Sprint(t.Priority))
	f.add("failed", failedOf(t))
	f.add("deliveries", fmt.Sprint(t.Deliveries))
	f.add("worker", t.WorkerID)
	if p := t.Progress; p != nil {
		f.add("progress", strings.TrimSpace(percentOf(p)+" "+sayProgress(p))+", at "+a.moment(p.AtMs))
	}
	f.add("labels", strings.Join(t.Labels.List(), ", "))
	f.add("concurrency key", t.ConcurrencyKey)
	f.add("webhook", t.Webhook)
	if t.TimeoutSeconds != 0 {
		f.add("timeout", spanOf(t.TimeoutSeconds))
	}
	f.add("lease ends", a.moment(t.LeaseUntilMs))
	f.add("run ends", a.moment(t.RunUntilMs))
	f.add("due", a.moment(t.VisibleAtMs))
	f.add("expires", a.moment(t.ExpiresAtMs))
	f.add("waits", a.waitingLine(t.Waiting))
	lastError := "error"
	if t.Status == wire.StatusCompleted {
		lastError = "last error" // of an execution before
	}
	f.add(lastError, t.Error)
	f.add("created", a.moment(t.CreatedAtMs))
	f.add("updated", a.moment(t.UpdatedAtMs))
	f.add("payload", string(t.Payload))
	for _, line := range t.History {
		label := "history"
		if line.Delivery != 0 {
			label = "delivery " + fmt.Sprint(line.Delivery)
		}
		f.add(label, a.historyLine(line))
	}
	return f
}

// endedBy says why a task was cancelled, if it was not by somebody.
func endedBy(cause string) string {
	if cause == wire.CancelExpired {
		return cause + ": it had not begun when its time was over"
	}
	return cause
}

// waitingReasons are the reasons why a ready task waits, in words.
var waitingReasons = map[string]string{
	wire.WaitingPaused: "the queue is paused", wire.WaitingNoWorker: "no worker is subscribed to this queue",
	wire.WaitingNoCredit: "no worker of its queue has room", wire.WaitingBehind: "other tasks come first",
	wire.WaitingStorageFull: "the disk is nearly full",
	wire.WaitingSuspect:     "it did not arrive three times and is sent alone, to a session with nothing else in flight; next delivery ",
}

// waitingLine says in words why a task waits.
func (a *app) waitingLine(w *wire.Waiting) string {
	if w == nil {
		return ""
	}
	text := w.Reason + ": " + waitingReasons[w.Reason]
	switch {
	case w.Reason == wire.WaitingDelayed:
		return "delayed, due " + a.moment(w.UntilMs)
	case w.Reason == wire.WaitingSuspect:
		return text + a.moment(w.UntilMs)
	case w.Reason == wire.WaitingTarget:
		text += w.Problem + "; it is tried again " + a.moment(w.UntilMs)
	case w.Reason == wire.WaitingLimit && w.Limit == wire.LimitKeyStarts:
		text += fmt.Sprintf("at most %d deliveries with the key %q begin in a second", w.Of, w.Key)
	case w.Reason == wire.WaitingLimit && w.Limit == wire.LimitKeyInProgress:
		text += fmt.Sprintf("%d tasks with the key %q are in progress, at most %d may be", w.Used, w.Key, w.Of)
	case w.Reason == wire.WaitingLimit && w.Limit == wire.LimitStarts:
		text += fmt.Sprintf("at most %d deliveries of its queue begin in a second", w.Of)
	case w.Reason == wire.WaitingLimit:
		text += fmt.Sprintf("%d tasks of its queue are in progress, at most %d may be", w.Used, w.Of)
	}
	if w.BehindKnown {
		text += fmt.Sprintf("; ready tasks that come before it: %d", w.Behind)
	}
	return text
}

func (a *app) historyLine(line wire.HistoryLine) string {
	text := line.Cause
	if line.By != "" {
		text += " by " + line.By
	}
	if !line.Callback.IsZero() {
		text += " in task " + line.Callback.String()
	}
	if line.CloseCode != 0 {
		text += fmt.Sprintf(" (closed with %d)", line.CloseCode)
	}
	if at := cmp.Or(line.FromMs, line.ToMs); at != 0 {
		text += ", " + a.moment(at)
	}
	if line.FromMs != 0 && line.ToMs != 0 {
		text += " for " + (time.Duration(line.ToMs-line.FromMs) * time.Millisecond).String()
	}
	if line.WorkerID != "" {
		text += ", worker " + line.WorkerID
	}
	switch {
	case line.Exit.Coded:
		text += fmt.Sprintf(", exit code %d", line.Exit.Code)
	case line.Exit.Signal != "":
		text += ", ended by " + line.Exit.Signal
	}
	if line.Error != "" {
		text += ": " + oneLine(wire.FirstLine(line.Error))
	}
	return text
}

// places are the locations of tasks in words.
var places = map[wire.Location]string{
	wire.LocationPending: "ready", wire.LocationDelayed: "delayed", wire.LocationInProgress: "in progress", wire.LocationDead: "dead letters",
	wire.LocationLimited: "limited by its concurrency key",
}
