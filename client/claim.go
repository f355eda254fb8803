package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"codeq/wire"
)

// ClaimOptions say which tasks to claim, and for how long.
type ClaimOptions struct {
	// Commands are the commands of the tasks; none means all that the token allows.
	Commands []string
	// Count is the largest number of tasks, from 1 to 100; 0 means 1.
	Count int
	// Lease is how long a task belongs to the caller, rounded up to whole seconds; a
	// heartbeat makes it longer. 0 means the lease of the queue, or else five minutes.
	Lease time.Duration
	// Wait is how long to wait for a task, rounded up to whole seconds; 0 is no wait.
	Wait time.Duration
	// WorkerID is a name for people; "" means the subject of the token.
	WorkerID string
}

// Claimed is a task that was claimed over HTTP. Claims suit programs that take a task
// now and then: a Worker gets its tasks pushed, renews their leases and needs fewer
// requests. Methods may be called from any goroutine. Each sends one request. If the
// server refuses it, the error is a *wire.Error; after the code lease_lost the task
// belongs to somebody else. After any other error the request can be sent again.
type Claimed struct {
	// Task is the task; nil after Client.Claimed.
	Task *wire.Task
	// Ref is the id of the task and the lease token of this delivery.
	Ref    wire.TaskRef
	client *Client
}

// errNoTask is the answer of a server that has no task.
var errNoTask = &failed{error: errors.New("there is no task"), how: late}

// Claim takes tasks over HTTP and waits for one up to o.Wait. If there is none, it
// returns no task and no error. If the connection ends while the claim waits, Claim sends
// it again until o.Wait is over. The server takes a task back whose claim has lost its
// connection; but if a proxy lost the answer, the task is ready again only when its
// lease ends. A notice says so, and so does the error of the last claim.
func (c *Client) Claim(ctx context.Context, o ClaimOptions) ([]*Claimed, error) {
	var claimed []*Claimed
	doubt := false
	wait := time.Duration(wholeSeconds(o.Wait)) * time.Second
	err := c.persist(ctx, waitTask, wait, func(left time.Duration) (err error) {
		o.Wait = min(max(0, left), wire.MaxClaimWaitSeconds*time.Second).Truncate(time.Second)
		claimed, err = c.claimOnce(ctx, o)
		doubt = doubt || fateOf(err)&inDoubt != 0
		return err
	})
	switch {
	case fateOf(err) == late:
		err = nil
	case err != nil && fateOf(err)&inDoubt != 0:
		return nil, fmt.Errorf("%w; %s", err, stranded(o))
	}
	if doubt {
		c.notice("a claim broke off and was made again: " + stranded(o))
	}
	return claimed, err
}

// stranded says when a task is ready again whose answer was lost.
func stranded(o ClaimOptions) string {
	lease := ""
	if o.Lease > 0 {
		lease = fmt.Sprintf(" of %s", o.Lease)
	}
	return "if the server gave it a task, the task is ready again when its lease" + lease + " ends"
}

// claimOnce sends one claim. The error is errNoTask if there is no task.
func (c *Client) claimOnce(ctx context.Context, o ClaimOptions) ([]*Claimed, error) {
	request := &wire.ClaimRequest{
		Commands: o.Commands, LeaseSeconds: int(wholeSeconds(o.Lease)), WaitSeconds: int(wholeSeconds(o.Wait)),
		WorkerID: o.WorkerID, Count: max(o.Count, 1),
	}
	path := apiPath + "/tasks/claim"
	if request.Count > 1 {
		path += "/batch"
	}
	body := wire.AppendClaimRequest(nil, request)
	in := call{method: http.MethodPost, path: path, body: body, waitFor: o.Wait}
	claimed, err := ask(ctx, c, in, "claimed tasks", func(body []byte) ([]*Claimed, error) { return c.parseClaimed(body, request.Count > 1) })
	if err == nil && len(claimed) == 0 {
		err = errNoTask
	}
	return claimed, err
}

// parseClaimed reads the answer to a claim of one task or of several. A body of nothing
// is no task.
func (c *Client) parseClaimed(body []byte, several bool) ([]*Claimed, error) {
	if len(body) == 0 {
		return nil, nil
	}
	list := []json.RawMessage{body}
	if several {
		batch, err := decoded[struct{ Tasks []json.RawMessage }](body)
		if err != nil {
			return nil, err
		}
		list = batch.Tasks
	}
	claimed := make([]*Claimed, 0, len(list))
	for _, raw := range list {
		task, token, err := wire.ParseClaimed(raw)
		if err != nil {
			return nil, err
		}
		claimed = append(claimed, &Claimed{Task: task, Ref: wire.TaskRef{TaskID: task.ID, Token: token}, client: c})
	}
	return claimed, nil
}

// Claimed is a delivery that is known by its id and lease token alone, for example
// because another process has claimed it.
func (c *Client) Claimed(ref wire.TaskRef) *Claimed { return &Claimed{Ref: ref, client: c} }

// Heartbeat extends the lease to extend from now on, rounded up to whole seconds; 0 means
// the length of the lease. It returns the end of the lease by the server's clock.
func (t *Claimed) Heartbeat(ctx context.Context, extend time.Duration) (until time.Time, err error) {
	in := t.call("heartbeat", wire.AppendExtendCall(nil, t.holder(), int(wholeSeconds(extend))))
	said, err := ask(ctx, t.client, in, "the answer to a heartbeat", decoded[struct{ LeaseUntil time.Time }])
	if err != nil {
		return time.Time{}, err
	}
	return said.LeaseUntil, nil
}

// EndAnswer says what follows the end of a delivery.
type EndAnswer struct {
	// DeadLetter: that was the last attempt, and the task is not tried again.
	DeadLetter bool
	// Expired: the task had expired, and is not tried again.
	Expired bool
	// Wait is the time until the next attempt after a nack, rounded up to whole seconds.
	// It is less than NackAfter asked for if the longest backoff of the queue is shorter.
	Wait time.Duration
}

// End ends the delivery with an outcome, made by Complete, Fail, Nack, NackAfter,
// Release, NotStarted or Stopped.
func (t *Claimed) End(ctx context.Context, out Outcome) (*EndAnswer, error) {
	switch out.Kind {
	case Completed:
		return t.end(ctx, "result", wire.AppendResultCall(nil, t.holder(),
			&wire.ResultRequest{Status: wire.StatusCompleted, Result: out.Result}))
	case Failed:
		return t.end(ctx, "result", wire.AppendResultCall(nil, t.holder(),
			&wire.ResultRequest{Status: wire.StatusFailed, Error: out.Reason, Exit: out.exit}))
	case Nacked:
		return t.end(ctx, "nack", wire.AppendNackCall(nil, t.holder(),
			&wire.NackRequest{DelaySeconds: out.delaySeconds, Reason: out.Reason, Exit: out.exit}))
	case Released:
		return t.end(ctx, "release", wire.AppendReleaseCall(nil, t.holder(), out.why))
	}
	return nil, fmt.Errorf("end task %v: make the outcome with Complete, Fail, Nack, NackAfter, Release, NotStarted or Stopped, got %v", t.Ref.TaskID, out.Kind)
}

// Abandon ends the delivery as a failed attempt without a reason. The task is ready
// again at once.
func (t *Claimed) Abandon(ctx context.Context) (*EndAnswer, error) {
	return t.end(ctx, "abandon", wire.AppendHolderCall(nil, t.holder()))
}

func (t *Claimed) end(ctx context.Context, verb string, body []byte) (*EndAnswer, error) {
	said, err := ask(ctx, t.client, t.call(verb, body), "the answer to an outcome", decoded[struct {
		Status       string
		DelaySeconds int64
	}])
	if err != nil {
		return nil, err
	}
	return &EndAnswer{
		DeadLetter: said.Status == wire.NackDeadLettered, Expired: said.Status == wire.NackExpired,
		Wait: time.Duration(said.DelaySeconds) * time.Second,
	}, nil
}

// call is the request of one verb about the delivery.
func (t *Claimed) call(verb string, body []byte) call {
	return call{
		method: http.MethodPost, path: apiPath + "/tasks/" + t.Ref.TaskID.String() + "/" + verb, body: body,
		remedy: fmt.Sprintf("it can be done again without harm, and \"codeq task %v\" shows the task", t.Ref.TaskID),
	}
}

func (t *Claimed) holder() wire.Holder { return wire.Holder{Token: t.Ref.Token} }
