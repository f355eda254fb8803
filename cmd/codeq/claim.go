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

// held are the arguments that name a delivery: the first words that "codeq claim" prints.
type held struct {
	ID         string `arg:"" name:"id" help:"Id of the task, the first word that \"codeq claim\" prints."`
	LeaseToken string `arg:"" name:"lease-token" help:"Token of the lease, the second word that \"codeq claim\" prints."`
}

// ref reads both.
func (h *held) ref() (ref wire.TaskRef, err error) {
	if ref.TaskID, err = parseID(h.ID); err != nil {
		return ref, err
	}
	token, ok := wire.ParseToken(h.LeaseToken)
	if !ok {
		return ref, wrong("%q is not a lease token: it has 32 hexadecimal digits and is the second word that \"codeq claim\" prints", h.LeaseToken)
	}
	ref.Token = token
	return ref, nil
}

// exited are the flags that tell how the program of a task ended.
type exited struct {
	ExitCode *int   `xor:"exit" least:"0" most:"4294967295" help:"Exit code of the program that worked on the task. It is kept with the task."`
	Signal   string `xor:"exit" placeholder:"NAME" help:"Signal that ended the program, like SIGKILL. It is kept with the task."`
}

// exit reads both.
func (e *exited) exit() (exit wire.Exit, err error) {
	if e.ExitCode != nil {
		return wire.Exit{Code: *e.ExitCode, Coded: true}, nil
	}
	if e.Signal != "" {
		if problem := wire.NameProblem(e.Signal, wire.MaxSignalBytes); problem != "" {
			return exit, wrong("--signal %s", problem)
		}
	}
	return wire.Exit{Signal: e.Signal}, nil
}

// end ends a delivery. Without --json it prints nothing, unless the task is a dead letter
// or has expired.
func (h *held) end(a *app, out client.Outcome) error {
	answer, err := h.ask(a, out)
	if err != nil {
		return err
	}
	return h.tell(a, answer)
}

// ask ends a delivery.
func (h *held) ask(a *app, out client.Outcome) (*client.EndAnswer, error) {
	ref, err := h.ref()
	if err != nil {
		return nil, err
	}
	var answer *client.EndAnswer
	err = a.ask(func(ctx context.Context, c *client.Client) error {
		answer, err = c.Claimed(ref).End(ctx, out)
		return err
	})
	return answer, err
}

// tell prints the outcome.
func (h *held) tell(a *app, answer *client.EndAnswer) error {
	if a.JSON {
		return a.writeLine(a.answer)
	}
	if answer.DeadLetter {
		a.say("task %s is a dead letter: that was its last attempt", h.ID)
	}
	if answer.Expired {
		a.say("task %s has expired and is not retried: its time is over", h.ID)
	}
	return nil
}
