package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// depthOf counts nesting in text that is known to be JSON.
func depthOf(data []byte) int {
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest
}

func addAll(f *testing.F, texts ...string) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
}

func addBodyFaults(f *testing.F) {
	for body := range bodyFaults {
		f.Add([]byte(body))
	}
}

func FuzzCheckJSON(f *testing.F) {
	addAll(f, `null`, `1e400`, `[1,{"a":[]}]`, `{}0`, `01`, `"\ud800"`, `"\u00zz"`, "\"\xff\"", "\"\x00\"", `[1,]`, `"a\`,
		nested(MaxNesting), nested(MaxNesting+1), string(samplePayload()), " \t\r\n{ } ")
	f.Fuzz(func(t *testing.T, data []byte) {
		standard := json.Valid(data) && utf8.Valid(data)
		want := standard && depthOf(data) <= MaxNesting
		if err := CheckJSON(data); (err == nil) != want {
			t.Errorf("CheckJSON: %v; encoding/json accepts: %t", err, standard)
		}
	})
}

// FuzzObject compares the extents of known members with those of RawMessage.
func FuzzObject(f *testing.F) {
	addBodyFaults(f)
	enqueue := sampleEnqueue()
	f.Add(AppendEnqueueRequest(nil, &enqueue))
	addAll(f, `{ "p\u0061yload" : [ 1 , 2 ] , "payload":2}`, `{"\u005cpayload":1}`, `{"type\u0000":1,"a/b\/":2}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		o := object{names: requestNames}
		problem := o.scanAlone(data)
		var want map[string]json.RawMessage
		err := json.Unmarshal(data, &want)
		if err != nil || want == nil || !utf8.Valid(data) {
			if problem == "" {
				t.Fatalf("scanned, but encoding/json says %v", err)
			}
			return
		}
		if problem != "" {
			if depthOf(data) <= recursionLimit {
				t.Fatalf("not scanned: %s", problem)
			}
			return
		}
		for i, name := range requestNames {
			raw, present := want[name]
			if present != (o.raw[i] != nil) {
				t.Fatalf("%s is present: %t", name, present)
			}
			// Of several, encoding/json keeps the last one.
			if o.twice&(1<<i) == 0 && !bytes.Equal(o.raw[i], raw) {
				t.Fatalf("%s is %q, want %q", name, o.raw[i], raw)
			}
		}
		deep := false
		for _, raw := range want {
			deep = deep || depthOf(raw) > MaxNesting
		}
		if deep && o.tooDeep == "" || o.tooDeep != "" && depthOf(data) <= MaxNesting+1 {
			t.Fatalf("too deep is %q", o.tooDeep)
		}
	})
}

// FuzzDecodeString compares with encoding/json and takes the text back.
func FuzzDecodeString(f *testing.F) {
	addAll(f, `""`, `"\u0000\"\\\/\b"`, `"\ud83d\ude00"`, `"\ud800\u0041"`, `"\ud800\ud800\udc00"`, `"\\ud800"`, "\"é\"")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || data[0] != '"' || CheckJSON(data) != nil {
			return
		}
		data = bytes.TrimRight(data, " \t\r\n")
		before := bytes.Clone(data)
		got, _ := decodeString(data)
		var want string
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %q, want %q", data, got, want)
		}
		if !bytes.Equal(before, data) {
			t.Errorf("%s was changed to %s", before, data)
		}
	})
}

func FuzzAppendQuoted(f *testing.F) {
	for _, text := range []string{"", "a", awkward, "\xff", "é\xc3", "\xed\xa0\x80", "\U0001F600"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := AppendQuoted(nil, text)
		if err := CheckJSON(quoted); err != nil {
			t.Fatalf("%s: %v", quoted, err)
		}
		// Ranging makes U+FFFD of each byte that is not UTF-8.
		if got, _ := decodeString(quoted); got != string([]rune(text)) {
			t.Errorf("%q came back as %q", text, got)
		}
		if same := appendQuoted(nil, []byte(text)); !bytes.Equal(same, quoted) {
			t.Errorf("as bytes %s, as a string %s", same, quoted)
		}
	})
}

func FuzzParseIDs(f *testing.F) {
	for _, text := range []string{"", sampleID(1).String(), strings.ToUpper(sampleID(1).String()), sampleToken(1).String()} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, ok := ParseTaskID(text); ok && id.String() != text {
			t.Errorf("task %q is %s", text, id)
		}
		if id, ok := ParseSessionID(text); ok && id.String() != text {
			t.Errorf("session %q is %s", text, id)
		}
		if token, ok := ParseToken(text); ok && token.String() != text {
			t.Errorf("token %q is %s", text, token)
		}
	})
}

// checkEither: a parser gives a value or a refusal with a code of the table.
func checkEither(t *testing.T, present bool, err *Error) {
	t.Helper()
	if present == (err != nil) {
		t.Fatalf("a value: %t, a refusal: %v", present, err)
	}
	if err == nil {
		return
	}
	if _, known := codeTable[err.Code]; !known || err.Sentence == "" || !utf8.ValidString(err.Sentence) {
		t.Fatalf("the refusal is %q %q", err.Code, err.Sentence)
	}
}

func FuzzParseEnqueueRequest(f *testing.F) {
	addBodyFaults(f)
	full := sampleEnqueue()
	f.Add(AppendEnqueueRequest(nil, &full))
	addAll(f, `{"command":"a","payload": null ,"delaySeconds":3,"webhook":"","priority":9}`,
		`{"command":"a","payload":1,"runAt":"2026-01-01T00:00:00.0001+02:00"}`, `{"command":"a","payload":1,"runAt":"0000-01-01T00:00:00+14:00"}`)
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		r, err := ParseEnqueueRequest(body)
		checkEither(t, r != nil, err)
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
		if err != nil {
			return
		}
		var standard struct{ Payload json.RawMessage }
		if json.Unmarshal(body, &standard) == nil && !bytes.Equal(r.Payload, standard.Payload) && !foldsToPayload(body) {
			t.Fatalf("payload is %q, want %q", r.Payload, standard.Payload)
		}
		again, err := ParseEnqueueRequest(AppendEnqueueRequest(nil, r))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v came back as %+v (%v)", r, again, err)
		}
	})
}

// foldsToPayload reports a member that encoding/json takes for payload although
// its case differs.
func foldsToPayload(body []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return false
	}
	for name := range members {
		if name != "payload" && strings.EqualFold(name, "payload") {
			return true
		}
	}
	return false
}

func FuzzParseResultRequest(f *testing.F) {
	addBodyFaults(f)
	addAll(f, `{"result":{"a":1e400}}`, `{"error":"x\ud800"}`, `{"status":"FAILED","error":"e","leaseToken":"`+sampleToken(1).String()+`"}`,
		`{"result":{},"artifacts":[{"name":"n","url":"u","contentBase64":null}]}`)
	f.Fuzz(func(t *testing.T, body []byte) {
		r, _, err := ParseResultRequest(body)
		checkEither(t, r != nil, err)
		if err != nil {
			return
		}
		frame := &Result{Ref: ref(1), TaskRef: sampleRef(1), ResultRequest: *r}
		frames, err := ParseClientMessage(AppendClientFrame(nil, frame))
		if err != nil || !reflect.DeepEqual(frames, []ClientFrame{frame}) {
			t.Fatalf("%+v came back as %+v (%v)", frame, frames, err)
		}
	})
}

func FuzzParseNackRequest(f *testing.F) {
	addBodyFaults(f)
	addAll(f, ``, `{"delaySeconds":0,"reason":"r"}`, `{"leaseToken":"`+sampleToken(1).String()+`"}`)
	f.Fuzz(func(t *testing.T, body []byte) {
		r, _, err := ParseNackRequest(body)
		checkEither(t, r != nil, err)
		if err != nil {
			return
		}
		frame := &Nack{TaskRef: sampleRef(1), NackRequest: *r}
		frames, err := ParseClientMessage(AppendClientFrame(nil, frame))
		if err != nil || !reflect.DeepEqual(frames, []ClientFrame{frame}) {
			t.Fatalf("%+v came back as %+v (%v)", frame, frames, err)
		}
	})
}

func FuzzParseClientMessage(f *testing.F) {
	all := []byte("[1")
	for _, frame := range sampleClientFrames() {
		f.Add(AppendClientFrame(nil, frame))
		all = AppendClientFrame(append(all, ','), frame)
	}
	f.Add(append(all, ']'))
	addAll(f, `[]`, `[[]]`, `null`, `{"type":"x","ref":1}`, `[{"type":"drain"},`, `{"type":"drain","type":"drain","ref":1.5}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		frames, violation := ParseClientMessage(data)
		valid := json.Valid(data) && utf8.Valid(data) && len(data) <= MaxClientMessageBytes
		if violation == nil && !valid || violation != nil && valid && depthOf(data) <= recursionLimit {
			t.Fatalf("violation %v, valid %t", violation, valid)
		}
		if violation != nil && (frames != nil || len(violation.Sentence) > maxCloseReasonBytes) {
			t.Fatalf("violation %v with %d frames", violation, len(frames))
		}
		if !bytes.Equal(before, data) {
			t.Fatal("the message was changed")
		}
		var known []ClientFrame
		message := []byte("[")
		for _, frame := range frames {
			if unknown, ok := frame.(*Unknown); ok {
				checkEither(t, false, unknown.Err)
				continue
			}
			if len(known) > 0 {
				message = append(message, ',')
			}
			known = append(known, frame)
			message = AppendClientFrame(message, frame)
		}
		message = append(message, ']')
		// Defaults that are written out can make a message longer than allowed.
		again, violation := ParseClientMessage(message)
		if len(message) <= MaxClientMessageBytes && (violation != nil || !reflect.DeepEqual(again, known)) {
			t.Fatalf("%s: came back otherwise (%v)", message, violation)
		}
	})
}

func appendServerMessage(frames []ServerFrame) []byte {
	message := []byte("[")
	for i, frame := range frames {
		if i > 0 {
			message = append(message, ',')
		}
		message = AppendServerFrame(message, frame)
	}
	return append(message, ']')
}

// checkFixed: what was read and written once is written the same again. (What
// is read first may hold members that say nothing, which are left out.)
func checkFixed(t *testing.T, first, second []byte, err error) {
	t.Helper()
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("first\n%s\nthen\n%s\n(%v)", first, second, err)
	}
}

func FuzzParseServerMessage(f *testing.F) {
	var all []ServerFrame
	for _, frame := range sampleServerFrames() {
		f.Add(AppendServerFrame(nil, frame))
		all = append(all, frame)
	}
	f.Add(appendServerMessage(all))
	addAll(f, `[]`, `[{"type":"later"}]`, `[{"type":"ok","delaySeconds":3}]`, `[{"type":"error","code":"c","error":"e","taskId":null}]`)
	f.Fuzz(func(t *testing.T, data []byte) {
		frames, err := ParseServerMessage(data)
		if err != nil {
			if frames != nil {
				t.Fatal("a fault and frames")
			}
			return
		}
		if !json.Valid(data) || !utf8.Valid(data) {
			t.Fatal("read what is not JSON")
		}
		first := appendServerMessage(frames)
		again, err := ParseServerMessage(first)
		checkFixed(t, first, appendServerMessage(again), err)
	})
}

func FuzzParseTask(f *testing.F) {
	f.Add(AppendTask(nil, sampleTask(), PayloadAsString))
	f.Add(AppendTask(nil, barePendingTask(), PayloadAsString))
	f.Add(AppendTask(nil, sampleTask(), PayloadAsValue))
	f.Fuzz(func(t *testing.T, data []byte) {
		task, err := ParseTask(data)
		if err != nil {
			return
		}
		first := AppendTask(nil, task, PayloadAsString)
		again, err := ParseTask(first)
		if err != nil {
			t.Fatal(err)
		}
		checkFixed(t, first, AppendTask(nil, again, PayloadAsString), nil)
		// Both forms hold the same payload.
		frame := &TaskFrame{Token: sampleToken(1), Task: task}
		frames, err := ParseServerMessage(AppendServerFrame(nil, frame))
		if err != nil || !bytes.Equal(frames[0].(*TaskFrame).Task.Payload, again.Payload) {
			t.Fatalf("the payload %q came back otherwise (%v)", again.Payload, err)
		}
	})
}

func FuzzParseRecords(f *testing.F) {
	f.Add(AppendResultRecord(nil, sampleRecord()))
	f.Add(AppendError(nil, sampleError()))
	queues := []byte(`{"queues":[`)
	f.Add(append(AppendQueueFigures(queues, &sampleQueues()[0]), "]}"...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if record, err := ParseResultRecord(data); err == nil {
			first := AppendResultRecord(nil, record)
			again, err := ParseResultRecord(first)
			if err != nil {
				t.Fatal(err)
			}
			checkFixed(t, first, AppendResultRecord(nil, again), nil)
		}
		if refusal, err := ParseError(data); err == nil {
			first := AppendError(nil, refusal)
			again, err := ParseError(first)
			if err != nil {
				t.Fatal(err)
			}
			checkFixed(t, first, AppendError(nil, again), nil)
		}
		sessions, _, err := ParseSessionList(data)
		for _, figures := range sessions {
			if err != nil {
				t.Fatal("a fault and figures")
			}
			list := append(AppendSessionFigures([]byte(`{"sessions":[`), &figures), "]}"...)
			again, _, err := ParseSessionList(list)
			if err != nil || !reflect.DeepEqual(again, []SessionFigures{figures}) {
				t.Fatalf("%s came back as %+v (%v)", list, again, err)
			}
		}
		queues, err := ParseQueueList(data)
		for _, figures := range queues {
			if err != nil {
				t.Fatal("a fault and figures")
			}
			list := append(AppendQueueFigures([]byte(`{"queues":[`), &figures), "]}"...)
			again, err := ParseQueueList(list)
			if err != nil || !reflect.DeepEqual(again, []QueueFigures{figures}) {
				t.Fatalf("%s came back as %+v (%v)", list, again, err)
			}
		}
	})
}
