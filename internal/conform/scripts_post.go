package conform

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"codeq/client"
	"codeq/internal/chaos"
	"codeq/internal/testserver"
	"codeq/wire"
)

// postScripts are about posts of tasks.
var postScripts = []script{
	{"post/options", "A task that was posted once is there once.", "", func(x *run) {
		x.open()
		id := x.ask("enqueue", members{"command": "a", "payload": members{"n": 1}, "priority": 7, "delaySeconds": 60, "maxAttempts": 3, "timeoutSeconds": 90,
			"labels": members{"customer": "acme"}, "concurrencyKey": "acme"})
		answer := x.want("enqueued", members{"id": id, "replayed": false})
		t := x.task(text(answer["task"]))
		if t.Priority != 7 || t.MaxAttempts != 3 || t.TimeoutSeconds != 90 || t.Location != wire.LocationDelayed || t.ConcurrencyKey != "acme" ||
			len(t.Labels.List()) != 1 || t.Labels.List()[0] != "customer=acme" || string(t.Payload) != `{"n":1}` {
			x.fail("the task is %+v", t)
		}
	}},
	{"post/twice-with-a-key", "A task that was posted once is there once.", "", func(x *run) {
		x.open()
		first := x.want("enqueued", members{"id": x.ask("enqueue", members{"command": "a", "payload": 1, "key": "k"}), "replayed": false})
		x.want("enqueued", members{"id": x.ask("enqueue", members{"command": "a", "payload": 1, "key": "k"}), "replayed": true, "task": text(first["task"])})
	}},
	{"post/answer-lost-with-a-key", "A task that was posted once is there once.", "", func(x *run) {
		x.open()
		x.proxy.Silence(chaos.Down)
		id := x.ask("enqueue", members{"command": "a", "payload": 1, "key": "k"})
		x.until("the task must be there", func() bool { return x.countTasks() == 1 })
		x.proxy.Cut()
		x.proxy.Heal()
		x.want("enqueued", members{"id": id})
		if n := x.countTasks(); n != 1 {
			x.fail("there are %d tasks", n)
		}
	}},
	{"post/answer-lost-without-a-key", "Without a key it never repeats one that may have arrived: the error says that the outcome is unknown.", "", func(x *run) {
		x.open()
		x.proxy.Silence(chaos.Down)
		id := x.ask("enqueue", members{"command": "a", "payload": 1})
		x.until("the task must be there", func() bool { return x.countTasks() == 1 })
		x.proxy.Cut()
		x.proxy.Heal()
		x.want("error", members{"id": id, "code": "outcome_unknown"})
		x.never("enqueued", nil)
		if n := x.countTasks(); n != 1 {
			x.fail("there are %d tasks", n)
		}
	}},
	{"post/unreachable", "If nothing was sent, the error is another one.", "", func(x *run) {
		x.url = "http://" + x.freeAddr()
		x.want("error", members{"id": x.ask("enqueue", members{"command": "a", "payload": 1}), "code": "unreachable"})
	}},
	{"post/waits-with-a-key", "With an idempotency key the SDK repeats a post whose answer was lost, until it is answered", "", func(x *run) {
		addr := x.freeAddr()
		x.url = "http://" + addr
		id := x.ask("enqueue", members{"command": "a", "payload": 1, "key": "k"})
		x.never("error", nil)
		x.serve(testserver.Options{Listen: addr})
		x.want("enqueued", members{"id": id, "replayed": false})
	}},
	{"post/proxy-error-with-a-key", "With an idempotency key the SDK repeats a post whose answer was lost, until it is answered", "", func(x *run) {
		x.open()
		front := x.stage()
		front.fails(2, 502, page, x.url)
		id := x.ask("enqueue", members{"url": "http://" + front.addr, "command": "a", "payload": 1, "key": "k"})
		x.want("enqueued", members{"id": id})
		if n := x.countTasks(); n != 1 {
			x.fail("there are %d tasks", n)
		}
	}},
	{"post/draining-with-a-key", "With an idempotency key the SDK repeats a post whose answer was lost, until it is answered", "", func(x *run) {
		x.open()
		front := x.stage()
		for _, code := range []string{"draining", "internal", "not_leader"} {
			front.fails(2, 503, `{"error":"because of the script","code":"`+code+`","retryable":true}`, x.url)
			id := x.ask("enqueue", members{"url": "http://" + front.addr, "command": "a", "payload": 1, "key": code})
			x.want("enqueued", members{"id": id, "replayed": false})
		}
	}},
	{"post/proxy-error-without-a-key", "Without a key it never repeats one that may have arrived: the error says that the outcome is unknown.", "", func(x *run) {
		s := x.play()
		s.refuses(504, page)
		x.want("error", members{"id": x.ask("enqueue", members{"command": "a", "payload": 1}), "code": "outcome_unknown"})
		if n := len(s.requests("/tasks")); n != 1 {
			x.fail("the driver posted %d times", n)
		}
	}},
	{"post/overloaded", "A post that is refused with `overloaded` is an error with `retryAfterSeconds`", "", func(x *run) {
		s := x.play()
		s.refuses(503, `{"error":"too many requests wait","code":"overloaded","retryable":true,"retryAfterSeconds":3}`, "Retry-After", "3")
		x.want("error", members{"id": x.ask("enqueue", members{"command": "a", "payload": 1}), "code": "overloaded", "retryable": true, "retryAfterSeconds": 3})
	}},
	{"post/refused", "An error has the code of the server, its sentence, whether it may pass and when", "", func(x *run) {
		x.open()
		for code, with := range map[string]members{
			"invalid_priority": {"command": "a", "payload": 1, "priority": 10},
			"invalid_command":  {"command": "a b", "payload": 1},
			"invalid_time":     {"command": "a", "payload": 1, "delaySeconds": 400_000_000},
		} {
			e := x.want("error", members{"id": x.ask("enqueue", with), "code": code, "retryable": false})
			if text(e["message"]) == "" {
				x.fail("the error %v has no sentence", e)
			}
		}
	}},
	{"post/conflict", "An error has the code of the server, its sentence, whether it may pass and when", "", func(x *run) {
		x.open()
		first := x.want("enqueued", members{"id": x.ask("enqueue", members{"command": "a", "payload": 1, "key": "k"})})
		x.want("error", members{"id": x.ask("enqueue", members{"command": "a", "payload": 2, "key": "k"}), "code": "idempotency_conflict", "task": text(first["task"])})
	}},
	{"post/unknown-answer", "Frames, members, codes, reasons and `features` that the SDK does not know are ignored.", "", func(x *run) {
		s := x.play()
		s.refuses(202, `{"id":"`+taskID(5)+`","command":"a","payload":"1","priority":0,"status":"PENDING","lastKnownLocation":"ORBIT","attempts":0,"maxAttempts":5,`+
			`"deliveries":0,"tenantId":"default","mood":{"of":["the","server"]},"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`, "Content-Type", "application/json")
		x.want("enqueued", members{"id": x.ask("enqueue", members{"command": "a", "payload": 1}), "task": taskID(5)})
		s.refuses(418, `{"error":"it is a teapot","code":"too_purple","retryable":false,"mood":1}`)
		x.want("error", members{"id": x.ask("enqueue", members{"command": "a", "payload": 1}), "code": "too_purple"})
	}},
	{"post/batch", "each item has its own answer, a task or an error", "batch", func(x *run) {
		x.open()
		tasks := []members{{"command": "a", "payload": 1}, {"command": "a b", "payload": 2}, {"command": "a", "payload": 3, "priority": 9}}
		answer := x.want("batch", members{"id": x.ask("batch", members{"tasks": tasks})})
		results, _ := answer["results"].([]any)
		if len(results) != 3 {
			x.fail("the answer is %v, want three results", answer)
		}
		for n, want := range []string{"1", "", "3"} {
			result, _ := results[n].(map[string]any)
			if want == "" {
				if result["code"] != "invalid_command" {
					x.fail("result %d is %v", n, result)
				}
				continue
			}
			if got := string(x.task(text(result["task"])).Payload); got != want {
				x.fail("task %d has the payload %s", n, got)
			}
		}
	}},
	{"post/batch-answer-lost", "Without a key it never repeats one that may have arrived: the error says that the outcome is unknown.", "batch", func(x *run) {
		x.open()
		x.proxy.Silence(chaos.Down)
		id := x.ask("batch", members{"tasks": []members{{"command": "a", "payload": 1}, {"command": "a", "payload": 2}}})
		x.until("the tasks must be there", func() bool { return x.countTasks() == 2 })
		x.proxy.Cut()
		x.proxy.Heal()
		x.want("error", members{"id": id, "code": "outcome_unknown"})
		if n := x.countTasks(); n != 2 {
			x.fail("there are %d tasks", n)
		}
	}},
	{"post/batch-with-keys", "With an idempotency key the SDK repeats a post whose answer was lost, until it is answered", "batch", func(x *run) {
		x.open()
		x.proxy.Silence(chaos.Down)
		id := x.ask("batch", members{"tasks": []members{{"command": "a", "payload": 1, "key": "k1"}, {"command": "a", "payload": 2, "key": "k2"}}})
		x.until("the tasks must be there", func() bool { return x.countTasks() == 2 })
		x.proxy.Cut()
		x.proxy.Heal()
		x.want("batch", members{"id": id})
		if n := x.countTasks(); n != 2 {
			x.fail("there are %d tasks", n)
		}
	}},
}

// resultScripts are about waits for results, and about what is read.
var resultScripts = []script{
	{"result/waits", "A wait for a result goes on over everything that passes", "", func(x *run) {
		x.open()
		task := x.post()
		id := x.ask("result", members{"task": task})
		x.never("result", nil)
		_, err := x.claim().End(x.ctx, client.Complete([]byte(`{"n":144}`)))
		x.must(err)
		x.want("result", members{"id": id, "status": "COMPLETED", "result": map[string]any{"n": 144.0}})
	}},
	{"result/failed", "A task that failed or was cancelled is an error with its status and reason", "", func(x *run) {
		x.open()
		task := x.post()
		_, err := x.claim().End(x.ctx, client.Fail("no such file"))
		x.must(err)
		x.want("result", members{"id": x.ask("result", members{"task": task}), "status": "FAILED", "reason": "no such file"})
		other := x.task(x.post()).ID
		_, err = x.client.Cancel(x.ctx, other)
		x.must(err)
		x.want("result", members{"id": x.ask("result", members{"task": other.String()}), "status": "CANCELLED"})
	}},
	{"result/over-a-restart", "A wait for a result goes on over everything that passes", "", func(x *run) {
		x.open()
		task := x.post()
		id := x.ask("result", members{"task": task})
		x.never("result", nil)
		x.stop(time.Second)
		asked := x.proxy.Taken()
		x.until("the driver must ask again", func() bool { return x.proxy.Taken() > asked })
		x.must(x.server.Again())
		x.never("error", nil)
		_, err := x.claim().End(x.ctx, client.Complete([]byte(`{}`)))
		x.must(err)
		x.want("result", members{"id": id, "status": "COMPLETED"})
	}},
	{"result/over-a-cut", "A wait for a result goes on over everything that passes", "", func(x *run) {
		x.open()
		task := x.post()
		id := x.ask("result", members{"task": task})
		x.until("the request must be on its way", func() bool { return x.proxy.Links() > 0 })
		x.never("result", nil)
		x.proxy.Cut()
		x.never("error", nil)
		_, err := x.claim().End(x.ctx, client.Complete([]byte(`{}`)))
		x.must(err)
		x.want("result", members{"id": id, "status": "COMPLETED"})
	}},
	{"result/over-a-proxy-error", "A wait for a result goes on over everything that passes", "", func(x *run) {
		x.open()
		task := x.post()
		_, err := x.claim().End(x.ctx, client.Complete([]byte(`{}`)))
		x.must(err)
		front := x.stage()
		front.fails(3, 502, page, x.url)
		x.want("result", members{"id": x.ask("result", members{"url": "http://" + front.addr, "task": task}), "status": "COMPLETED"})
	}},
	{"result/time-is-over", "It ends at its own time.", "", func(x *run) {
		x.open()
		task := x.post()
		x.want("error", members{"id": x.ask("result", members{"task": task, "waitSeconds": 1}), "code": []string{"timeout", "result_not_found"}})
	}},
	{"result/no-such-task", "An error has the code of the server, its sentence, whether it may pass and when", "", func(x *run) {
		x.open()
		x.want("error", members{"id": x.ask("result", members{"task": taskID(1)}), "code": "task_not_found", "retryable": false})
		x.want("error", members{"id": x.ask("task", members{"task": taskID(1)}), "code": "task_not_found"})
	}},
	{"result/task", "The trace context of the producer arrives at the handler, and so do labels, attempts and the number of the delivery.", "", func(x *run) {
		x.open()
		task := x.post()
		x.want("task", members{"id": x.ask("task", members{"task": task}), "status": "PENDING", "attempts": 0})
		_, err := x.claim().End(x.ctx, client.Nack("busy"))
		x.must(err)
		x.want("task", members{"id": x.ask("task", members{"task": task}), "status": "PENDING", "attempts": 1})
	}},
	{"result/cancel", "An error has the code of the server, its sentence, whether it may pass and when", "cancel", func(x *run) {
		x.open()
		task := x.post()
		x.want("cancelled_task", members{"id": x.ask("cancel", members{"task": task}), "status": "CANCELLED"})
		x.want("cancelled_task", members{"id": x.ask("cancel", members{"task": task}), "status": "CANCELLED"})
		done := x.post()
		_, err := x.claim().End(x.ctx, client.Complete([]byte(`{}`)))
		x.must(err)
		x.want("error", members{"id": x.ask("cancel", members{"task": done}), "code": "already_terminal"})
	}},
	{"result/watch", "A wait for a result goes on over everything that passes", "watch", func(x *run) {
		x.open()
		id := x.ask("watch", members{"queue": "a"})
		x.post()
		x.want("news", members{"id": id})
		x.proxy.Cut()
		x.early = nil
		x.post()
		x.want("news", members{"id": id})
		x.say("unwatch", members{"id": id})
	}},
}

// countTasks is how many tasks of the queue "a" are ready.
func (x *run) countTasks() int {
	page, err := x.client.Tasks(x.ctx, client.ListQuery{Command: "a", State: "ready"})
	x.must(err)
	return len(page.Tasks)
}

// fails answers so many requests with a status and a body, and passes later ones on to a server.
func (s *stage) fails(times int32, status int, body, url string) {
	var count atomic.Int32
	s.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if count.Add(1) <= times {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body) // a driver that went away is seen by the script
			return true
		}
		return s.pass(w, r, url)
	})
}

// pass hands a request on to a server, and its answer back.
func (s *stage) pass(w http.ResponseWriter, r *http.Request, url string) bool {
	ctx, cancel := context.WithTimeout(r.Context(), s.x.patience)
	defer cancel()
	on, err := http.NewRequestWithContext(ctx, r.Method, url+r.URL.RequestURI(), r.Body)
	if err != nil {
		return false
	}
	on.Header = r.Header.Clone()
	answer, err := http.DefaultTransport.RoundTrip(on)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return true
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	for name, values := range answer.Header {
		w.Header().Set(name, strings.Join(values, ", "))
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // a driver that went away is seen by the script
	return true
}
