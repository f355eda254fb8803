package wire

import (
	"fmt"
	"strings"
	"testing"
)

// maxCloseReasonBytes is what a WebSocket close frame has room for.
const maxCloseReasonBytes = 123

func TestViolationsEndTheSession(t *testing.T) {
	large := `{"type":"drain","x":` + jsonText(MaxClientMessageBytes) + `}`
	cases := map[string]string{
		``:                         "invalid_body: message must be JSON: byte 0: a JSON value should begin here",
		`x`:                        "invalid_body: message must be JSON: byte 0: a JSON value should begin here",
		`{"type":"drain"} {}`:      "invalid_body: message must be JSON: byte 17: more text after the value",
		`[{"type":"drain"},`:       "invalid_body: message must be JSON: byte 18: a JSON value should begin here",
		`[{"type":"drain"}`:        "invalid_body: message must be JSON: byte 17: a comma or a closing bracket should be here",
		`[{"type":"drain"},{"a"}]`: "invalid_body: message must be JSON: byte 22: a colon should follow the member name",
		"{\"type\":\"\xff\"}":      "invalid_body: message must be JSON: byte 9: not UTF-8",
		`{"type":"\u00"}`:          `invalid_body: message must be JSON: byte 9: four hexadecimal digits should follow \u`,
		nested(recursionLimit + 2): "invalid_body: message must be JSON: byte 1001: nested too deeply",
		large:                      fmt.Sprintf("too_large: message must be at most 2097152 bytes, got %d", len(large)),
	}
	for message, want := range cases {
		frames, violation := ParseClientMessage([]byte(message))
		checkRefusal(t, message, violation, want)
		if frames != nil {
			t.Errorf("%s is a violation and has frames", brief(message))
		}
		if violation != nil && len(violation.Sentence) > maxCloseReasonBytes {
			t.Errorf("%q does not fit a close frame", violation.Sentence)
		}
	}
	exact := []byte(`{"type":"drain","x":` + jsonText(MaxClientMessageBytes-23) + `}`)
	if len(exact) != MaxClientMessageBytes {
		t.Fatalf("the test makes %d bytes", len(exact))
	}
	if _, violation := ParseClientMessage(exact); violation != nil {
		t.Errorf("a message of the largest size: %s", violation)
	}
}

// only parses a message that has one frame, which is refused.
func only(t *testing.T, message string) *Unknown {
	t.Helper()
	frames, violation := ParseClientMessage([]byte(message))
	if violation != nil || len(frames) != 1 {
		t.Fatalf("%s: %d frames, violation %v", brief(message), len(frames), violation)
	}
	unknown, ok := frames[0].(*Unknown)
	if !ok {
		t.Fatalf("%s passed as %T", brief(message), frames[0])
	}
	return unknown
}

func TestWhatIsNoFrameIsAnsweredOnce(t *testing.T) {
	const want = "invalid_body: message must be a JSON object or a list of JSON objects"
	for _, message := range []string{`1`, `null`, `"drain"`, `[1]`, `[1,2,"a"]`, `[[{"type":"drain"}]]`, `[[],[]]`} {
		unknown := only(t, message)
		checkRefusal(t, message, unknown.Err, want)
		if unknown.Ref.Present || !unknown.TaskID.IsZero() {
			t.Errorf("%s has a ref or a task", message)
		}
	}
	frames, violation := ParseClientMessage([]byte(` [ ] `))
	if violation != nil || len(frames) != 0 {
		t.Errorf("an empty list: %d frames, violation %v", len(frames), violation)
	}
	frames, violation = ParseClientMessage([]byte(`[{"type":"window","size":1},2,{"type":"drain","ref":3},[4],{"type":"x"}]`))
	if violation != nil || len(frames) != 4 {
		t.Fatalf("%d frames, violation %v", len(frames), violation)
	}
	checkSame(t, "first", frames[0], &Window{Size: 1})
	checkRefusal(t, "second", frames[1].(*Unknown).Err, want)
	checkSame(t, "third", frames[2], &Drain{Ref: ref(3)})
	checkRefusal(t, "last", frames[3].(*Unknown).Err, "invalid_argument: type names no frame that this server knows")
}

func TestFrameTypeRefusals(t *testing.T) {
	checkFrameRefusals(t, map[string]string{
		``:                              "invalid_argument: type is required: a string",
		`"type":null`:                   "invalid_argument: type is required: a string",
		`"type":3`:                      "invalid_argument: type must be a string, got 3",
		`"type":"welcome"`:              "invalid_argument: type names no frame that this server knows",
		`"type":"Drain"`:                "invalid_argument: type names no frame that this server knows",
		`"type":"drain","type":"drain"`: "invalid_body: type must not appear twice",
		`"typ":"drain"`:                 "unknown_member: typ is not known; did you mean type?",
		`"type":"drain","typ":1`:        "unknown_member: typ is not known; did you mean type?",
		`"type":"drain","size":1`:       "unknown_member: size is not known; known here: type, ref",
		`"type":"drain","x":` + nested(MaxNesting+1): "invalid_body: a member must not nest deeper than 64 levels",
	})
}

func TestFrameRefusals(t *testing.T) {
	id, token := sampleID(1).String(), sampleToken(1).String()
	delivery := `"taskId":"` + id + `","leaseToken":"` + token + `"`
	const (
		badToken = "leaseToken must be the 32 lower-case hexadecimal digits that came with the task"
		badName  = "may hold only letters, digits, dots, underscores, colons and hyphens"
		noList   = `invalid_argument: commands must be a list of 1 to 1000 commands, or ["*"] for all`
	)
	checkFrameRefusals(t, map[string]string{
		`"type":"window"`:                                 "invalid_argument: size is required: an integer from 0 to 10000",
		`"type":"window","size":10001`:                    "invalid_argument: size must be an integer from 0 to 10000, got 10001",
		`"type":"window","size":-1`:                       "invalid_argument: size must be an integer from 0 to 10000, got -1",
		`"type":"window","size":1,"size":1`:               "invalid_body: size must not appear twice",
		`"type":"received"`:                               "invalid_argument: through is required: an integer of at least 0",
		`"type":"received","through":-1`:                  "invalid_argument: through must be an integer of at least 0, got -1",
		`"type":"received","through":9223372036854775808`: "invalid_argument: through must be an integer of at least 0, got 9223372036854775808",

		`"type":"hello","token":1`:                                                "invalid_argument: token must be a string, got 1",
		`"type":"hello","resume":{}`:                                              "invalid_argument: resume must be a string, got an object",
		`"type":"hello","workerId":` + jsonText(201):                              "invalid_argument: workerId must be at most 200 bytes, got 201",
		`"type":"hello","maxMessageBytes":1114111`:                                "invalid_argument: maxMessageBytes must be an integer of at least 1114112, got 1114111",
		`"type":"hello","maxMessageBytes":0`:                                      "invalid_argument: maxMessageBytes must be an integer of at least 1114112, got 0",
		`"type":"subscribe"`:                                                      noList,
		`"type":"subscribe","commands":[]`:                                        noList,
		`"type":"subscribe","commands":"a"`:                                       "invalid_argument: commands must be a list, got a string",
		`"type":"subscribe","commands":[1]`:                                       "invalid_command: commands[0] must be a string, got 1",
		`"type":"subscribe","commands":["a",[]]`:                                  "invalid_command: commands[1] must be a string, got a list",
		`"type":"subscribe","commands":["a","b*"]`:                                "invalid_command: commands[1] " + badName + ", byte 1 is none",
		`"type":"subscribe","commands":[""]`:                                      "invalid_command: commands[0] must have 1 to 200 bytes, got 0",
		`"type":"subscribe","commands":["..."]`:                                   "invalid_command: commands[0] must not be dots alone",
		`"type":"subscribe","commands":[` + strings.Repeat(`"a",`, 1000) + `"a"]`: "invalid_argument: commands must have at most 1000 elements, got 1001",
		`"type":"subscribe","commands":["a"],"leaseSeconds":0`:                    "invalid_argument: leaseSeconds must be an integer from 1 to 43200, got 0",
		`"type":"subscribe","commands":["a"],"leaseSeconds":43201`:                "invalid_argument: leaseSeconds must be an integer from 1 to 43200, got 43201",
		`"type":"subscribe","commands":["a"],"window":10001`:                      "invalid_argument: window must be an integer from 0 to 10000, got 10001",

		`"type":"abandon"`: "invalid_argument: taskId is required: a string",
		`"type":"abandon","taskId":7,"leaseToken":"` + token + `"`:                      "invalid_argument: taskId must be a string, got 7",
		`"type":"abandon","taskId":"x","leaseToken":"` + token + `"`:                    "task_not_found: taskId names no task",
		`"type":"abandon","taskId":"` + strings.ToUpper(id) + `"`:                       "task_not_found: taskId names no task",
		`"type":"abandon","taskId":"` + (TaskID{}).String() + `"`:                       "task_not_found: taskId names no task",
		`"type":"abandon","taskId":"` + id + `"`:                                        "invalid_argument: leaseToken is required: a string",
		`"type":"release","taskId":"` + id + `","leaseToken":null`:                      "invalid_argument: leaseToken is required: a string",
		`"type":"release","taskId":"` + id + `","leaseToken":""`:                        "invalid_argument: leaseToken must not be empty",
		`"type":"release",` + delivery + `,"started":"no"`:                              "invalid_argument: started must be true or false, got a string",
		`"type":"release",` + delivery + `,"stopping":1`:                                "invalid_argument: stopping must be true or false, got 1",
		`"type":"release",` + delivery + `,"started":true,"started":true`:               "invalid_body: started must not appear twice",
		`"type":"nack","taskId":"` + id + `","leaseToken":"ABCD"`:                       "invalid_argument: " + badToken,
		`"type":"nack","taskId":"` + id + `","leaseToken":"` + (Token{}).String() + `"`: "invalid_argument: " + badToken,
		`"type":"nack",` + delivery + `,"delaySeconds":-1`:                              "invalid_time: delaySeconds must be an integer from 0 to 315360000, got -1",
		`"type":"nack",` + delivery + `,"taskId":"` + id + `"`:                          "invalid_body: taskId must not appear twice",
		`"type":"result",` + delivery:                                                   "invalid_result: result or error is required when status is left out",
		`"type":"result",` + delivery + `,"result":{},"leaseToken":1`:                   "invalid_body: leaseToken must not appear twice",

		`"type":"heartbeat","tasks":{}`:                                      "invalid_argument: tasks must be a list, got an object",
		`"type":"heartbeat","tasks":[1]`:                                     "invalid_argument: tasks[0] must be an object, got 1",
		`"type":"heartbeat","tasks":[{` + delivery + `},{}]`:                 "invalid_argument: tasks[1].taskId is required: a string",
		`"type":"heartbeat","tasks":[{"taskId":"x"}]`:                        "task_not_found: tasks[0].taskId names no task",
		`"type":"heartbeat","tasks":[{"taskId":"` + id + `"}]`:               "invalid_argument: tasks[0].leaseToken is required: a string",
		`"type":"heartbeat","tasks":[{` + delivery + `,"leaseToken":""}]`:    "invalid_body: tasks[0].leaseToken must not appear twice",
		`"type":"heartbeat","tasks":[` + strings.Repeat(`1,`, 10_000) + `1]`: "invalid_argument: tasks must have at most 10000 elements, got 10001",
		`"type":"heartbeat","extendSeconds":0`:                               "invalid_argument: extendSeconds must be an integer from 1 to 43200, got 0",
		`"type":"heartbeat","extendSeconds":43201`:                           "invalid_argument: extendSeconds must be an integer from 1 to 43200, got 43201",

		`"type":"enqueue"`:               "invalid_command: command is required: a string",
		`"type":"enqueue","command":"a"`: "invalid_body: payload is required: any JSON value, null too",
		`"type":"enqueue","command":"a","payload":` + jsonText(MaxPayloadBytes): "too_large: payload must be at most 1048576 bytes, got 1048578",
		`"type":"enqueue","command":"a","payload":` + nested(MaxNesting+1):      "invalid_body: payload must not nest deeper than 64 levels",
	})
}

// checkFrameRefusals makes a frame of each list of members and expects its
// refusal, with the ref of the frame.
func checkFrameRefusals(t *testing.T, cases map[string]string) {
	t.Helper()
	for members, want := range cases {
		message := `{"ref":-5,` + members + `}`
		if members == "" {
			message = `{"ref":-5}`
		}
		unknown := only(t, message)
		checkRefusal(t, message, unknown.Err, want)
		if unknown.Ref != ref(-5) {
			t.Errorf("%s has ref %+v", brief(message), unknown.Ref)
		}
	}
}

func TestRefIsAnInteger(t *testing.T) {
	for value, shown := range map[string]string{
		`1.0`: "1.0", `"1"`: "a string", `[]`: "a list", `9223372036854775808`: "9223372036854775808", `true`: "true",
	} {
		message := `{"type":"drain","ref":` + value + `}`
		unknown := only(t, message)
		checkRefusal(t, message, unknown.Err, "invalid_argument: ref must be an integer of 64 bits, got "+shown)
		if unknown.Ref.Present {
			t.Errorf("%s has a ref", message)
		}
	}
	twice := only(t, `{"type":"drain","ref":1,"ref":1}`)
	checkRefusal(t, "ref twice", twice.Err, "invalid_body: ref must not appear twice")
	if twice.Ref.Present {
		t.Error("a ref that came twice is a ref")
	}
	// The first fault is the answer, and a bad ref in it is no ref.
	both := only(t, `{"type":"drain","type":"drain","ref":"x"}`)
	checkRefusal(t, "both", both.Err, "invalid_body: type must not appear twice")
	if both.Ref.Present {
		t.Error("a bad ref is a ref")
	}
	frames, _ := ParseClientMessage([]byte(`[{"type":"drain","ref":-9223372036854775808},{"type":"drain","ref":null}]`))
	checkSame(t, "refs", frames, []ClientFrame{&Drain{Ref: ref(-1 << 63)}, &Drain{}})
}

func TestARefusedFrameNamesItsTask(t *testing.T) {
	id := sampleID(1)
	named := []string{
		`{"type":"nack","taskId":"` + id.String() + `"}`,
		`{"type":"nack","taskId":"` + id.String() + `","leaseToken":7}`,
		`{"type":"result","taskId":"` + id.String() + `","reason":1,"result":{},"result":{}}`,
	}
	for _, message := range named {
		if unknown := only(t, message); unknown.TaskID != id {
			t.Errorf("%s names task %s", message, unknown.TaskID)
		}
	}
	nameless := []string{
		`{"type":"nack","taskId":"x"}`,
		`{"type":"nack","taskId":"` + id.String() + `","taskId":"` + id.String() + `"}`,
		`{"type":"window","taskId":"` + id.String() + `"}`,
		`{"type":"future","taskId":"` + id.String() + `"}`,
	}
	for _, message := range nameless {
		if unknown := only(t, message); !unknown.TaskID.IsZero() {
			t.Errorf("%s names task %s", message, unknown.TaskID)
		}
	}
}

func TestFramesHaveDefaults(t *testing.T) {
	cases := map[string]ClientFrame{
		`{"type":"hello","maxMessageBytes":null,"token":null}`: &Hello{},
		`{"type":"subscribe","commands":["a"]}`: &Subscribe{
			Commands: []string{"a"}, Window: DefaultWindow,
		},
		`{"type":"subscribe","commands":["*","a"],"window":0}`: &Subscribe{
			Commands: []string{AllCommands, "a"},
		},
		`{"type":"heartbeat","tasks":null,"extendSeconds":null}`: &Heartbeat{},
		`{"type":"heartbeat","tasks":[]}`:                        &Heartbeat{Tasks: []TaskRef{}},
		`{"\u0074ype":"\u0064rain"}`:                             &Drain{},
		`{"type":"window","size":10000,"ref":null}`:              &Window{Size: MaxWindow},
		`{"type":"enqueue","command":"a","payload":null}`: &Enqueue{EnqueueRequest: EnqueueRequest{
			Command: "a", Payload: []byte("null"),
		}},
	}
	for message, want := range cases {
		frames, violation := ParseClientMessage([]byte(message))
		if violation != nil {
			t.Errorf("%s: %s", message, violation)
		}
		checkSame(t, message, frames, []ClientFrame{want})
	}
}

// TestNestingIsCountedPerMember: a payload that passes over HTTP passes in a
// session too, alone and in a list.
func TestNestingIsCountedPerMember(t *testing.T) {
	frame := `{"type":"enqueue","command":"a","payload":` + nested(MaxNesting) + `}`
	for _, message := range []string{frame, "[" + frame + "]"} {
		frames, violation := ParseClientMessage([]byte(message))
		if violation != nil || len(frames) != 1 {
			t.Fatalf("%d frames, violation %v", len(frames), violation)
		}
		if _, ok := frames[0].(*Enqueue); !ok {
			t.Errorf("%s became %T", brief(message), frames[0])
		}
	}
}

func TestADeepFrameIsRefusedAlone(t *testing.T) {
	deep := `{"type":"enqueue","ref":1,"command":"a","payload":` + nested(MaxNesting+1) + `}`
	frames, violation := ParseClientMessage([]byte(`[` + deep + `,{"type":"drain","ref":2}]`))
	if violation != nil || len(frames) != 2 {
		t.Fatalf("%d frames, violation %v", len(frames), violation)
	}
	checkRefusal(t, deep, frames[0].(*Unknown).Err, "invalid_body: payload must not nest deeper than 64 levels")
	checkSame(t, "the next frame", frames[1], &Drain{Ref: ref(2)})
}

func TestAClientCannotSendAnUnknown(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an Unknown was encoded")
		}
	}()
	AppendClientFrame(nil, &Unknown{})
}
