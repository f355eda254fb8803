package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"codeq/test/blackbox"
	"codeq/wire"
)

// value is a JSON value that producers and workers send; code says how it is
// refused, "" is not at all.
type value struct {
	text string
	code wire.Code
	// noText has half of a surrogate pair, which JSON allows and text does not.
	noText bool
}

// oddValues are bytes that have stopped a storage somewhere. What is not UTF-8 or
// not JSON is against the protocol of sessions and ends the one that says it.
var oddValues = []value{
	{text: `"\u0000"`}, {text: `"a\u0000b"`}, {text: `{"\u0000":"\u0000"}`}, {text: `"\ud800"`, noText: true},
	{text: `"\udfff\ud800"`, noText: true}, {text: `"\uDBFF"`, noText: true},
	{text: `"\ud83d\ude00"`}, {text: "\"\U0001F600\""}, {text: "\"\u202e\u2028\u2029\ufeff\ufffd\""}, {text: `"\/\b\f\n\r\t\"\\"`},
	{text: `1e400`}, {text: `-1e-400`}, {text: `-0`}, {text: `12345678901234567890123`}, {text: `0.10`},
	{text: `{"b":1,"a":2,"b":3}`}, {text: `[ 1 ,  2 ]`}, {text: `null`}, {text: nested(63)},
	{text: nested(65), code: wire.CodeInvalidBody}, {text: "\"\xff\"", code: wire.CodeInvalidBody}, {text: "\"\xed\xa0\x80\"", code: wire.CodeInvalidBody}, {text: "\"\xc0\x80\"", code: wire.CodeInvalidBody},
	{text: "\"\x00\"", code: wire.CodeInvalidBody}, {text: "\"\n\"", code: wire.CodeInvalidBody}, {text: `"\u12"`, code: wire.CodeInvalidBody}, {text: `"\x"`, code: wire.CodeInvalidBody},
	{text: `NaN`, code: wire.CodeInvalidBody}, {text: `01`, code: wire.CodeInvalidBody}, {text: `1.`, code: wire.CodeInvalidBody}, {text: `[1,]`, code: wire.CodeInvalidBody}, {text: `"a`, code: wire.CodeInvalidBody},
}

// closeProtocol is the code by which a session ends that breaks the protocol.
const closeProtocol = 4400

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// expected is what a task must show in the end.
type expected struct {
	id                      wire.TaskID
	payload, result, reason string
	status                  wire.Status
}

// Whatever bytes a payload, a result or an error has, they come out as they went
// in or are refused at once, and every task reaches its end, also after a restart
// that reads all of it from the disk.
func TestA45OddBytesWedgeNoTask(t *testing.T) {
	x := newSite(t)
	var all []expected
	for _, v := range oddValues {
		all = append(all, x.oddPayload(v)...)
	}
	for _, overSession := range []bool{false, true} {
		for _, v := range oddValues {
			all = append(all, x.oddResult(v, overSession))
		}
	}
	for _, v := range oddValues {
		if strings.HasPrefix(v.text, `"`) {
			all = append(all, x.oddError(v))
		}
	}
	x.mustShow(all)
	x.server.Kill()
	x.server.Start()
	x.mustShow(all)
	if q := x.figures(command); q.Ready+q.Delayed+q.InProgress != 0 {
		t.Errorf("at the end the queue is %+v", q)
	}
}

// oddPayload posts a payload over both transports and completes what was taken.
func (x *site) oddPayload(v value) (all []expected) {
	x.t.Helper()
	var ids []wire.TaskID
	task, err := x.api.Post(x.ctx, `{"command":"c","payload":`+v.text+`}`)
	if v.code != "" {
		mustCode(x.t, "payload "+v.text, err, v.code)
	} else if err != nil {
		x.t.Errorf("payload %s: %v", v.text, err)
	} else {
		ids = append(ids, task.ID)
	}
	if v.code != "" {
		return nil // a session ends with it, which is tried with results
	}
	p := x.peer(x.server.Addr, "producer")
	ok, err := p.Ask(x.ctx, func(ref wire.Ref) wire.ClientFrame {
		return &wire.Enqueue{Ref: ref, EnqueueRequest: wire.EnqueueRequest{Command: command, Payload: []byte(v.text)}}
	})
	p.Close()
	if err != nil {
		x.t.Errorf("payload %s in a session: %v", v.text, err)
	} else {
		ids = append(ids, ok.TaskID)
	}
	w := x.worker(x.server.Addr, "w", 2, 60)
	defer w.Close()
	for _, f := range x.takeAll(w, len(ids), patience) {
		if string(f.Task.Payload) != v.text {
			x.t.Errorf("posted %s, delivered %s", v.text, f.Task.Payload)
		}
		x.complete(w, f, `{}`)
	}
	for _, id := range ids {
		all = append(all, expected{id: id, payload: v.text, result: `{}`, status: wire.StatusCompleted})
	}
	return all
}

// oddResult completes a task with a result. One that is refused leaves the task
// with its worker, who can still fail it, from elsewhere if its session ended over
// it.
func (x *site) oddResult(v value, overSession bool) expected {
	x.t.Helper()
	id := x.post(command, 1, 0)[0]
	result := `{"v":` + v.text + `}`
	good := expected{id: id, payload: `{"n":0,"fill":""}`, result: result, status: wire.StatusCompleted}
	bad := expected{id: id, payload: good.payload, reason: "mended", status: wire.StatusFailed}
	if !overSession {
		x.claimOne(60)
		_, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/"+id.String()+"/result", `{"result":`+result+`}`)
		if v.code == "" {
			x.fine("complete with "+result, err)
			return good
		}
		mustCode(x.t, "complete with "+result, err, v.code)
		_, err = x.api.Do(x.ctx, http.MethodPost, "/tasks/"+id.String()+"/result", `{"error":"mended"}`)
		x.fine("fail it then", err)
		return bad
	}
	w := x.worker(x.server.Addr, "w", 1, 60)
	defer w.Close()
	f := x.take(w, patience)
	if v.code == "" {
		x.complete(w, f, result)
		return good
	}
	if err := w.Complete(x.ctx, blackbox.RefOf(f), result); err == nil {
		x.t.Errorf("%s was taken as a result", result)
	}
	if !json.Valid([]byte(v.text)) || !utf8.ValidString(v.text) {
		<-w.Gone() // against the protocol: the bystanders of this test go on
		if code := w.CloseCode(); code != closeProtocol {
			x.t.Errorf("the session that said %q was closed with %d", result, code)
		}
		_, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/"+id.String()+"/result", fmt.Sprintf(`{"error":"mended","leaseToken":"%v"}`, f.Token))
		x.fine("fail it from elsewhere", err)
		return bad
	}
	x.fine("fail it then", x.fail(w, f, "mended"))
	return bad
}

func (x *site) fine(what string, err error) {
	x.t.Helper()
	if err != nil {
		x.t.Errorf("%s: %v", what, err)
	}
}

// claimOne takes the one task there is.
func (x *site) claimOne(leaseSeconds int) (*wire.Task, wire.Token) {
	x.t.Helper()
	answer, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/claim",
		fmt.Sprintf(`{"commands":["c"],"waitSeconds":30,"leaseSeconds":%d}`, leaseSeconds))
	if err != nil || answer.Status != http.StatusOK {
		x.t.Fatalf("claim: %+v, %v", answer, err)
	}
	task, token, err := wire.ParseClaimed(answer.Body)
	if err != nil {
		x.t.Fatalf("claim: %v", err)
	}
	return task, token
}

// fail ends a delivery for good.
func (x *site) fail(p *blackbox.Peer, f *wire.TaskFrame, reason string) error {
	_, err := p.Ask(x.ctx, func(ref wire.Ref) wire.ClientFrame {
		return &wire.Result{Ref: ref, TaskRef: blackbox.RefOf(f), ResultRequest: wire.ResultRequest{Status: wire.StatusFailed, Error: reason}}
	})
	return err
}

// oddError fails a task with a text, as the reason of a nack and then for good. One
// that is refused leaves the task with its worker, who can say it better.
func (x *site) oddError(v value) expected {
	x.t.Helper()
	id := x.post(command, 1, 0)[0]
	path := "/tasks/" + id.String()
	x.claimOne(60)
	_, err := x.api.Do(x.ctx, http.MethodPost, path+"/nack", `{"delaySeconds":0,"reason":`+v.text+`}`)
	want := expected{id: id, payload: `{"n":0,"fill":""}`, reason: "mended", status: wire.StatusFailed}
	inNack, inResult := v.code, v.code
	if v.noText {
		inNack, inResult = wire.CodeInvalidArgument, wire.CodeInvalidResult
	}
	if inNack != "" {
		mustCode(x.t, "nack with "+v.text, err, inNack)
		_, err = x.api.Do(x.ctx, http.MethodPost, path+"/result", `{"error":`+v.text+`}`)
		mustCode(x.t, "fail with "+v.text, err, inResult)
		_, err = x.api.Do(x.ctx, http.MethodPost, path+"/result", `{"error":"mended"}`)
		x.fine("fail it then", err)
		return want
	}
	x.fine("nack with "+v.text, err)
	if err := json.Unmarshal([]byte(v.text), &want.reason); err != nil {
		x.t.Fatal(err)
	}
	if task := x.read(id); task.Error != want.reason || task.Attempts != 1 {
		x.t.Errorf("nacked with %s: %q, %d attempts", v.text, task.Error, task.Attempts)
	}
	x.claimOne(60)
	_, err = x.api.Do(x.ctx, http.MethodPost, path+"/result", `{"error":`+v.text+`}`)
	x.fine("fail with "+v.text, err)
	return want
}

// mustShow reads tasks and their results.
func (x *site) mustShow(all []expected) {
	x.t.Helper()
	for _, want := range all {
		task := x.read(want.id)
		if string(task.Payload) != want.payload || task.Status != want.status || task.Error != want.reason {
			x.t.Errorf("task %v is %s with payload %s and error %q, want %+v", want.id, task.Status, task.Payload, task.Error, want)
		}
		record := x.outcome(want.id)
		if string(record.Result) != want.result || record.Error != want.reason || record.Status != want.status {
			x.t.Errorf("the result of %v is %s %s %q, want %+v", want.id, record.Status, record.Result, record.Error, want)
		}
	}
}

// sized is a JSON string of so many bytes.
func sized(bytes int) string { return `"` + strings.Repeat("x", bytes-2) + `"` }

// What is too large is refused with the limit, one by one: its neighbours in a
// batch, in a session and on the server notice nothing, and the task it was about
// can still be ended.
func TestA46OversizedIsRefusedAlone(t *testing.T) {
	x := newSite(t)
	for _, over := range []int{-1, 0, 1} {
		_, err := x.api.Post(x.ctx, `{"command":"sizes","payload":`+sized(wire.MaxPayloadBytes+over)+`}`)
		p := x.peer(x.server.Addr, "producer")
		_, inSession := p.Ask(x.ctx, func(ref wire.Ref) wire.ClientFrame {
			payload := []byte(sized(wire.MaxPayloadBytes + over))
			return &wire.Enqueue{Ref: ref, EnqueueRequest: wire.EnqueueRequest{Command: "sizes", Payload: payload}}
		})
		if over <= 0 {
			x.fine("a payload below or at the limit", err)
			x.fine("the same in a session", inSession)
		} else {
			x.mustNameLimit(err, wire.MaxPayloadBytes)
			x.mustNameLimit(inSession, wire.MaxPayloadBytes)
		}
		if err := p.Subscribe(x.ctx, "none", 1, 1); err != nil {
			t.Errorf("the session does not go on: %v", err)
		}
		p.Close()
	}
	x.oversizedInBatch()
	x.oversizedAnswers()
	x.oversizedMessages()
	if q := x.figures("sizes"); q.Ready != 4 {
		t.Errorf("of sizes there are %+v", q)
	}
}

// mustNameLimit makes sure of a refusal that tells the limit.
func (x *site) mustNameLimit(err error, limit int) {
	x.t.Helper()
	mustCode(x.t, "over the limit", err, wire.CodeTooLarge)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(limit)) {
		x.t.Errorf("the refusal does not tell %d: %v", limit, err)
	}
}

func (x *site) oversizedInBatch() {
	x.t.Helper()
	good := `{"command":"batch","payload":1}`
	large := `{"command":"batch","payload":` + sized(wire.MaxPayloadBytes+1) + `}`
	answer, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/batch", `{"tasks":[`+good+`,`+large+`,`+good+`]}`)
	if err != nil {
		x.t.Fatal(err)
	}
	var said struct {
		Results []struct {
			Task *struct{ ID string }
			Code wire.Code
		}
	}
	if err := json.Unmarshal(answer.Body, &said); err != nil {
		x.t.Fatal(err)
	}
	if r := said.Results; len(r) != 3 || r[0].Task == nil || r[1].Code != wire.CodeTooLarge || r[2].Task == nil {
		x.t.Errorf("a batch with one too large: %.300s", answer.Body)
	}
	if q := x.figures("batch"); q.Ready != 2 {
		x.t.Errorf("after it the queue is %+v", q)
	}
	_, err = x.api.Do(x.ctx, http.MethodPost, "/tasks/batch", strings.Repeat(" ", wire.MaxHTTPBodyBytes+1))
	x.mustNameLimit(err, wire.MaxHTTPBodyBytes)
}

// oversizedAnswers says too much about two tasks in hand, one over each
// transport, and ends both after that.
func (x *site) oversizedAnswers() {
	x.t.Helper()
	result := `{"v":` + sized(wire.MaxResultBytes) + `}`
	reason := strings.Repeat("e", wire.MaxErrorBytes+1)
	ids := x.post(command, 2, 0)
	w := x.worker(x.server.Addr, "w", 2, 60)
	defer w.Close()
	frames := x.takeAll(w, 2, patience)
	x.mustNameLimit(w.Complete(x.ctx, blackbox.RefOf(frames[0]), result), wire.MaxResultBytes)
	x.mustNameLimit(x.fail(w, frames[0], reason), wire.MaxErrorBytes)
	x.complete(w, frames[1], `{}`) // the other goes on
	x.fine("fail it", x.fail(w, frames[0], reason[1:]))
	id := x.post("http", 1, 0)[0]
	if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/claim", `{"commands":["http"]}`); err != nil {
		x.t.Fatal(err)
	}
	path := "/tasks/" + id.String()
	_, err := x.api.Do(x.ctx, http.MethodPost, path+"/result", `{"result":`+result+`}`)
	x.mustNameLimit(err, wire.MaxResultBytes)
	_, err = x.api.Do(x.ctx, http.MethodPost, path+"/nack", `{"reason":"`+reason+`"}`)
	x.mustNameLimit(err, wire.MaxErrorBytes)
	_, err = x.api.Do(x.ctx, http.MethodPost, path+"/result", `{"error":"`+reason[1:]+`"}`)
	x.fine("fail it", err)
	for _, id := range append(ids, id) {
		if record := x.outcome(id); !record.Status.Terminal() {
			x.t.Errorf("task %v is %+v", id, record)
		}
	}
}

// oversizedMessages breaks the limit of messages, which ends the session that
// does it, and offers too little room for tasks, which opens none.
func (x *site) oversizedMessages() {
	x.t.Helper()
	bystander := x.worker(x.server.Addr, "bystander", 1, 60)
	defer bystander.Close()
	p := x.peer(x.server.Addr, "loud")
	defer p.Close()
	// The write may fail over the connection that the server closes.
	_ = p.Say(&wire.Enqueue{EnqueueRequest: wire.EnqueueRequest{Command: "sizes", Payload: []byte(sized(wire.MaxClientMessageBytes))}})
	select {
	case <-p.Gone():
	case <-x.ctx.Done():
		x.t.Fatal("a message over the limit ends no session")
	}
	ctx, cancel := context.WithTimeout(x.ctx, patience)
	defer cancel()
	small, err := blackbox.Dial(ctx, x.server.Addr, &wire.Hello{WorkerID: "small", MaxMessageBytes: wire.MinMaxMessageBytes - 1})
	if err == nil {
		small.Close()
	}
	mustCode(x.t, "too little room", err, wire.CodeInvalidArgument)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(wire.MinMaxMessageBytes)) {
		x.t.Errorf("the refusal does not tell the least: %v", err)
	}
	x.post(command, 1, 0)
	x.complete(bystander, x.take(bystander, patience), `{}`)
}
