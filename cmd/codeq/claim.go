package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"codeq/client"
	"codeq/wire"
)

// giveBackWithin is how long a claim tries to give back what it could not print.
const giveBackWithin = 10 * time.Second

type claimCmd struct {
	Commands []string      `arg:"" help:"Queues to claim from; * is all."`
	Lease    time.Duration `default:"30s" whole:"" least:"1s" most:"12h" help:"How long the lease lasts unless it is extended."`
	Wait     time.Duration `whole:"" help:"Wait this long for a task, and for a server."`
	Name     string        `placeholder:"NAME" help:"Name of this worker, which lists show."`
	Once     bool          `help:"Fail at once if no server answers, even with --wait."`
}

// Help is the longer text of "codeq claim --help".
func (c *claimCmd) Help() string {
	return `For scripts that claim a task now and then. It prints one line of three words: id, lease token and payload; the payload
may have spaces. Without a task it prints nothing, and the exit code is 3. Pass the first two words to "codeq complete",
"codeq nack" or "codeq release", and to "codeq heartbeat" if the work takes longer than the lease.

  codeq claim resize --wait 10m | while read -r id token payload; do
    ./resize "$payload" && codeq complete "$id" "$token" '{}' || codeq nack "$id" "$token" "no luck"
  done

If the task cannot be printed, it is handed back at once, and the command fails.

"codeq work" does all of that for a program.`
}

// Run takes one task and prints it.
func (c *claimCmd) Run(a *app) error {
	if err := c.check(); err != nil {
		return err
	}
	if a.outIsNull {
		return errNoOutput
	}
	a.once = c.Once
	return a.ask(func(ctx context.Context, server *client.Client) error {
		claimed, err := server.Claim(ctx, client.ClaimOptions{
			Commands: c.Commands, Lease: c.Lease, WorkerID: c.Name, Wait: c.Wait,
		})
		switch {
		case err != nil:
			return err
		case len(claimed) == 0:
			a.say("no task is ready%s", c.why(ctx, server))
			return saidBefore(exitNotThere)
		}
		return c.handOver(ctx, a, claimed[0])
	})
}

// why is ": queue NAME is paused" or the like, if there is one queue and the credential
// allows to ask.
func (c *claimCmd) why(ctx context.Context, server *client.Client) string {
	if len(c.Commands) > 1 {
		return ""
	}
	queue, err := server.Queue(ctx, c.Commands[0])
	switch {
	case err != nil: // it is only a hint
	case queue.Deleting:
		return ": queue " + c.Commands[0] + " is being deleted"
	case queue.Paused:
		return ": queue " + c.Commands[0] + " is paused"
	}
	return ""
}

// handOver prints a task. Only this process knows its token, so a task that cannot be
// printed is handed back.
func (c *claimCmd) handOver(ctx context.Context, a *app, t *client.Claimed) error {
	lost := a.writeClaimed(t)
	if lost == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackWithin)
	defer cancel()
	if _, err := t.End(ctx, client.NotStarted("")); err != nil {
		return fmt.Errorf("%w; task %s could not be handed back, and is ready again when its lease of %s ends: %w",
			lost, t.Ref.TaskID, c.Lease, err)
	}
	return fmt.Errorf("%w; task %s is handed back", lost, t.Ref.TaskID)
}

// check refuses what the server would refuse, and names the flags.
func (c *claimCmd) check() error {
	request := wire.ClaimRequest{Commands: c.Commands, WorkerID: c.Name, Count: 1}
	if _, refusal := wire.ParseClaimRequest(wire.AppendClaimRequest(nil, &request)); refusal != nil {
		return &exitError{refusal, exitWrong}
	}
	return nil
}

// writeClaimed prints a task for a script on one line. A line break in a payload is white
// space of JSON, so a blank means the same.
func (a *app) writeClaimed(t *client.Claimed) error {
	if a.JSON {
		return a.writeLine(a.answer)
	}
	payload := strings.NewReplacer("\n", " ", "\r", " ").Replace(string(t.Task.Payload))
	return a.writeLine(fmt.Appendf(nil, "%v %v %s", t.Ref.TaskID, t.Ref.Token, payload))
}
