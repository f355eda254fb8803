package conform

import (
	"context"
	"slices"
	"time"

	"codeq/internal/chaos"
	"codeq/wire"
)

// endScripts are about workers and servers that end.
var endScripts = []script{
	{"end/drain", "A drain takes no more tasks, hands back what no handler has begun, and waits for the handlers", "", func(x *run) {
		x.open()
		x.worker(members{"window": 2})
		first := x.post()
		x.want("delivery", members{"delivery": 1})
		x.say("drain", nil)
		x.until("the server must know that the worker takes nothing", func() bool {
			page, err := x.client.Sessions(x.ctx, "")
			x.must(err)
			return len(page.Sessions) == 1 && (page.Sessions[0].Window == 0 || page.Sessions[0].State == wire.SessionDraining)
		})
		second := x.post()
		x.never("delivery", nil)
		x.never("stopped", nil)
		x.answer("complete", 1, members{"result": members{}})
		x.want("settled", members{"delivery": 1, "ok": true})
		x.stops("")
		x.becomes(first, wire.StatusCompleted, 1, 0)
		x.becomes(second, wire.StatusPending, 0, 0)
	}},
	{"end/drain-idle", "Then the socket is closed with 1000.", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		x.want("connected", nil)
		x.say("drain", nil)
		p.ok(p.drained(), nil)
		x.stops("")
		if code := p.ended(); code != 1000 {
			x.fail("the socket was closed with %d", code)
		}
	}},
	{"end/drain-hands-back", "A drain takes no more tasks, hands back what no handler has begun, and waits for the handlers", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.say(p.taskFrame(1, nil), p.taskFrame(2, nil))
		x.want("delivery", members{"delivery": 1, "task": taskID(1)})
		x.say("drain", nil)
		p.ok(p.hear("release", members{"taskId": taskID(2), "leaseToken": token(2)}), members{"status": "requeued"})
		p.ok(p.drained(), nil)
		x.answer("complete", 1, members{"result": members{}})
		p.ok(p.hear("result", members{"taskId": taskID(1)}), nil)
		x.want("settled", members{"delivery": 1, "ok": true})
		x.stops("")
	}},
	{"end/task-on-its-way", "until its `ok` came, which is behind every task that was on its way", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		x.want("connected", nil)
		x.say("drain", nil)
		frame := p.drained()
		p.say(p.taskFrame(1, nil))
		p.ok(frame, nil)
		p.ok(p.hear("release", members{"taskId": taskID(1), "leaseToken": token(1)}), members{"status": "requeued"})
		x.stops("")
		x.never("delivery", nil)
	}},
	{"end/grace-is-over", "When the grace is over, the handlers are cancelled and their tasks handed back", "", func(x *run) {
		x.open()
		x.worker(members{"graceSeconds": 1})
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		x.say("drain", nil)
		x.want("cancelled", members{"delivery": 1, "cause": "stopping"})
		x.stops("")
		x.becomes(id, wire.StatusPending, 1, 0)
	}},
	{"end/stop", "When the grace is over, the handlers are cancelled and their tasks handed back", "", func(x *run) {
		x.open()
		x.worker(members{"window": 2})
		first, second := x.post(), x.post()
		x.want("delivery", members{"delivery": 1})
		x.want("delivery", members{"delivery": 2})
		x.say("stop", nil)
		x.want("cancelled", members{"delivery": 1, "cause": "stopping"})
		x.want("cancelled", members{"delivery": 2, "cause": "stopping"})
		x.stops("")
		x.becomes(first, wire.StatusPending, 1, 0)
		x.becomes(second, wire.StatusPending, 1, 0)
	}},
	{"end/term", "TERM and Ctrl-C drain.", "signals", func(x *run) {
		x.open()
		x.worker(members{"signals": true})
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		x.must(x.driver.terminate())
		x.never("stopped", nil)
		x.answer("complete", 1, members{"result": members{}})
		x.want("settled", members{"delivery": 1, "ok": true})
		x.stops("")
		x.becomes(id, wire.StatusCompleted, 1, 0)
	}},
	{"end/drain-without-a-connection", "An outcome without an answer is sent again over the next session, until it is answered.", "", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		x.proxy.Silence(chaos.Up)
		x.answer("complete", 1, members{"result": members{}})
		x.say("drain", nil)
		x.never("stopped", nil)
		x.proxy.Cut()
		x.proxy.Heal()
		x.want("settled", members{"delivery": 1, "ok": true})
		x.stops("")
		x.becomes(id, wire.StatusCompleted, 1, 0)
	}},
	{"end/server-drains", "`draining` from the server changes nothing for the tasks that the worker has", "", func(x *run) {
		x.open()
		id := x.begin()
		stopped := make(chan error, 1)
		ctx, cancel := context.WithTimeout(x.ctx, x.patience)
		defer cancel()
		go func() { stopped <- x.server.Stop(ctx) }()
		x.never("cancelled", nil)
		x.answer("complete", 1, members{"result": members{"n": 1}})
		x.want("settled", members{"delivery": 1, "ok": true})
		x.must(<-stopped)
		x.want("disconnected", nil)
		x.must(x.server.Again())
		x.want("connected", nil)
		x.hasResult(x.becomes(id, wire.StatusCompleted, 1, 0), `{"n":1}`)
		x.works(2)
	}},
	{"end/server-tells-all", "`draining` from the server changes nothing for the tasks that the worker has", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		p.say(members{"type": "draining", "reason": "the server shuts down", "graceSeconds": 10})
		x.never("cancelled", nil)
		p.close(1012)
		x.want("disconnected", nil)
		next := s.arrives(members{"held": []any{members{"taskId": taskID(1), "leaseToken": token(1)}}})
		next.subscribed()
		x.answer("complete", 1, members{"result": members{}})
		next.ok(next.hear("result", nil), nil)
		x.want("settled", members{"delivery": 1, "ok": true})
	}},
	{"end/admin-drains", "A session that an admin drains keeps its tasks and gets no more until it connects again.", "", func(x *run) {
		x.open()
		session := x.worker(members{"window": 2})
		x.post()
		x.want("delivery", members{"delivery": 1})
		id, valid := wire.ParseSessionID(text(session["session"]))
		if !valid {
			x.fail("the session is %v", session)
		}
		_, err := x.client.DrainSession(x.ctx, id)
		x.must(err)
		x.post()
		x.never("delivery", nil)
		x.answer("complete", 1, members{"result": members{}})
		x.want("settled", members{"delivery": 1, "ok": true})
		x.never("delivery", nil)
		_, err = x.client.DisconnectSession(x.ctx, id)
		x.must(err)
		x.want("connected", nil)
		x.want("delivery", members{"delivery": 2})
	}},
}

// text is a member that is a string.
func text(member any) string {
	s, _ := member.(string) // anything else is no text
	return s
}

// stops waits for the end of the worker.
func (x *run) stops(code string) { x.want("stopped", members{"code": code}) }

// drained waits for the frame with which a worker says that it takes no more.
func (p *peer) drained() event {
	says := func(e event) bool {
		return e.fits(ofFrame, "drain", nil) || e.fits(ofFrame, "window", members{"size": 0})
	}
	for late := time.After(p.x.patience); ; {
		if i := slices.IndexFunc(p.early, says); i >= 0 {
			e := p.early[i]
			p.early = slices.Delete(p.early, i, i+1)
			return e
		}
		e := p.take(late)
		if e == nil {
			p.x.fail("the driver does not say that it takes no more%s", p.instead())
		}
		p.early = append(p.early, e)
	}
}
