package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"codeq/client"
	"codeq/config"
	"codeq/wire"
)

type queueCmd struct {
	List   queuesCmd    `cmd:"" eg:"codeq queue list" help:"Show the figures of every queue."`
	Top    topCmd       `cmd:"" eg:"codeq top\ncodeq top 'billing.*' --sort failed" help:"Show the queues with their rates as they change."`
	Show   queueShowCmd `cmd:"" eg:"codeq queue show mail" help:"Show the figures and settings of a queue."`
	Set    queueSetCmd  `cmd:"" eg:"codeq queue set mail --lease 5m --max-attempts 10 --retention 7d" help:"Change settings of a queue. 0 restores the server's default."`
	Pause  pauseCmd     `cmd:"" eg:"codeq pause mail" help:"Grant no tasks of a queue."`
	Resume resumeCmd    `cmd:"" eg:"codeq resume mail" help:"Grant the tasks of a paused queue again."`

	Delete queueDeleteCmd `cmd:"" eg:"codeq queue delete mail --purge" help:"Delete a queue, with --purge also its tasks."`
}

type queueShowCmd struct {
	Command string `arg:"" help:"Name of the queue."`
	times
}

// Run shows one queue.
func (q *queueShowCmd) Run(a *app) error {
	return a.showQueue(q.Command, true, func(ctx context.Context, c *client.Client) (*wire.QueueFigures, error) {
		queue, err := c.Queue(ctx, q.Command)
		if err == nil && queue.Unknown {
			err = noQueue(ctx, c, q.Command, "")
		}
		return queue, err
	})
}

type queueSetCmd struct {
	queueFlags
	Spread                *bool          `negatable:"" help:"Put tasks without a key on all shards, for a queue with more load than one processor can take. Such a queue has an order on each shard only. --no-spread is refused while tasks lie on other shards."`
	MaxAttempts           *int           `help:"Number of attempts of tasks that set none."`
	Lease                 *time.Duration `whole:"" help:"Length of the lease for workers that set none."`
	Timeout               *time.Duration `whole:"" help:"Longest time of one delivery of tasks that set none. When it is over, the task is retried."`
	TTL                   *time.Duration `whole:"" name:"ttl" help:"Tasks that set none end if they have not begun within this time."`
	Backoff               *string        `placeholder:"POLICY" choice:"fixed,linear,exponential,exp_equal_jitter,exp_full_jitter" help:"Backoff of a failed task: fixed, linear, exponential, exp_equal_jitter or exp_full_jitter."`
	BackoffBase           *time.Duration `whole:"" help:"The first pause."`
	BackoffMax            *time.Duration `whole:"" help:"The longest pause."`
	Retention             *time.Duration `whole:"" help:"How long ended tasks are kept."`
	DLQRetention          *time.Duration `whole:"" name:"dlq-retention" help:"How long dead letters are kept."`
	MaxInProgress         *int           `help:"Most tasks of the queue that workers may have at once, over all shards. Without it there is no limit."`
	StartsPerSecond       *int           `help:"Most deliveries of the queue that begin in any second. Without it there is no limit."`
	PerKeyInProgress      *int           `help:"Most tasks with the same concurrency key that workers may have at once. Without it there is no limit."`
	PerKeyStartsPerSecond *int           `help:"Most deliveries of tasks with the same concurrency key that begin in any second. Without it there is no limit."`
	Target                *string        `placeholder:"URL" help:"URL to which the server posts the tasks of the queue; --target= ends that."`
	TargetWindow          *int           `help:"How many tasks the target has at once at most."`
}

// Help is the longer text of "codeq queue set --help".
func (q *queueSetCmd) Help() string {
	return `0 restores the value of the server: --lease 0, --max-attempts 0 and so on, and --backoff= for the policy. A queue has
no ttl and no timeout unless they are set, so --ttl 0 and --timeout 0 switch them off; --target= ends what --target began.
Existing tasks keep the time at which they expire.

  codeq queue set mail --ttl 0 --timeout 0`
}

// Run changes what is named and leaves the rest. Two people who change one
// queue at the same time may undo one another.
func (q *queueSetCmd) Run(a *app) error {
	if *q == (queueSetCmd{queueFlags: queueFlags{Command: q.Command, times: q.times}}) {
		return wrong("nothing is changed: give a setting, like --lease 5m; \"codeq queue show %s\" shows the settings", q.Command)
	}
	return a.showQueue(q.Command, !a.Quiet, func(ctx context.Context, c *client.Client) (*wire.QueueFigures, error) {
		now, err := q.known(ctx, c, q.Command)
		if err != nil {
			return nil, err
		}
		settings := now.Settings
		q.change(&settings)
		if q.TargetWindow != nil && settings.Target.URL == "" {
			return nil, wrong("--target-window is that of a target, and the queue has none: name it with --target URL")
		}
		return c.SetQueue(ctx, q.Command, &settings)
	})
}

func (q *queueSetCmd) change(s *wire.QueueSettings) {
	setIf(&s.Spread, q.Spread)
	setIf(&s.MaxAttempts, q.MaxAttempts)
	setIf(&s.Backoff.Policy, q.Backoff)
	setIf(&s.MaxInProgress, q.MaxInProgress)
	setIf(&s.StartsPerSecond, q.StartsPerSecond)
	setIf(&s.PerKey.InProgress, q.PerKeyInProgress)
	setIf(&s.PerKey.StartsPerSecond, q.PerKeyStartsPerSecond)
	setIf(&s.Target.URL, q.Target)
	setIf(&s.Target.Window, q.TargetWindow)
	if s.Target.URL == "" {
		s.Target = wire.Target{}
	}
	if q.Lease != nil {
		s.LeaseSeconds = int(*q.Lease / time.Second)
	}
	for to, from := range map[*int64]*time.Duration{
		&s.Backoff.BaseSeconds: q.BackoffBase, &s.Backoff.MaxSeconds: q.BackoffMax,
		&s.RetentionSeconds: q.Retention, &s.DLQRetentionSeconds: q.DLQRetention,
		&s.TimeoutSeconds: q.Timeout, &s.TTLSeconds: q.TTL,
	} {
		if from != nil {
			*to = int64(*from / time.Second)
		}
	}
}

// queueFields is a queue for people.
func (a *app) queueFields(q *wire.QueueFigures) *fields {
	f := &fields{}
	f.add("queue", q.Command)
	f.add("paused", pausedOf(q))
	f.add("ready", fmt.Sprint(q.Ready))
	if q.Limited > 0 {
		f.add("limited", fmt.Sprint(q.Limited)+" wait for their concurrency key")
	}
	f.add("delayed", fmt.Sprint(q.Delayed))
	f.add("in progress", fmt.Sprint(q.InProgress))
	f.add("dead letters", deadLine(q))
	f.add("oldest ready", a.moment(q.OldestReadyAtMs))
	s, e := &q.Settings, &q.Effective
	f.add("spread", yesOrNo(e.Spread)+from(s.Spread))
	f.add("max attempts", fmt.Sprint(e.MaxAttempts)+from(s.MaxAttempts != 0))
	f.add("lease", spanOf(int64(e.LeaseSeconds))+from(s.LeaseSeconds != 0))
	f.add("timeout", spanOf(e.TimeoutSeconds)+from(s.TimeoutSeconds != 0))
	f.add("ttl", spanOf(e.TTLSeconds)+from(s.TTLSeconds != 0))
	f.add("backoff", e.Backoff.Policy+from(s.Backoff.Policy != ""))
	f.add("backoff base", spanOf(e.Backoff.BaseSeconds)+from(s.Backoff.BaseSeconds != 0))
	f.add("backoff max", spanOf(e.Backoff.MaxSeconds)+from(s.Backoff.MaxSeconds != 0))
	f.add("retention", spanOf(e.RetentionSeconds)+from(s.RetentionSeconds != 0))
	f.add("dlq retention", spanOf(e.DLQRetentionSeconds)+from(s.DLQRetentionSeconds != 0))
	f.add("max in progress", limitOf(e.MaxInProgress))
	f.add("starts per second", limitOf(e.StartsPerSecond))
	f.add("key in progress", limitOf(e.PerKey.InProgress))
	f.add("key starts/second", limitOf(e.PerKey.StartsPerSecond))
	f.add("target", e.Target.URL)
	if e.Target.URL != "" {
		f.add("target window", fmt.Sprint(e.Target.Window)+from(s.Target.Window != 0))
	}
	if s.DLQRetentionSeconds == 0 {
		f.add("failed letters", fmt.Sprintf("%s%s; each shard keeps at most the newest %d",
			spanOf(cmp.Or(e.DLQRetentionSeconds, wire.FailedForSeconds)), from(false), wire.MaxFailedLetters))
	}
	return f
}

// deadLine says how many dead letters there are, and of which causes.
func deadLine(q *wire.QueueFigures) string {
	text, sign := fmt.Sprint(q.Dead), ": "
	for cause := wire.DeadExhausted; cause < wire.DeadKinds; cause++ {
		if n := q.DeadBy[cause]; n > 0 {
			text += fmt.Sprint(sign, n, " ", cause)
			sign = ", "
		}
	}
	return text
}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// limitOf is a limit of a queue; the server has none.
func limitOf(n int) string {
	if n == 0 {
		return "no limit" + from(false)
	}
	return fmt.Sprint(n) + from(true)
}

// from says where a setting comes from: the queue has it set, or it is the server's.
func from(queue bool) string {
	if queue {
		return " (queue)"
	}
	return " (server)"
}

// spanOf is a time that a setting gives; 0 has no end.
func spanOf(n int64) string {
	const day = 86_400
	switch {
	case n == 0:
		return "for ever"
	case n%day == 0:
		return fmt.Sprintf("%dd", n/day)
	}
	return config.FormatDuration(time.Duration(n) * time.Second)
}

type queuesCmd struct {
	System bool `help:"Show the queues of the server itself as well, such as codeq.webhook."`
	times
}

// Run shows the figures of every queue.
func (q *queuesCmd) Run(a *app) error {
	return show(a, func(ctx context.Context, c *client.Client) ([]wire.QueueFigures, error) {
		if q.System {
			return c.AllQueues(ctx)
		}
		return c.Queues(ctx)
	}, func(queues []wire.QueueFigures) error {
		if len(queues) == 0 {
			a.say("no task has been posted yet")
			return nil
		}
		return a.queueTable(queues)
	})
}

// pausedOf says whether a queue is paused, or why it grants nothing: it is being deleted.
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

// queueFlags are those of a command that changes a queue.
type queueFlags struct {
	Command string `arg:"" help:"Name of the queue."`
	times
	createFlag
}

type pauseCmd struct{ queueFlags }

// Run keeps the tasks of a queue from workers.
func (p *pauseCmd) Run(a *app) error { return p.apply(a, (*client.Client).PauseQueue) }

type resumeCmd struct{ queueFlags }

// Run ends a pause.
func (r *resumeCmd) Run(a *app) error { return r.apply(a, (*client.Client).ResumeQueue) }

// apply changes the queue and shows it, but not with --quiet.
func (f *queueFlags) apply(a *app, change func(*client.Client, context.Context, string) (*wire.QueueFigures, error)) error {
	return a.showQueue(f.Command, !a.Quiet, func(ctx context.Context, c *client.Client) (*wire.QueueFigures, error) {
		if !f.Create { // else nothing has to be known of the queue
			if _, err := f.known(ctx, c, f.Command); err != nil {
				return nil, err
			}
		}
		return change(c, ctx, f.Command)
	})
}

// showQueue shows the queue that do returns, to people only if they want that.
func (a *app) showQueue(command string, wanted bool, do func(context.Context, *client.Client) (*wire.QueueFigures, error)) error {
	if refusal := wire.CheckCommand(command); refusal != nil {
		return wrong("%s", refusal.Sentence)
	}
	return showFields(a, wanted, do, a.queueFields)
}
