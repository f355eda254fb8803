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

// ClaimOptions say which tasks are wanted, and for how long.
type ClaimOptions struct {
	// Commands are whose tasks; none is all that the credential allows.
	Commands []string
	// Count is how many tasks at most, from 1 to 100; 0 is 1.
	Count int
	// Lease is how long a task stays with the caller without another word, in
	// whole seconds; 0 is what the queue says, or else five minutes.
	Lease time.Duration
	// Wait is how long to wait for a task when there is none, in whole seconds; 0
	// is not at all.
	Wait time.Duration
	// WorkerID is a name for people; "" is the subject of the credential.
	WorkerID string
}

// Claimed is a task in the caller's hands that came over HTTP, and everything
// that can be said about it. It suits programs that take a task now and then; a
// Worker is pushed its tasks, renews their leases itself and takes less of
// everything. Methods may be called from any goroutine. Each sends one request,
// and returns a *wire.Error for a refusal (lease_lost: drop the work). After any
// other error it does no harm to send it again, ErrOutcomeUnknown included.
type Claimed struct {
	// Task is nil after Client.Claimed.
	Task *wire.Task
	// Ref names the delivery.
	Ref    wire.TaskRef
	client *Client
}

// errNoTask is the answer of a server that has no task.
var errNoTask = &failed{error: errors.New("there is no task"), how: late}

// Claim takes tasks over HTTP, and waits for one up to o.Wait. None is no error.
// A claim that breaks off while it waits is made again until the time is over.
// The server gives nothing to a claim whose connection is gone, or takes it back;
// but if an answer was lost in a proxy, the task in it comes back only when its
// lease is over. A notice says so, and so does the error of the last claim.
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

// stranded says what becomes of a task whose answer was lost.
func stranded(o ClaimOptions) string {
	lease := ""
	if o.Lease > 0 {
		lease = fmt.Sprintf(" of %s", o.Lease)
	}
	return "if the server gave it a task, that one is ready again when its lease" + lease + " is over"
}

// claimOnce asks once. No task is errNoTask.
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

// Claimed is a delivery of which only the name was kept, by another process
// perhaps.
func (c *Client) Claimed(ref wire.TaskRef) *Claimed { return &Claimed{Ref: ref, client: c} }

// Heartbeat keeps the task for that long from now on, in whole seconds; 0 is the
// length of its lease. It returns when the lease is over then, by the server's
// clock.
func (t *Claimed) Heartbeat(ctx context.Context, extend time.Duration) (until time.Time, err error) {
	in := t.call("heartbeat", wire.AppendExtendCall(nil, t.holder(), int(wholeSeconds(extend))))
	said, err := ask(ctx, t.client, in, "the answer to a heartbeat", decoded[struct{ LeaseUntil time.Time }])
	if err != nil {
		return time.Time{}, err
	}
	return said.LeaseUntil, nil
}

// EndAnswer is the answer to an outcome. DeadLetter: that was the last attempt,
// and the task is not tried again. Expired: the task had expired, and ended. Wait is after how long it is tried again after
// a nack, in whole seconds, rounded up: less than was asked for where the queue
// lets no task wait so long.
type EndAnswer struct {
	DeadLetter bool
	Expired    bool
	Wait       time.Duration
}

// End ends the delivery with an outcome: Complete, Fail, Nack, NackAfter,
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
	return nil, fmt.Errorf("end task %v: %v is none that was made by Complete, Fail, Nack or Release", t.Ref.TaskID, out.Kind)
}

// Abandon ends the delivery as failed, without a reason, and lets another worker
// try at once.
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
