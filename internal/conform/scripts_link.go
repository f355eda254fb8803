package conform

import (
	"context"
	"strings"
	"time"

	"codeq/internal/chaos"
	"codeq/internal/testserver"
	"codeq/wire"
)

// linkScripts are about connections that are not there, break or are slow.
var linkScripts = []script{
	{"link/not-there-yet", "A worker waits for a server that is not there yet.", "", func(x *run) {
		addr := x.freeAddr()
		x.url = "http://" + addr
		x.startWorker(nil)
		x.never("stopped", nil)
		x.serve(testserver.Options{Listen: addr})
		x.want("connected", nil)
		x.works(1)
	}},
	{"link/pauses-grow", "The pause between two attempts grows, is partly random, and stays under ten seconds.", "", func(x *run) {
		s := x.play()
		s.refuses(503, `{"error":"the server starts","code":"draining","retryable":true}`)
		x.startWorker(nil)
		x.until("the driver must try at least three times", func() bool { return len(s.attempts()) >= 3 })
		time.Sleep(5 * time.Second)
		all := s.attempts()
		if len(all) > 12 {
			x.fail("the driver made %d attempts in little more than 5s", len(all))
		}
		if first, last := all[1].at.Sub(all[0].at), time.Since(all[0].at)/time.Duration(len(all)); first > 2*time.Second+x.slack || last > 10*time.Second+x.slack {
			x.fail("the first pause was %v, all %v on average", first, last)
		}
		s.answers(nil)
		s.arrives(nil).subscribed()
	}},
	{"link/cut-while-idle", "The first attempt after a lost session comes within a second.", "", func(x *run) {
		x.open()
		x.worker(nil)
		x.proxy.Cut()
		x.want("disconnected", nil)
		x.wantWithin(5*time.Second+x.slack, "connected", nil)
		x.works(1)
	}},
	{"link/cut-while-working", "A lost connection does not stop the handlers.", "", func(x *run) {
		x.open()
		id := x.begin()
		x.proxy.Cut()
		x.want("disconnected", nil)
		x.want("connected", nil)
		x.never("cancelled", nil)
		x.answer("complete", 1, members{"result": members{}})
		x.want("settled", members{"delivery": 1, "ok": true})
		x.becomes(id, wire.StatusCompleted, 1, 0)
	}},
	{"link/cut-before-the-result", "An outcome without an answer is sent again over the next session, until it is answered.", "", func(x *run) {
		x.open()
		id := x.begin()
		x.proxy.Silence(chaos.Up)
		x.answer("complete", 1, members{"result": members{"n": 1}})
		x.never("settled", nil)
		x.proxy.Cut()
		x.proxy.Heal()
		x.want("settled", members{"delivery": 1, "outcome": "completed", "ok": true})
		x.hasResult(x.becomes(id, wire.StatusCompleted, 1, 0), `{"n":1}`)
	}},
	{"link/cut-after-the-result", "An outcome without an answer is sent again over the next session, until it is answered.", "", func(x *run) {
		x.open()
		id := x.begin()
		x.proxy.Silence(chaos.Down)
		x.answer("complete", 1, members{"result": members{"n": 1}})
		x.becomes(id, wire.StatusCompleted, 1, 0)
		x.never("settled", nil)
		x.proxy.Cut()
		x.proxy.Heal()
		x.want("settled", members{"delivery": 1, "outcome": "completed", "ok": true})
		x.works(2)
	}},
	{"link/answered-while-away", "An outcome without an answer is sent again over the next session, until it is answered.", "", func(x *run) {
		x.open()
		id := x.begin()
		x.proxy.Refuse()
		x.proxy.Cut()
		x.want("disconnected", nil)
		x.answer("nack", 1, members{"reason": "busy", "delaySeconds": 5})
		x.never("settled", nil)
		x.proxy.Heal()
		x.want("settled", members{"delivery": 1, "outcome": "nacked", "ok": true})
		x.hasError(x.becomes(id, wire.StatusPending, 1, 1), "busy")
	}},
	{"link/half-open", "After two and a half pings of silence the connection is dead.", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		s.arrives(members{"pingSeconds": 1}) // and nothing comes after it
		x.want("disconnected", nil)
		next := s.arrives(nil)
		next.subscribed()
		next.push(1)
	}},
	{"link/half-closed-result", "After two and a half pings of silence the connection is dead.", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		p.cut()
		x.want("disconnected", nil)
		held := []any{members{"taskId": taskID(1), "leaseToken": token(1)}}
		s.arrives(members{"pingSeconds": 1, "held": held}) // and nothing comes after it
		x.answer("complete", 1, members{"result": members{}})
		x.want("disconnected", nil)
		next := s.arrives(members{"held": held})
		next.ok(next.hear("result", members{"taskId": taskID(1), "leaseToken": token(1)}), nil)
		x.want("settled", members{"delivery": 1, "ok": true})
	}},
	{"link/slow", "A large message that comes slowly is no silence", "", func(x *run) {
		s := x.play()
		slow, err := chaos.Start(s.addr)
		x.must(err)
		x.after(slow.Close)
		slow.Slow(60_000, chaos.Down)
		x.startWorker(members{"url": "http://" + slow.Addr})
		p := s.arrives(members{"pingSeconds": 2})
		p.subscribed()
		text := strings.Repeat("slow and steady ", 30_000) // 8 s, and 5 s are silence
		frame := p.taskFrame(1, nil)
		frame["task"].(members)["payload"] = text
		p.say(frame)
		x.wantWithin(defaultPatience+x.slack, "delivery", members{"delivery": 1, "payload": text})
	}},
	{"link/ping-is-echoed", "with the bytes that they carry", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		x.must(p.conn.WritePing([]byte("number 7")))
		select {
		case pong := <-p.pongs:
			if pong != "number 7" {
				x.fail("the pong has %q", pong)
			}
		case <-time.After(x.patience):
			x.fail("no pong came within %v", x.patience)
		}
	}},
	{"link/server-restarts", "A lost connection does not stop the handlers.", "", func(x *run) {
		x.open()
		id := x.begin()
		now, cancel := context.WithCancel(x.ctx)
		cancel()
		x.must(x.server.Stop(now))
		x.want("disconnected", nil)
		x.must(x.server.Again())
		x.want("connected", nil)
		x.answer("complete", 1, members{"result": members{}})
		x.want("settled", members{"delivery": 1, "ok": true})
		x.becomes(id, wire.StatusCompleted, 1, 0)
		x.works(2)
	}},
}

// resumeScripts are about sessions that go on over another socket.
var resumeScripts = []script{
	{"resume/key", "The SDK connects again and sends `hello` with the key `resume` of the last `welcome`.", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(members{"resume": "key-1"})
		if !same(p.hello["workerId"], "kit") || p.hello["resume"] != nil {
			x.fail("the first hello is %v", p.hello)
		}
		p.subscribed()
		p.push(1)
		p.cut()
		next := s.arrives(members{"resume": "key-2", "held": []any{members{"taskId": taskID(1), "leaseToken": token(1)}}})
		if !same(next.hello["resume"], "key-1") {
			x.fail("the second hello is %v, want the key of the first welcome", next.hello)
		}
		next.subscribed()
		x.never("cancelled", nil)
		next.cut()
		if last := s.arrives(nil); !same(last.hello["resume"], "key-2") {
			x.fail("the third hello is %v, want the key of the second welcome", last.hello)
		}
	}},
	{"resume/same-session", "The SDK connects again and sends `hello` with the key `resume` of the last `welcome`.", "", func(x *run) {
		x.open()
		id := x.begin()
		first := x.session
		x.proxy.Cut()
		x.want("connected", members{"session": first})
		x.answer("complete", 1, members{"result": members{}})
		x.want("settled", members{"delivery": 1, "ok": true})
		x.becomes(id, wire.StatusCompleted, 1, 0)
	}},
	{"resume/not-held", "what it has and `held` does not is lost; what `held` has and it does not know is released", "", func(x *run) {
		s := x.play()
		x.startWorker(members{"window": 2})
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		p.push(2)
		p.cut()
		next := s.arrives(members{"held": []any{members{"taskId": taskID(2), "leaseToken": token(2)}}})
		next.subscribed()
		x.want("cancelled", members{"delivery": 1, "cause": "lease_lost"})
		x.never("cancelled", members{"delivery": 2})
	}},
	{"resume/held-and-unknown", "what it has and `held` does not is lost; what `held` has and it does not know is released", "", func(x *run) {
		s := x.play()
		x.startWorker(members{"window": 2})
		p := s.arrives(nil)
		p.subscribed()
		p.cut()
		next := s.arrives(members{"held": []any{members{"taskId": taskID(7), "leaseToken": token(7)}}})
		next.ok(next.hear("release", members{"taskId": taskID(7), "leaseToken": token(7)}), nil)
		x.never("delivery", nil)
	}},
	{"resume/new-session", "a heartbeat takes over what the worker has, and its window is smaller by that until it is answered", "", func(x *run) {
		s := x.play()
		x.startWorker(members{"window": 3})
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		p.cut()
		next := s.arrives(members{"sessionId": "01a21f91-0c3d-7e42-a0b1-4f6d2c8e9a77", "resume": "other"})
		beat := next.hear("heartbeat", nil)
		if !names(beat, 1) {
			x.fail("the heartbeat is %v, want the delivery in it", beat)
		}
		next.ok(beat, members{"lost": []any{}})
		if f := next.subscribed(); !same(f["window"], 2) {
			x.fail("the subscription is %v, want a window of 2 beside the one that was carried over", f)
		}
		x.never("cancelled", nil)
		x.answer("complete", 1, members{"result": members{}})
		next.ok(next.hear("result", members{"taskId": taskID(1)}), nil)
		next.ok(next.hear("window", members{"size": 3}), nil)
		x.want("settled", members{"delivery": 1, "ok": true})
	}},
	{"resume/new-session-lost", "A lost delivery cancels its handler, with the cause.", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		p.cut()
		next := s.arrives(members{"sessionId": "01a21f91-0c3d-7e42-a0b1-4f6d2c8e9a77"})
		next.ok(next.hear("heartbeat", nil), members{"lost": []any{members{"taskId": taskID(1), "leaseToken": token(1)}}})
		x.want("cancelled", members{"delivery": 1, "cause": "lease_lost"})
	}},
	{"resume/outcome-first", "It is sent before the heartbeat", "", func(x *run) {
		s := x.play()
		x.startWorker(members{"window": 2})
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		p.push(2)
		x.answer("complete", 1, members{"result": members{"n": 1}})
		first := p.hear("result", members{"taskId": taskID(1), "leaseToken": token(1)})
		p.cut()
		next := s.arrives(members{"held": []any{members{"taskId": taskID(1), "leaseToken": token(1)}, members{"taskId": taskID(2), "leaseToken": token(2)}}})
		again := next.hear("result", members{"taskId": taskID(1), "leaseToken": token(1)})
		for _, early := range next.early {
			if early["type"] == "heartbeat" {
				x.fail("the heartbeat %v came before the outcome", early)
			}
		}
		if first["status"] != again["status"] || !same(again["result"], map[string]any{"n": 1.0}) {
			x.fail("the outcome was %v, and is sent again as %v", first, again)
		}
		next.ok(again, nil)
		x.want("settled", members{"delivery": 1, "ok": true})
		next.subscribed()
	}},
	{"resume/grace-is-over", "what it has and `held` does not is lost; what `held` has and it does not know is released", "", func(x *run) {
		x.open()
		id := x.begin()
		x.proxy.Refuse()
		x.proxy.Cut()
		x.want("disconnected", nil)
		x.until("the server must miss the session", func() bool {
			page, err := x.client.Sessions(x.ctx, "")
			x.must(err)
			return len(page.Sessions) == 0 || page.Sessions[0].State != wire.SessionLive
		})
		x.advance(16 * time.Second)
		x.never("cancelled", nil)
		x.proxy.Heal()
		x.want("connected", nil)
		x.want("cancelled", members{"delivery": 1, "cause": "lease_lost"})
		x.answer("complete", 1, members{"result": members{"n": 1}})
		x.want("settled", members{"delivery": 1})
		if task := x.task(id); task.Attempts != 1 {
			x.fail("the lost lease counts %d attempts", task.Attempts)
		}
	}},
	{"resume/replaced", "begin a new session: another socket has this one", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(members{"resume": "key-1"})
		p.subscribed()
		p.close(4409)
		if next := s.arrives(nil); next.hello["resume"] != nil {
			x.fail("the hello is %v, want none with the key of a session that another socket has", next.hello)
		}
	}},
}
