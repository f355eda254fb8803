package conform

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lxzan/gws"
)

const page = "<html><body><h1>Not here</h1></body></html>"

// strangeScripts are about what a server may say.
var strangeScripts = []script{
	{"strange/unknown", "Frames, members, codes, reasons and `features` that the SDK does not know are ignored.", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(members{"features": []string{"cancel", "telepathy"}, "mood": members{"of": "the server"}})
		p.ok(p.hear("subscribe", nil), members{"mood": "fine"})
		p.say(members{"type": "weather", "ref": 99, "sky": []int{1, 2}})
		p.sayText(`[]`)
		frame := p.taskFrame(1, members{"mood": nil})
		p.say(members{"type": "weather"}, frame, members{"type": "error", "code": "too_purple", "error": "nobody asked", "retryable": false})
		x.want("delivery", members{"delivery": 1})
		x.answer("complete", 1, members{"result": members{}})
		p.ok(p.hear("result", nil), members{"mood": 7})
		x.want("settled", members{"delivery": 1, "ok": true})
	}},
	{"strange/unknown-code", "Any other code ends the outcome: its place in the window is free, and the code goes to the log.", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		x.answer("complete", 1, members{"result": members{}})
		p.refuse(p.hear("result", nil), "too_purple", nil)
		x.want("settled", members{"delivery": 1, "ok": false, "code": "too_purple"})
		p.push(2)
		x.never("stopped", nil)
	}},
	{"strange/no-json", "A message that is no JSON, and a binary one, end the connection with 4400", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		p.sayText(`[{"type":"task","seq":2`)
		if code := p.ended(); code != 4400 {
			x.fail("the connection was closed with %d", code)
		}
		x.goesOn(s)
	}},
	{"strange/binary", "A message that is no JSON, and a binary one, end the connection with 4400", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		x.must(p.conn.WriteMessage(gws.OpcodeBinary, []byte(`[{"type":"ok","ref":1}]`)))
		if code := p.ended(); code != 4400 {
			x.fail("the connection was closed with %d", code)
		}
		x.goesOn(s)
	}},
	{"strange/subscription-put-off", "A subscription that is refused for now is sent again after a pause.", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		frame, began := p.hear("subscribe", nil), time.Now()
		p.refuse(frame, "overloaded", members{"retryable": true, "retryAfterSeconds": 1})
		p.subscribed()
		if took := time.Since(began); took < 500*time.Millisecond {
			x.fail("the subscription came again after %v, and the server had asked for 1s", took)
		}
		p.push(1)
	}},
	{"strange/subscription-refused", "A worker that never had a session ends at a refusal that waiting does not change", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.refuse(p.hear("subscribe", nil), "forbidden", nil)
		x.stops("forbidden")
	}},
	{"strange/outcome-put-off", "An outcome that is refused for now (`overloaded`, `draining`, `rate_limited`, `not_leader`, `storage_full`, `internal`) is sent again after a pause.", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		x.answer("complete", 1, members{"result": members{"n": 1}})
		for _, code := range []string{"overloaded", "internal", "not_leader"} {
			frame, began := p.hear("result", members{"leaseToken": token(1)}), time.Now()
			p.refuse(frame, code, members{"retryable": true, "retryAfterSeconds": 1})
			p.early = append(p.early, p.hear("result", members{"leaseToken": token(1)}))
			if took := time.Since(began); took < 500*time.Millisecond {
				x.fail("after %s the outcome came again after %v, and the server had asked for 1s", code, took)
			}
		}
		x.never("settled", nil)
		p.ok(p.hear("result", nil), nil)
		x.want("settled", members{"delivery": 1, "outcome": "completed", "ok": true})
	}},
	{"strange/heartbeat-refused", "Frames, members, codes, reasons and `features` that the SDK does not know are ignored.", "", func(x *run) {
		s := x.play()
		x.startWorker(members{"leaseSeconds": 3})
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		for {
			beat := p.hear("heartbeat", nil)
			if names(beat, 1) {
				p.refuse(beat, "overloaded", members{"retryable": true})
				break
			}
			p.ok(beat, members{"lost": []any{}})
		}
		p.ok(p.hear("heartbeat", nil), members{"lost": []any{}})
		x.never("cancelled", nil)
		x.never("disconnected", nil)
	}},
	{"strange/full", "connect again after a longer pause", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		for over := time.Now().Add(4 * time.Second); time.Now().Before(over); {
			s.upgraded().close(4429)
		}
		if n := len(s.attempts()); n > 10 {
			x.fail("the driver made %d attempts in a few seconds", n)
		}
		s.arrives(nil).subscribed()
	}},
	{"strange/unauthenticated", "A worker that never had a session ends at a refusal that waiting does not change", "", func(x *run) {
		s := x.play()
		x.token = "cq_wrong"
		s.refuses(401, `{"error":"the token is unknown","code":"unauthenticated","retryable":false}`)
		x.startWorker(nil)
		x.stops("unauthenticated")
		if n := len(s.attempts()); n != 1 {
			x.fail("the driver tried %d times", n)
		}
	}},
	{"strange/token-removed", "A worker that had a session once never gives up", "", func(x *run) {
		s := x.play()
		x.token = "cq_right"
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		s.refuses(401, `{"error":"the token is unknown","code":"unauthenticated","retryable":false}`)
		p.close(4401)
		x.want("disconnected", nil)
		x.until("the driver must try again", func() bool { return len(s.attempts()) >= 3 })
		x.never("stopped", nil)
		x.never("cancelled", nil)
		x.answer("complete", 1, members{"result": members{}})
		s.answers(nil)
		next := s.arrives(members{"held": []any{members{"taskId": taskID(1), "leaseToken": token(1)}}})
		next.ok(next.hear("result", nil), nil)
		x.want("settled", members{"delivery": 1, "ok": true})
	}},
	{"strange/token-changes", "A token may be a function, which is asked before each request and each session", "tokens", func(x *run) {
		s := x.play()
		x.token = "cq_old"
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		x.want("token", members{"id": x.ask("token", members{"becomes": "cq_new"})})
		p.close(4401)
		next := s.arrives(nil)
		next.subscribed()
		all := s.attempts()
		if first, then := fmt.Sprint(p.hello, all[0].header), fmt.Sprint(next.hello, all[len(all)-1].header); !strings.Contains(first, "cq_old") || !strings.Contains(then, "cq_new") {
			x.fail("the token of the first session must be cq_old, and of the second cq_new: %s, %s", first, then)
		}
		s.refuses(401, `{"error":"the token is unknown","code":"unauthenticated","retryable":false}`)
		x.want("error", members{"id": x.ask("task", members{"task": taskID(1)}), "code": "unauthenticated"})
		if said := s.requests(taskID(1))[0].header.Get("Authorization"); said != "Bearer cq_new" {
			x.fail("the request came with %q", said)
		}
	}},
	{"strange/connect-put-off", "A pause that a refusal names in `retryAfterSeconds` or the header `Retry-After` is the least.", "", func(x *run) {
		s := x.play()
		s.refuses(503, `{"error":"too many sessions","code":"overloaded","retryable":true,"retryAfterSeconds":2}`, "Retry-After", "2")
		x.startWorker(nil)
		x.until("the driver must try twice", func() bool { return len(s.attempts()) >= 2 })
		all := s.attempts()
		if pause := all[1].at.Sub(all[0].at); pause < 1500*time.Millisecond {
			x.fail("the driver came again after %v, and the server had asked for 2s", pause)
		}
		s.answers(nil)
		s.arrives(nil).subscribed()
	}},
}

// goesOn is the next session, over which the driver finishes task 1.
func (x *run) goesOn(s *stage) {
	next := s.arrives(members{"held": []any{members{"taskId": taskID(1), "leaseToken": token(1)}}})
	next.subscribed()
	x.never("cancelled", nil)
	x.answer("complete", 1, members{"result": members{}})
	next.ok(next.hear("result", nil), nil)
	x.want("settled", members{"delivery": 1, "ok": true})
}

// wayScripts are about redirects and proxies.
var wayScripts = []script{
	{"way/session-redirected", "Sessions follow them, too.", "", func(x *run) {
		front, s := x.play(), x.stage()
		front.redirects(307, s)
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
	}},
	{"way/session-token-stays", "The token goes to no other host or port.", "", func(x *run) {
		front, s := x.play(), x.stage()
		front.redirects(307, s)
		x.token = "cq_secret"
		x.startWorker(nil)
		p := s.arrives(nil)
		said := fmt.Sprint(p.hello, s.attempts()[0].header)
		if strings.Contains(said, "cq_secret") {
			x.fail("the other server was told the token: %s", said)
		}
	}},
	{"way/session-moved", "Redirects with 307 and 308 are followed, with the method and the body, at most five, and never from https to http.", "", func(x *run) {
		front, s := x.play(), x.stage()
		front.redirects(302, s)
		x.startWorker(nil)
		x.stops("moved")
	}},
	{"way/session-in-a-circle", "Redirects with 307 and 308 are followed, with the method and the body, at most five, and never from https to http.", "", func(x *run) {
		s := x.play()
		s.redirects(307, s)
		x.startWorker(nil)
		x.stops("moved")
		if n := len(s.attempts()); n > 7 {
			x.fail("the driver followed %d redirects", n)
		}
	}},
	{"way/session-behind-a-proxy", "503 and 429, an answer from 500 on without a code, and a connection that breaks are reasons to wait.", "", func(x *run) {
		s := x.play()
		s.refuses(502, page)
		x.startWorker(nil)
		x.until("the driver must try again", func() bool { return len(s.attempts()) >= 2 })
		s.answers(nil)
		s.arrives(nil).subscribed()
		x.never("stopped", nil)
	}},
	{"way/session-of-another-server", "A worker that never had a session ends at a refusal that waiting does not change", "", func(x *run) {
		s := x.play()
		s.refuses(404, page)
		x.startWorker(nil)
		x.stops("not_codeq")
	}},
	{"way/post-redirected", "Redirects with 307 and 308 are followed, with the method and the body, at most five, and never from https to http.", "", func(x *run) {
		x.open()
		front := x.stage()
		for _, status := range []int{307, 308} {
			front.redirectsTo(status, x.url)
			id := x.ask("enqueue", members{"url": "http://" + front.addr, "command": "a", "payload": status})
			task := x.task(text(x.want("enqueued", members{"id": id})["task"]))
			if got := string(task.Payload); got != fmt.Sprint(status) {
				x.fail("the payload of the task is %s", got)
			}
		}
	}},
	{"way/post-moved", "301, 302 and 303 are errors that name the address", "", func(x *run) {
		front, s := x.play(), x.stage()
		for _, status := range []int{301, 302, 303} {
			front.redirects(status, s)
			id := x.ask("enqueue", members{"command": "a", "payload": 1})
			x.want("error", members{"id": id, "code": "moved"})
		}
		if n := len(s.requests("")); n != 0 {
			x.fail("the driver made %d requests to the new address", n)
		}
	}},
	{"way/post-token-stays", "The token goes to no other host or port.", "", func(x *run) {
		front, s := x.play(), x.stage()
		front.redirects(307, s)
		s.refuses(401, `{"error":"no token","code":"unauthenticated","retryable":false}`)
		id := x.ask("enqueue", members{"command": "a", "payload": 1, "token": "cq_secret"})
		x.want("error", members{"id": id, "code": "unauthenticated"})
		if header := s.requests("/tasks")[0].header; header.Get("Authorization") != "" {
			x.fail("the other server was told the token")
		}
		if header := front.requests("/tasks")[0].header; header.Get("Authorization") != "Bearer cq_secret" {
			x.fail("the server was told no token")
		}
	}},
	{"way/task-of-another-server", "What the SDK finds itself has codes of its own", "", func(x *run) {
		s := x.play()
		s.refuses(404, page)
		x.want("error", members{"id": x.ask("task", members{"task": taskID(1)}), "code": "not_codeq"})
		s.refuses(200, page)
		x.want("error", members{"id": x.ask("task", members{"task": taskID(1)}), "code": "not_codeq"})
	}},
}

// redirects answers every request with a redirect to another stage, redirectsTo to an address.
func (s *stage) redirects(status int, to *stage) { s.redirectsTo(status, "http://"+to.addr) }

func (s *stage) redirectsTo(status int, url string) {
	s.answers(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Location", url+r.URL.RequestURI())
		w.WriteHeader(status)
		return true
	})
}
