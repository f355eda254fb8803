package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// hands are how a worker speaks of its deliveries: over its session, or over
// HTTP.
type hands interface {
	complete(ctx context.Context, ref wire.TaskRef, r wire.ResultRequest) error
	giveBack(ctx context.Context, ref wire.TaskRef, how string) error
	// heartbeat returns until when the lease holds, or codeLost.
	heartbeat(ctx context.Context, ref wire.TaskRef) (untilMs int64, err error)
	by() way
}

// sessionHands speak over a session.
type sessionHands struct{ *blackbox.Peer }

func (h sessionHands) complete(ctx context.Context, task wire.TaskRef, r wire.ResultRequest) error {
	_, err := h.Ask(ctx, func(ref wire.Ref) wire.ClientFrame {
		return &wire.Result{Ref: ref, TaskRef: task, ResultRequest: r}
	})
	return err
}

func (h sessionHands) giveBack(ctx context.Context, task wire.TaskRef, how string) error {
	_, err := h.Ask(ctx, func(ref wire.Ref) wire.ClientFrame {
		switch how {
		case "nack":
			return &wire.Nack{Ref: ref, TaskRef: task}
		case "abandon":
			return &wire.Abandon{Ref: ref, TaskRef: task}
		default:
			return &wire.Release{Ref: ref, TaskRef: task}
		}
	})
	return err
}

func (h sessionHands) heartbeat(ctx context.Context, task wire.TaskRef) (int64, error) {
	ok, err := h.Ask(ctx, func(ref wire.Ref) wire.ClientFrame {
		return &wire.Heartbeat{Ref: ref, Tasks: []wire.TaskRef{task}}
	})
	if err != nil {
		return 0, err
	}
	if len(ok.Lost) > 0 {
		return 0, wire.Refuse(codeLost, "the heartbeat names the task as lost")
	}
	return ok.LeaseUntilMs, nil
}

func (h sessionHands) by() way { return bySession }

// httpHands speak over HTTP, with the token of the delivery.
type httpHands struct{ api *blackbox.API }

func (h httpHands) complete(ctx context.Context, task wire.TaskRef, r wire.ResultRequest) error {
	return h.say(ctx, task, "result", wire.AppendResultCall(nil, wire.Holder{Token: task.Token}, &r))
}

func (h httpHands) giveBack(ctx context.Context, task wire.TaskRef, how string) error {
	holder := wire.Holder{Token: task.Token}
	if how == "nack" {
		return h.say(ctx, task, how, wire.AppendNackCall(nil, holder, &wire.NackRequest{}))
	}
	return h.say(ctx, task, how, wire.AppendHolderCall(nil, holder))
}

func (h httpHands) say(ctx context.Context, task wire.TaskRef, verb string, body []byte) error {
	_, err := h.api.Do(ctx, "POST", "/tasks/"+task.TaskID.String()+"/"+verb, string(body))
	return err
}

func (h httpHands) heartbeat(ctx context.Context, task wire.TaskRef) (int64, error) {
	body := wire.AppendExtendCall(nil, wire.Holder{Token: task.Token}, 0)
	answer, err := h.api.Do(ctx, "POST", "/tasks/"+task.TaskID.String()+"/heartbeat", string(body))
	if err != nil {
		return 0, err
	}
	var said struct {
		OK         bool
		LeaseUntil time.Time
	}
	if err := json.Unmarshal(answer.Body, &said); err != nil || !said.OK {
		return 0, fmt.Errorf("a heartbeat is answered with %s (%v)", answer.Body, err)
	}
	return said.LeaseUntil.UnixMilli(), nil
}

func (h httpHands) by() way { return byHTTP }

// otherHands are new ones after a loss, over a session or over HTTP, and what
// lets them go; nil hands mean the end of the world.
func (c *client) otherHands() (hands, func()) {
	if c.one(2) {
		c.pause(redialAfter) // the server may be down
		return httpHands{c.api}, func() {}
	}
	p := c.dial()
	if p == nil {
		return nil, func() {}
	}
	return sessionHands{p}, p.Close
}
