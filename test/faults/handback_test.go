package faults

import (
	"fmt"
	"net/http"
	"testing"

	"codeq/test/blackbox"
	"codeq/wire"
)

// handBacks are the ways in which a session gives up what it has.
var handBacks = map[string]func(x *site, p *blackbox.Peer, f *wire.TaskFrame) error{
	"its session ends": func(_ *site, p *blackbox.Peer, _ *wire.TaskFrame) error {
		p.Close()
		return nil
	},
	"nack": func(x *site, p *blackbox.Peer, f *wire.TaskFrame) error {
		return x.said(p, func(ref wire.Ref) wire.ClientFrame { return &wire.Nack{Ref: ref, TaskRef: blackbox.RefOf(f)} })
	},
	"abandon": func(x *site, p *blackbox.Peer, f *wire.TaskFrame) error {
		return x.said(p, func(ref wire.Ref) wire.ClientFrame { return &wire.Abandon{Ref: ref, TaskRef: blackbox.RefOf(f)} })
	},
	"release": func(x *site, p *blackbox.Peer, f *wire.TaskFrame) error {
		return x.said(p, func(ref wire.Ref) wire.ClientFrame { return &wire.Release{Ref: ref, TaskRef: blackbox.RefOf(f)} })
	},
}

func (x *site) said(p *blackbox.Peer, frame func(ref wire.Ref) wire.ClientFrame) error {
	_, err := p.Ask(x.ctx, frame)
	return err
}

// A task that is handed back, by anybody and in any way, goes to a worker that waits without
// any further task, whatever it waits with.
func TestA04HandedBackReachesWhoeverWaits(t *testing.T) {
	x := newSite(t)
	for name, handBack := range handBacks {
		for _, waits := range []string{"in a session", "with a claim"} {
			t.Run(name+", the other waits "+waits, func(t *testing.T) {
				t.Parallel()
				y := *x
				y.t = t
				y.handedBack(fmt.Sprintf("%.3s.%.1s", name, waits), handBack, waits == "in a session")
			})
		}
	}
	t.Run("from a claim to a session", func(t *testing.T) {
		y := *x
		y.t = t
		id := y.post(command, 1, 0)[0]
		_, token := y.claimOne(3600)
		b := y.worker(y.server.Addr, "b", 1, 3600)
		if _, err := y.api.Do(y.ctx, http.MethodPost, "/tasks/"+id.String()+"/nack", withToken(`{"delaySeconds":0}`, token)); err != nil {
			t.Fatal(err)
		}
		y.complete(b, y.take(b, patience), `{}`)
	})
}

// handedBack gives one task of a queue to one worker, has it handed back and sees
// the other get it.
func (x *site) handedBack(queue string, handBack func(*site, *blackbox.Peer, *wire.TaskFrame) error, inSession bool) {
	x.t.Helper()
	a, b := x.peer(x.server.Addr, "a"), x.peer(x.server.Addr, "b")
	if err := a.Subscribe(x.ctx, queue, 1, 3600); err != nil {
		x.t.Fatal(err)
	}
	x.post(queue, 1, 0)
	f := x.take(a, patience)
	if err := a.Subscribe(x.ctx, "other", 1, 60); err != nil { // it does not want it again
		x.t.Fatal(err)
	}
	if inSession {
		if err := b.Subscribe(x.ctx, queue, 1, 3600); err != nil {
			x.t.Fatal(err)
		}
	}
	claimed := make(chan *wire.Task, 1)
	if !inSession {
		go func() { claimed <- x.claimAndComplete(queue) }()
	}
	if err := handBack(x, a, f); err != nil {
		x.t.Error(err)
	}
	var got *wire.Task
	if inSession {
		again := x.take(b, resumeGrace+patience)
		x.complete(b, again, `{}`)
		got = again.Task
	} else {
		got = <-claimed
	}
	if got == nil || got.ID != f.Task.ID || got.Deliveries != 2 {
		x.t.Errorf("the other got %+v", got)
	}
}

// claimAndComplete waits over HTTP; nil when nothing came.
func (x *site) claimAndComplete(queue string) *wire.Task {
	answer, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/claim", fmt.Sprintf(`{"commands":[%q],"waitSeconds":30}`, queue))
	if err != nil || answer.Status != http.StatusOK {
		x.t.Errorf("claim: %+v, %v", answer, err)
		return nil
	}
	task, token, err := wire.ParseClaimed(answer.Body)
	if err != nil {
		x.t.Errorf("claim: %v", err)
		return nil
	}
	if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/"+task.ID.String()+"/result", withToken(`{"result":{}}`, token)); err != nil {
		x.t.Errorf("complete: %v", err)
	}
	return task
}
