package conform

import (
	"fmt"
	"strings"
	"time"

	"codeq/client"
	"codeq/internal/chaos"
	"codeq/wire"
)

// workScripts are about tasks and their answers.
var workScripts = []script{
	{"work/complete", "A task runs the handler of its command, once for each delivery.", "", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.postTo("a", map[string]any{"text": "größer ☃", "list": []int{1, 2}, "none": nil})
		want := map[string]any{"text": "größer ☃", "list": []any{1.0, 2.0}, "none": nil}
		x.want("delivery", members{"task": id, "delivery": 1, "handler": "a", "command": "a", "payload": want, "attempts": 0, "maxAttempts": 5, "number": 1})
		x.answer("complete", 1, members{"result": members{"n": 144}})
		x.want("settled", members{"delivery": 1, "outcome": "completed", "ok": true})
		x.hasResult(x.becomes(id, wire.StatusCompleted, 1, 0), `{"n":144}`)
	}},
	{"work/several-commands", "A task runs the handler of its command, once for each delivery.", "", func(x *run) {
		x.open()
		x.worker(members{"commands": []string{"a", "b", "c.d"}, "window": 3})
		for n, command := range []string{"c.d", "a", "b"} {
			x.postTo(command, n)
			x.want("delivery", members{"handler": command, "command": command, "payload": float64(n)})
		}
		x.answer("complete", 2, members{"result": members{}})
		x.want("settled", members{"delivery": 2, "ok": true})
	}},
	{"work/window", "No more handlers run than the window allows.", "", func(x *run) {
		x.open()
		x.worker(members{"window": 2})
		for range 4 {
			x.post()
		}
		x.want("delivery", members{"delivery": 1})
		x.want("delivery", members{"delivery": 2})
		x.never("delivery", nil)
		x.answer("complete", 1, members{"result": members{}})
		x.want("delivery", members{"delivery": 3})
		x.never("delivery", nil)
		x.answer("complete", 3, members{"result": members{}})
		x.want("delivery", members{"delivery": 4})
	}},
	{"work/window-overrun", "No more handlers run than the window allows.", "", func(x *run) {
		s := x.play()
		x.startWorker(members{"window": 2})
		p := s.arrives(nil)
		p.subscribed()
		p.say(p.taskFrame(1, nil), p.taskFrame(2, nil), p.taskFrame(3, nil))
		first := x.want("delivery", members{"task": taskID(1)})
		x.want("delivery", members{"task": taskID(2)})
		x.never("delivery", nil)
		x.say("complete", members{"delivery": first["delivery"], "result": members{}})
		p.ok(p.hear("result", members{"taskId": taskID(1)}), nil)
		x.want("delivery", members{"delivery": 3, "task": taskID(3)})
	}},
	{"work/received-first", "Before the handler begins, the worker confirms the task with `received`", "", func(x *run) {
		s := x.play()
		x.startWorker(members{"window": 3})
		p := s.arrives(nil)
		p.subscribed()
		p.say(p.taskFrame(1, nil), p.taskFrame(2, nil))
		p.hear("received", members{"through": 2})
		x.want("delivery", members{"delivery": 1})
		p.push(3)
		p.hear("received", members{"through": 3})
	}},
	{"work/error-is-retried", "A value that a handler returns completes the task; an error has it tried again, with the text as the reason.", "", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		x.answer("nack", 1, members{"reason": "busy", "delaySeconds": 60})
		x.want("settled", members{"delivery": 1, "outcome": "nacked", "ok": true})
		x.hasError(x.becomes(id, wire.StatusPending, 1, 1), "busy")
		x.advance(59 * time.Second)
		x.never("delivery", nil)
		x.advance(time.Second)
		x.want("delivery", members{"delivery": 2, "task": id, "attempts": 1, "number": 2})
	}},
	{"work/backoff-decides", "A value that a handler returns completes the task; an error has it tried again, with the text as the reason.", "", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.post(client.MaxAttempts(2))
		x.want("delivery", members{"delivery": 1})
		x.answer("nack", 1, members{"reason": "busy"})
		x.want("settled", members{"delivery": 1, "outcome": "nacked", "ok": true})
		x.becomes(id, wire.StatusPending, 1, 1)
		x.advance(5 * time.Second)
		x.want("delivery", members{"delivery": 2, "task": id, "attempts": 1})
		x.answer("nack", 2, members{"reason": "busy again"})
		x.want("settled", members{"delivery": 2, "outcome": "nacked", "ok": true})
		x.hasError(x.becomes(id, wire.StatusFailed, 2, 2), "busy again")
	}},
	{"work/exception", "An exception is an error like others, and never ends the worker.", "", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		x.answer("throw", 1, members{"reason": "boom at line 7"})
		x.want("settled", members{"delivery": 1, "outcome": "nacked", "ok": true})
		x.hasError(x.becomes(id, wire.StatusPending, 1, 1), "boom at line 7")
		x.advance(5 * time.Second)
		x.want("delivery", members{"delivery": 2, "task": id, "attempts": 1})
	}},
	{"work/fail-for-good", "An error may be marked as final", "", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		x.answer("fail", 1, members{"reason": "no such file"})
		x.want("settled", members{"delivery": 1, "outcome": "failed", "ok": true})
		task := x.becomes(id, wire.StatusFailed, 1, task1Failed)
		x.hasError(task, "no such file")
		if task.DeadCause != wire.DeadFailed {
			x.fail("the cause of the dead letter is %s, want failed", task.DeadCause)
		}
	}},
	{"work/hand-back", "A handler that cannot begin, or stops early because the worker ends, hands the task back", "", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		x.answer("release", 1, nil)
		x.want("settled", members{"delivery": 1, "outcome": "released", "ok": true})
		x.want("delivery", members{"delivery": 2, "task": id, "attempts": 0, "number": 2})
		x.answer("complete", 2, members{"result": members{}})
		x.want("settled", members{"delivery": 2, "ok": true})
	}},
	{"work/cannot-begin", "After a handler that could not begin the worker takes no task for a second, then longer", "notstarted", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		began := time.Now()
		x.answer("notstarted", 1, members{"reason": "no disk"})
		x.want("settled", members{"delivery": 1, "outcome": "released", "ok": true})
		x.want("delivery", members{"delivery": 2, "task": id, "attempts": 0, "number": 2})
		if took := time.Since(began); took < 900*time.Millisecond {
			x.fail("the next task was taken after %v", took)
		}
	}},
	{"work/large", "A message of a session has at most 2 MiB and 10,000 frames", "", func(x *run) {
		x.open()
		x.worker(nil)
		text := strings.Repeat("0123456789abcdef", 60<<10)
		id := x.postTo("a", text)
		x.want("delivery", members{"task": id, "payload": text})
		x.answer("complete", 1, members{"result": members{"text": text}})
		x.want("settled", members{"delivery": 1, "outcome": "completed", "ok": true})
		x.becomes(id, wire.StatusCompleted, 1, 0)
	}},
	{"work/many-large-outcomes", "an SDK that sends many outcomes at once splits them", "", func(x *run) {
		const tasks = 6
		s := x.play()
		x.startWorker(members{"window": tasks})
		p := s.arrives(nil)
		p.subscribed()
		for n := range tasks {
			p.push(n + 1)
		}
		p.cut()
		x.want("disconnected", nil)
		for n := range tasks {
			x.answer("complete", n+1, members{"result": members{"text": strings.Repeat("x", 900_000)}})
		}
		again := s.arrives(members{"sessionId": "01a21f91-0c3d-7e42-a0b1-4f6d2c8e9a77"})
		for n := range tasks {
			again.ok(again.hear("result", members{"taskId": taskID(n + 1)}), nil)
		}
		again.keptTheRules()
	}},
	{"work/result-too-large", "A result that the server would refuse becomes a failed attempt that says so", "", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		x.answer("complete", 1, members{"result": members{"text": strings.Repeat("x", wire.MaxResultBytes)}})
		x.want("settled", members{"delivery": 1, "outcome": "nacked", "ok": true})
		if task := x.becomes(id, wire.StatusPending, 1, 1); task.Error == "" {
			x.fail("the failed attempt has no reason")
		}
	}},
	{"work/result-refused", "A result that the server would refuse becomes a failed attempt that says so", "", func(x *run) {
		s := x.play()
		x.startWorker(nil)
		p := s.arrives(nil)
		p.subscribed()
		p.push(1)
		x.answer("complete", 1, members{"result": members{"n": 1}})
		p.refuse(p.hear("result", nil), "invalid_result", nil)
		nack := p.hear("nack", members{"taskId": taskID(1), "leaseToken": token(1)})
		if reason := fmt.Sprint(nack["reason"]); !strings.Contains(reason, "because of the script") {
			x.fail("the reason of the nack is %q, want the sentence of the refusal in it", reason)
		}
		p.ok(nack, members{"status": "requeued"})
		x.want("settled", members{"delivery": 1, "outcome": "nacked", "ok": true})
	}},
	{"work/progress", "Progress and output are sent and forgotten.", "progress", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		x.answer("progress", 1, members{"percent": 40, "note": "half way"})
		x.until("the server must have the progress", func() bool {
			p := x.task(id).Progress
			return p != nil && p.Percent == 40 && p.Note == "half way"
		})
		x.answer("complete", 1, members{"result": members{}})
		x.want("settled", members{"delivery": 1, "ok": true})
	}},
	{"work/output", "Progress and output are sent and forgotten.", "output", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		x.answer("output", 1, members{"stream": "stdout", "text": "page 1\n"})
		x.until("the server must have the output", func() bool { return x.task(id).Printed })
		x.answer("complete", 1, members{"result": members{}})
		x.want("settled", members{"delivery": 1, "ok": true})
	}},
	{"work/artifact", "A file that a handler uploads becomes an artifact of the task when the outcome names it", "artifacts", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		x.answer("upload", 1, members{"name": "plots/1.txt", "text": "page 1\n"})
		x.want("uploaded", members{"delivery": 1, "name": "plots/1.txt", "sizeBytes": 7})
		x.answer("complete", 1, members{"result": members{}})
		x.want("settled", members{"delivery": 1, "ok": true})
		x.want("downloaded", members{"id": x.ask("download", members{"task": id, "name": "plots/1.txt"}), "text": "page 1\n"})
		x.want("error", members{"id": x.ask("download", members{"task": id, "name": "other"}), "code": "not_found"})
	}},
	{"work/artifact-answer-lost", "an upload whose answer was lost is sent again", "artifacts", func(x *run) {
		x.open()
		x.worker(nil)
		id := x.post()
		x.want("delivery", members{"delivery": 1})
		x.proxy.Silence(chaos.Down)
		before := x.proxy.CarriedBytes(chaos.Up)
		x.answer("upload", 1, members{"name": "log.txt", "text": strings.Repeat("a line\n", 1000)})
		x.until("the file must be sent", func() bool { return x.proxy.CarriedBytes(chaos.Up) > before+7000 })
		x.never("uploaded", nil)
		x.proxy.Cut()
		x.proxy.Heal()
		x.want("uploaded", members{"delivery": 1, "name": "log.txt", "sizeBytes": 7000})
		x.answer("complete", 1, members{"result": members{}})
		x.want("settled", members{"delivery": 1, "ok": true})
		x.becomes(id, wire.StatusCompleted, 1, 0)
	}},
	{"work/trace", "The trace context of the producer arrives at the handler", "", func(x *run) {
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		x.open()
		x.worker(nil)
		id := x.ask("enqueue", members{"command": "a", "payload": 1, "traceParent": parent, "traceState": "x=1"})
		x.want("enqueued", members{"id": id})
		x.want("delivery", members{"traceParent": parent, "traceState": "x=1"})
	}},
}

// task1Failed is how many attempts count as failed of a task that a worker ended for good.
const task1Failed = 0

// hasResult compares the result of a task that has completed.
func (x *run) hasResult(task *wire.Task, want string) {
	answer, err := x.client.Result(x.ctx, task.ID)
	x.must(err)
	if string(answer.Result.Result) != want {
		x.fail("the result of the task is %.200s, want %s", answer.Result.Result, want)
	}
}

// hasError looks for the reason in the error of a task.
func (x *run) hasError(task *wire.Task, reason string) {
	if !strings.Contains(task.Error, reason) {
		x.fail("the error of the task is %.200q, want %q in it", task.Error, reason)
	}
}
