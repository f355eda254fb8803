package wire

import (
	"fmt"
	"strings"
	"testing"
)

// checkRefusal compares a refusal with "code: sentence".
func checkRefusal(t *testing.T, input string, got *Error, want string) {
	t.Helper()
	if got == nil {
		t.Errorf("%s passed, want %s", brief(input), want)
		return
	}
	if got.Error() != want {
		t.Errorf("%s:\n got %s\nwant %s", brief(input), got, want)
	}
}

func brief(text string) string {
	if len(text) > 200 {
		return fmt.Sprintf("%q… (%d bytes)", text[:200], len(text))
	}
	return fmt.Sprintf("%q", text)
}

// jsonText is a JSON string of n bytes.
func jsonText(n int) string { return `"` + strings.Repeat("x", n) + `"` }

// bodyFaults are wrong with every body.
var bodyFaults = map[string]string{
	`null`:                                   "invalid_body: body must be one JSON object, got null",
	`"a"`:                                    "invalid_body: body must be one JSON object, got a string",
	` 17 `:                                   "invalid_body: body must be one JSON object, got 17",
	`[{}]`:                                   "invalid_body: body must be one JSON object, got a list",
	`[{}`:                                    "invalid_body: body must be one JSON object: byte 3: a comma or a closing bracket should be here",
	`hello`:                                  "invalid_body: body must be one JSON object: byte 0: a JSON value should begin here",
	`{} {}`:                                  "invalid_body: body must be one JSON object: byte 3: more text after the value",
	`{"a":1}x`:                               "invalid_body: body must be one JSON object: byte 7: more text after the value",
	`{"a":1`:                                 "invalid_body: body must be one JSON object: byte 6: a comma or a closing bracket should be here",
	"{\"a\":\"\xff\"}":                       "invalid_body: body must be one JSON object: byte 6: not UTF-8",
	"{\"a\":\"\x00\"}":                       "invalid_body: body must be one JSON object: byte 6: a control character in a string must be escaped",
	`{"other":` + nested(MaxNesting+1) + `}`: "invalid_body: a member must not nest deeper than 64 levels",
}

func TestBodyFaultsAreInvalidBody(t *testing.T) {
	for body, want := range bodyFaults {
		_, err := ParseEnqueueRequest([]byte(body))
		checkRefusal(t, body, err, want)
		_, _, err = ParseResultRequest([]byte(body))
		checkRefusal(t, body, err, want)
		_, _, err = ParseNackRequest([]byte(body))
		checkRefusal(t, body, err, want)
		_, err = ParseHolder([]byte(body))
		checkRefusal(t, body, err, want)
		_, _, err = ParseReleaseRequest([]byte(body))
		checkRefusal(t, body, err, want)
		_, _, err = ParseExtendRequest([]byte(body))
		checkRefusal(t, body, err, want)
		_, err = ParseClaimRequest([]byte(body))
		checkRefusal(t, body, err, want)
		_, err = ParseResultBatch([]byte(body))
		checkRefusal(t, body, err, want)
	}
	const nothing = "invalid_body: body must be one JSON object, got nothing"
	_, err := ParseEnqueueRequest(nil)
	checkRefusal(t, "", err, nothing)
	_, _, err = ParseResultRequest(nil)
	checkRefusal(t, "", err, nothing)
}

func TestEnqueueRefusals(t *testing.T) {
	const right = "may hold only letters, digits, dots, underscores, colons and hyphens"
	cases := map[string]string{
		// command
		`{"payload":1}`:                     "invalid_command: command is required: a string",
		`{"command":null,"payload":1}`:      "invalid_command: command is required: a string",
		`{"command":7,"payload":1}`:         "invalid_command: command must be a string, got 7",
		`{"command":"","payload":1}`:        "invalid_command: command must not be empty",
		`{"command":"a b","payload":1}`:     "invalid_command: command " + right + ", byte 1 is none",
		`{"command":"a/b","payload":1}`:     "invalid_command: command " + right + ", byte 1 is none",
		`{"command":"a\u0000","payload":1}`: "invalid_command: command " + right + ", byte 1 is none",
		`{"command":"é","payload":1}`:       "invalid_command: command " + right + ", byte 0 is none",
		`{"command":"*","payload":1}`:       "invalid_command: command " + right + ", byte 0 is none",
		`{"command":"..","payload":1}`:      "invalid_command: command must not be dots alone",
		`{"command":` + jsonText(201) + `}`: "invalid_command: command must have 1 to 200 bytes, got 201",
		// payload
		`{"command":"a"}`:                                               "invalid_body: payload is required: any JSON value, null too",
		`{"command":"a","payload":1,"payload":1}`:                       "invalid_body: payload must not appear twice",
		`{"command":"a","payload":1,"p\u0061yload":1}`:                  "invalid_body: payload must not appear twice",
		`{"command":"a","command":"a","payload":1}`:                     "invalid_body: command must not appear twice",
		`{"command":"a","payload":1,"runAt":null,"runAt":null}`:         "invalid_body: runAt must not appear twice",
		`{"command":"a","payload":` + nested(MaxNesting+1) + `}`:        "invalid_body: payload must not nest deeper than 64 levels",
		`{"command":"a","payload":` + jsonText(MaxPayloadBytes-1) + `}`: "too_large: payload must be at most 1048576 bytes, got 1048577",
		// priority
		`{"command":"a","payload":1,"priority":10}`:                        "invalid_priority: priority must be an integer from 0 to 9, got 10",
		`{"command":"a","payload":1,"priority":-1}`:                        "invalid_priority: priority must be an integer from 0 to 9, got -1",
		`{"command":"a","payload":1,"priority":1.0}`:                       "invalid_priority: priority must be an integer from 0 to 9, got 1.0",
		`{"command":"a","payload":1,"priority":1e0}`:                       "invalid_priority: priority must be an integer from 0 to 9, got 1e0",
		`{"command":"a","payload":1,"priority":"1"}`:                       "invalid_priority: priority must be an integer from 0 to 9, got a string",
		`{"command":"a","payload":1,"priority":true}`:                      "invalid_priority: priority must be an integer from 0 to 9, got true",
		`{"command":"a","payload":1,"priority":[1]}`:                       "invalid_priority: priority must be an integer from 0 to 9, got a list",
		`{"command":"a","payload":1,"priority":{}}`:                        "invalid_priority: priority must be an integer from 0 to 9, got an object",
		`{"command":"a","payload":1,"priority":12345678901234567890}`:      "invalid_priority: priority must be an integer from 0 to 9, got 12345678901234567890",
		`{"command":"a","payload":1,"priority":1234567890123456789012345}`: "invalid_priority: priority must be an integer from 0 to 9, got a number of 25 characters",
		// maxAttempts
		`{"command":"a","payload":1,"maxAttempts":0}`:    "invalid_argument: maxAttempts must be an integer from 1 to 1000, got 0",
		`{"command":"a","payload":1,"maxAttempts":1001}`: "invalid_argument: maxAttempts must be an integer from 1 to 1000, got 1001",
		// idempotencyKey
		`{"command":"a","payload":1,"idempotencyKey":""}`:                    "invalid_argument: idempotencyKey must not be empty",
		`{"command":"a","payload":1,"idempotencyKey":5}`:                     "invalid_argument: idempotencyKey must be a string, got 5",
		`{"command":"a","payload":1,"idempotencyKey":"\ud800"}`:              "invalid_argument: idempotencyKey must be Unicode text, got a surrogate without its partner",
		`{"command":"a","payload":1,"idempotencyKey":` + jsonText(513) + `}`: "invalid_argument: idempotencyKey must be at most 512 bytes, got 513",
		// time
		`{"command":"a","payload":1,"runAt":"tomorrow"}`:                              "invalid_time: runAt must be an RFC 3339 time such as 2026-01-31T12:00:00Z",
		`{"command":"a","payload":1,"runAt":""}`:                                      "invalid_time: runAt must be an RFC 3339 time such as 2026-01-31T12:00:00Z",
		`{"command":"a","payload":1,"runAt":1767225600}`:                              "invalid_time: runAt must be an RFC 3339 time such as 2026-01-31T12:00:00Z",
		`{"command":"a","payload":1,"runAt":"2026-02-30T00:00:00Z"}`:                  "invalid_time: runAt must be an RFC 3339 time such as 2026-01-31T12:00:00Z",
		`{"command":"a","payload":1,"runAt":"2026-01-01T00:00:00"}`:                   "invalid_time: runAt must be an RFC 3339 time such as 2026-01-31T12:00:00Z",
		`{"command":"a","payload":1,"runAt":"2026-01-01 00:00:00Z"}`:                  "invalid_time: runAt must be an RFC 3339 time such as 2026-01-31T12:00:00Z",
		`{"command":"a","payload":1,"runAt":"9999-12-31T23:59:59.9999Z"}`:             "invalid_time: runAt must be an RFC 3339 time such as 2026-01-31T12:00:00Z",
		`{"command":"a","payload":1,"delaySeconds":-1}`:                               "invalid_time: delaySeconds must be an integer from 0 to 315360000, got -1",
		`{"command":"a","payload":1,"delaySeconds":315360001}`:                        "invalid_time: delaySeconds must be an integer from 0 to 315360000, got 315360001",
		`{"command":"a","payload":1,"delaySeconds":1.5}`:                              "invalid_time: delaySeconds must be an integer from 0 to 315360000, got 1.5",
		`{"command":"a","payload":1,"delaySeconds":0,"runAt":"2026-01-01T00:00:00Z"}`: "invalid_time: runAt and delaySeconds must not be given together",
		// trace
		`{"command":"a","payload":1,"traceParent":` + jsonText(513) + `}`: "invalid_argument: traceParent must be at most 512 bytes, got 513",
		`{"command":"a","payload":1,"traceState":[]}`:                     "invalid_argument: traceState must be a string, got a list",
		`{"command":"a","payload":1,"traceParent":"x"}`:                   "invalid_argument: traceParent must be a traceparent of W3C Trace Context, such as " + goodTrace,
		`{"command":"a","payload":1,"traceState":"x"}`:                    "invalid_argument: traceState must be a tracestate of W3C Trace Context: up to 32 members like vendor=value with commas between",
	}
	for body, want := range cases {
		r, err := ParseEnqueueRequest([]byte(body))
		checkRefusal(t, body, err, want)
		if r != nil {
			t.Errorf("%s is refused and there is a request", brief(body))
		}
	}
}

func TestEnqueueAccepts(t *testing.T) {
	base := EnqueueRequest{Command: "a", Payload: []byte("1")}
	with := func(change func(r *EnqueueRequest)) EnqueueRequest {
		r := base
		change(&r)
		return r
	}
	key := strings.Repeat("k", MaxKeyBytes)
	command := strings.Repeat(".", MaxCommandBytes-1) + "a"
	deep := nested(MaxNesting)
	large := jsonText(MaxPayloadBytes - 2)
	cases := map[string]EnqueueRequest{
		`{"command":"a","payload":1}`: base,
		`{"command":"a","payload":1,"priority":null,"webhook":null,"maxAttempts":null,"idempotencyKey":null,` +
			`"runAt":null,"delaySeconds":null,"traceParent":null,"traceState":null}`: base,
		`{"command":"a","payload":1,"webhook":""}`:                                                base,
		`{"command":"a","payload":1,"webhook":"https://[2001:db8::1]:8443/a?b=c"}`:                with(func(r *EnqueueRequest) { r.Webhook = "https://[2001:db8::1]:8443/a?b=c" }),
		`{"command":"\u0061","payload":1,"priority":-0}`:                                          base,
		`{"command":"a","payload":null}`:                                                          with(func(r *EnqueueRequest) { r.Payload = []byte("null") }),
		`{"command":"a","payload": 1e400 }`:                                                       with(func(r *EnqueueRequest) { r.Payload = []byte("1e400") }),
		`{"command":"a","payload":12345678901234567890}`:                                          with(func(r *EnqueueRequest) { r.Payload = []byte("12345678901234567890") }),
		`{"command":"a","payload":"\u0000\ud800"}`:                                                with(func(r *EnqueueRequest) { r.Payload = []byte(`"\u0000\ud800"`) }),
		`{"command":"a","payload":{"x":1,"x" : 2}}`:                                               with(func(r *EnqueueRequest) { r.Payload = []byte(`{"x":1,"x" : 2}`) }),
		`{"command":"a","payload":` + deep + `}`:                                                  with(func(r *EnqueueRequest) { r.Payload = []byte(deep) }),
		`{"command":"a","payload":` + large + `}`:                                                 with(func(r *EnqueueRequest) { r.Payload = []byte(large) }),
		`{"command":"` + command + `","payload":1}`:                                               with(func(r *EnqueueRequest) { r.Command = command }),
		`{"command":"a","payload":1,"priority":9}`:                                                with(func(r *EnqueueRequest) { r.Priority = 9 }),
		`{"command":"a","payload":1,"maxAttempts":1000}`:                                          with(func(r *EnqueueRequest) { r.MaxAttempts = 1000 }),
		`{"command":"a","payload":1,"idempotencyKey":"\u0000"}`:                                   with(func(r *EnqueueRequest) { r.IdempotencyKey = "\x00" }),
		`{"command":"a","payload":1,"idempotencyKey":"` + key + `"}`:                              with(func(r *EnqueueRequest) { r.IdempotencyKey = key }),
		`{"command":"a","payload":1,"delaySeconds":315360000}`:                                    with(func(r *EnqueueRequest) { r.DelaySeconds = MaxDelaySeconds }),
		`{"command":"a","payload":1,"runAt":"2026-01-01T01:00:00.123+01:00","delaySeconds":null}`: with(func(r *EnqueueRequest) { r.RunAtMs = sampleTimeMs }),
		// Nothing runs before its time: parts of a millisecond round up.
		`{"command":"a","payload":1,"runAt":"2026-01-01T00:00:00.122000001Z"}`: with(func(r *EnqueueRequest) { r.RunAtMs = sampleTimeMs }),
		// Long past is at once, like no time at all.
		`{"command":"a","payload":1,"runAt":"1969-12-31T23:59:59Z"}`: base,
		`{"command":"a","payload":1,"runAt":"0000-01-01T00:00:00Z"}`: base,
	}
	for body, want := range cases {
		got, err := ParseEnqueueRequest([]byte(body))
		if err != nil {
			t.Errorf("%s: %s", brief(body), err)
			continue
		}
		checkSame(t, brief(body), *got, want)
	}
}

func TestRunAtIsBoundedByTheClockOfTheCaller(t *testing.T) {
	const limitMs = MaxDelaySeconds * 1000
	for runAtMs, ok := range map[int64]bool{
		0: true, 1: true, sampleTimeMs: true, sampleTimeMs + limitMs: true, sampleTimeMs + limitMs + 1: false, maxTimeMs: false,
	} {
		r := EnqueueRequest{RunAtMs: runAtMs}
		_, _, err := r.Times(sampleTimeMs, 0)
		if (err == nil) != ok {
			t.Errorf("runAt of %d ms: %v", runAtMs, err)
		}
		if err != nil {
			checkRefusal(t, "runAt", err, "invalid_time: runAt must be at most ten years from now")
		}
	}
}

// When a task may begin and when it expires depend on the clock and its queue.
func TestU04TimesOfANewTask(t *testing.T) {
	const now, second, most = sampleTimeMs, 1000, MaxDelaySeconds * 1000
	for name, c := range map[string]struct {
		request          EnqueueRequest
		queueTTL         int64
		dueMs, expiresMs int64
		refused          string
	}{
		"nothing":           {dueMs: now},
		"ttl":               {request: EnqueueRequest{TTLSeconds: 1}, dueMs: now, expiresMs: now + second},
		"queue":             {queueTTL: 2, dueMs: now, expiresMs: now + 2*second},
		"task first":        {request: EnqueueRequest{TTLSeconds: 3}, queueTTL: 2, dueMs: now, expiresMs: now + 3*second},
		"time first":        {request: EnqueueRequest{ExpiresAtMs: now + 1}, queueTTL: 2, dueMs: now, expiresMs: now + 1},
		"delay before":      {request: EnqueueRequest{TTLSeconds: 3, DelaySeconds: 2}, dueMs: now + 2*second, expiresMs: now + 3*second},
		"delay behind":      {request: EnqueueRequest{TTLSeconds: 3, DelaySeconds: 3}, refused: "would expire at 2026-01-01T00:00:03.123Z and may begin at 2026-01-01T00:00:03.123Z;"},
		"queue behind":      {request: EnqueueRequest{DelaySeconds: 5}, queueTTL: 3, refused: "would expire at"},
		"now":               {request: EnqueueRequest{ExpiresAtMs: now}, refused: "would expire at"},
		"past":              {request: EnqueueRequest{ExpiresAtMs: 1}, refused: "would expire at 1970-01-01T00:00:00.001Z and may begin"},
		"runAt at it":       {request: EnqueueRequest{RunAtMs: now + 9, ExpiresAtMs: now + 9}, refused: "would expire at"},
		"runAt before":      {request: EnqueueRequest{RunAtMs: now + 8, ExpiresAtMs: now + 9}, dueMs: now + 8, expiresMs: now + 9},
		"runAt passed":      {request: EnqueueRequest{RunAtMs: now - 8, ExpiresAtMs: now + 9}, dueMs: now, expiresMs: now + 9},
		"in ten years":      {request: EnqueueRequest{ExpiresAtMs: now + most}, dueMs: now, expiresMs: now + most},
		"in over ten years": {request: EnqueueRequest{ExpiresAtMs: now + most + 1}, refused: "expiresAt must be at most ten years from now"},
	} {
		dueMs, expiresMs, err := c.request.Times(now, c.queueTTL)
		switch {
		case c.refused == "" && (err != nil || dueMs != c.dueMs || expiresMs != c.expiresMs):
			t.Errorf("%s: %d, %d, %v, want %d, %d", name, dueMs, expiresMs, err, c.dueMs, c.expiresMs)
		case c.refused != "" && (err == nil || err.Code != CodeInvalidTime || !strings.Contains(err.Sentence, c.refused)):
			t.Errorf("%s: %v, want %q", name, err, c.refused)
		}
	}
}

func TestResultRefusals(t *testing.T) {
	content := `"contentBase64":"YQ=="`
	cases := map[string]string{
		`{}`:                                                                           "invalid_result: result or error is required when status is left out",
		`{"result":null}`:                                                              "invalid_result: result or error is required when status is left out",
		`{"error":""}`:                                                                 "invalid_result: result or error is required when status is left out",
		`{"status":"COMPLETED"}`:                                                       "invalid_result: result is required when status is COMPLETED: a JSON object",
		`{"status":"COMPLETED","error":"x"}`:                                           "invalid_result: result is required when status is COMPLETED: a JSON object",
		`{"status":"COMPLETED","result":null}`:                                         "invalid_result: result is required when status is COMPLETED: a JSON object",
		`{"status":"FAILED"}`:                                                          "invalid_result: error is required when status is FAILED: a string",
		`{"status":"FAILED","error":""}`:                                               "invalid_result: error is required when status is FAILED: a string",
		`{"status":"FAILED","result":{}}`:                                              "invalid_result: error is required when status is FAILED: a string",
		`{"status":"completed","result":{}}`:                                           "invalid_result: status must be COMPLETED or FAILED",
		`{"status":"CANCELLED","result":{}}`:                                           "invalid_result: status must be COMPLETED or FAILED",
		`{"status":"","result":{}}`:                                                    "invalid_result: status must be COMPLETED or FAILED",
		`{"status":1,"result":{}}`:                                                     "invalid_result: status must be a string, got 1",
		`{"result":[]}`:                                                                "invalid_result: result must be a JSON object, got a list",
		`{"result":"x"}`:                                                               "invalid_result: result must be a JSON object, got a string",
		`{"status":"FAILED","error":"x","result":3}`:                                   "invalid_result: result must be a JSON object, got 3",
		`{"result":{},"result":{}}`:                                                    "invalid_body: result must not appear twice",
		`{"result":{"a":` + nested(MaxNesting) + `}}`:                                  "invalid_body: result must not nest deeper than 64 levels",
		`{"result":{"a":` + jsonText(MaxResultBytes-7) + `}}`:                          "too_large: result must be at most 1048576 bytes, got 1048577",
		`{"error":5}`:                                                                  "invalid_result: error must be a string, got 5",
		`{"error":"x\ud800"}`:                                                          "invalid_result: error must be Unicode text, got a surrogate without its partner",
		`{"result":{},"artifacts":[{"name":"\udc00","url":"u"}]}`:                      "invalid_result: artifacts[0].name must be Unicode text, got a surrogate without its partner",
		`{"result":{},"artifacts":[{"name":"a","url":"\udc00"}]}`:                      "invalid_result: artifacts[0].url must be Unicode text, got a surrogate without its partner",
		`{"result":{},"workerId":"\udc00"}`:                                            "invalid_argument: workerId must be Unicode text, got a surrogate without its partner",
		`{"error":` + jsonText(MaxErrorBytes+1) + `}`:                                  "too_large: error must be at most 8192 bytes, got 8193",
		`{"result":{},"artifacts":{}}`:                                                 "invalid_result: artifacts must be a list, got an object",
		`{"result":{},"artifacts":[1]}`:                                                "invalid_result: artifacts[0] must be an object, got 1",
		`{"result":{},"artifacts":[{}]}`:                                               "invalid_result: artifacts[0].name is required: a string",
		`{"result":{},"artifacts":[{"name":"a","url":""}]}`:                            "invalid_result: artifacts[0].url must not be empty",
		`{"result":{},"artifacts":[{"name":1,"url":"u"}]}`:                             "invalid_result: artifacts[0].name must be a string, got 1",
		`{"result":{},"artifacts":[{"name":"a","name":"a"}]}`:                          "invalid_body: artifacts[0].name must not appear twice",
		`{"result":{},"artifacts":[{"name":"a","url":"u",` + content + `}]}`:           "invalid_result: artifacts[0].contentBase64 and url must not be given together",
		`{"result":{},"artifacts":[{"name":"a","contentBase64":"YQ="}]}`:               "invalid_result: artifacts[0].contentBase64 must be base64 with its padding, RFC 4648 section 4",
		`{"result":{},"artifacts":[{"name":"a","contentBase64":7}]}`:                   "invalid_result: artifacts[0].contentBase64 must be a string, got 7",
		`{"result":{},"artifacts":[{"name":"../a"}]}`:                                  "invalid_result: artifacts[0].name must be a path such as log.txt or plots/1.png, without empty parts, \".\" and \"..\"",
		`{"result":{},"artifacts":[{"name":"a\u202eb",` + content + `}]}`:              "invalid_result: artifacts[0].name must not hold control characters, or such as change the direction of text",
		`{"result":{},"artifacts":[{"name":"a\u001bb","url":"u"}]}`:                    "invalid_result: artifacts[0].name must not hold control characters, or such as change the direction of text",
		`{"result":{},"artifacts":[{"name":"a","contentType":` + jsonText(256) + `}]}`: "invalid_result: artifacts[0].contentType must be at most 255 bytes, got 256",
		`{"result":{},"artifacts":[{"name":"a","contentType":"é"}]}`:                   "invalid_result: artifacts[0].contentType must be printable ASCII, such as image/png",
		`{"result":{},"artifacts":[{"name":"a","url":"u"},{"name":"a"}]}`:              "invalid_result: artifacts[1].name is the name of another artifact, too",
		`{"result":{},"artifacts":[{"name":"a","file":"1.1"}]}`:                        "unknown_member: artifacts[0].file is not known; known here: name, contentBase64, url, contentType",
		`{"result":{},"artifacts":[{"name":` + jsonText(1025) + `,"url":"u"}]}`:        "invalid_result: artifacts[0].name must be at most 1024 bytes, got 1025",
		`{"result":{},"artifacts":[{"name":"a","url":` + jsonText(8193) + `}]}`:        "invalid_result: artifacts[0].url must be at most 8192 bytes, got 8193",
		`{"result":{},"artifacts":[` + strings.Repeat(`{},`, 100) + `{}]}`:             "invalid_result: artifacts must have at most 100 elements, got 101",
		`{"result":{},"leaseToken":"abc"}`:                                             "invalid_argument: leaseToken must be the 32 lower-case hexadecimal digits that came with the task",
		`{"result":{},"leaseToken":""}`:                                                "invalid_argument: leaseToken must not be empty",
		`{"result":{},"leaseToken":7}`:                                                 "invalid_argument: leaseToken must be a string, got 7",
		`{"result":{},"leaseToken":"` + (Token{}).String() + `"}`:                      "invalid_argument: leaseToken must be the 32 lower-case hexadecimal digits that came with the task",
	}
	for body, want := range cases {
		r, _, err := ParseResultRequest([]byte(body))
		checkRefusal(t, body, err, want)
		if r != nil {
			t.Errorf("%s is refused and there is a request", brief(body))
		}
	}
}

func TestResultAccepts(t *testing.T) {
	large := `{"a":` + jsonText(MaxResultBytes-8) + `}`
	deep := `{"a":` + nested(MaxNesting-1) + `}`
	long := strings.Repeat("x", MaxErrorBytes)
	cases := map[string]ResultRequest{
		`{"result":{}}`:                               {Status: StatusCompleted, Result: []byte(`{}`)},
		`{"status":null,"result": {"n":1e400} }`:      {Status: StatusCompleted, Result: []byte(`{"n":1e400}`)},
		`{"status":"COMPLETED","result":{}}`:          {Status: StatusCompleted, Result: []byte(`{}`)},
		`{"result":{},"error":"w"}`:                   {Status: StatusCompleted, Result: []byte(`{}`), Error: "w"},
		`{"error":"x\ud83d\ude00"}`:                   {Status: StatusFailed, Error: "x\U0001f600"},
		`{"error":"x","result":null}`:                 {Status: StatusFailed, Error: "x"},
		`{"status":"FAILED","error":"x","result":{}}`: {Status: StatusFailed, Error: "x", Result: []byte(`{}`)},
		`{"result":` + large + `}`:                    {Status: StatusCompleted, Result: []byte(large)},
		`{"result":` + deep + `}`:                     {Status: StatusCompleted, Result: []byte(deep)},
		`{"error":"` + long + `"}`:                    {Status: StatusFailed, Error: long},
		`{"result":{},"artifacts":[]}`:                {Status: StatusCompleted, Result: []byte(`{}`)},
		`{"result":{},"artifacts":null}`:              {Status: StatusCompleted, Result: []byte(`{}`)},
		`{"result":{},"artifacts":[ {"url":"u","name":"n","contentBase64":null,"contentType":7} ]}`: {
			Status: StatusCompleted, Result: []byte(`{}`), Artifacts: []Artifact{{Name: "n", URL: "u"}},
		},
	}
	for body, want := range cases {
		got, holder, err := ParseResultRequest([]byte(body))
		if err != nil {
			t.Errorf("%s: %s", brief(body), err)
			continue
		}
		if holder != (Holder{}) {
			t.Errorf("%s says whose it is", brief(body))
		}
		checkSame(t, brief(body), *got, want)
	}
	_, holder, err := ParseResultRequest([]byte(`{"result":{},"workerId":"w","leaseToken":"` + sampleToken(9).String() + `"}`))
	if err != nil || holder != (Holder{Token: sampleToken(9), WorkerID: "w"}) {
		t.Errorf("it is of %+v (%v)", holder, err)
	}
}

func TestNackBodies(t *testing.T) {
	refused := map[string]string{
		`{"delaySeconds":-1}`:                          "invalid_time: delaySeconds must be an integer from 0 to 315360000, got -1",
		`{"delaySeconds":315360001}`:                   "invalid_time: delaySeconds must be an integer from 0 to 315360000, got 315360001",
		`{"delaySeconds":"1"}`:                         "invalid_time: delaySeconds must be an integer from 0 to 315360000, got a string",
		`{"reason":1}`:                                 "invalid_argument: reason must be a string, got 1",
		`{"reason":"\ud83dx"}`:                         "invalid_argument: reason must be Unicode text, got a surrogate without its partner",
		`{"reason":` + jsonText(MaxErrorBytes+1) + `}`: "too_large: reason must be at most 8192 bytes, got 8193",
		`{"reason":"a","reason":"b"}`:                  "invalid_body: reason must not appear twice",
		`{"leaseToken":"x"}`:                           "invalid_argument: leaseToken must be the 32 lower-case hexadecimal digits that came with the task",
	}
	for body, want := range refused {
		_, _, err := ParseNackRequest([]byte(body))
		checkRefusal(t, body, err, want)
	}
	accepted := map[string]NackRequest{
		``:                      {DelaySeconds: -1},
		" \n":                   {DelaySeconds: -1},
		`{}`:                    {DelaySeconds: -1},
		`{"delaySeconds":null}`: {DelaySeconds: -1},
		`{"delaySeconds":0}`:    {DelaySeconds: 0},
		`{"delaySeconds":315360000,"reason":"later \u00e9"}`: {DelaySeconds: MaxDelaySeconds, Reason: "later é"},
	}
	for body, want := range accepted {
		got, holder, err := ParseNackRequest([]byte(body))
		if err != nil {
			t.Errorf("%s: %s", brief(body), err)
			continue
		}
		checkSame(t, brief(body), *got, want)
		if holder != (Holder{}) {
			t.Errorf("%s says whose it is", brief(body))
		}
	}
	_, holder, err := ParseNackRequest([]byte(`{"leaseToken":"` + sampleToken(9).String() + `"}`))
	if err != nil || holder != (Holder{Token: sampleToken(9)}) {
		t.Errorf("it is of %+v (%v)", holder, err)
	}
}

// TestSentencesKeepSecrets puts a marker where payloads, results, tokens,
// keys and texts go, breaks each rule, and looks for the marker.
func TestSentencesKeepSecrets(t *testing.T) {
	// Longer than the names of members that a sentence repeats.
	const secret = "s3cr3tmarker-s3cr3tmarker-s3cr3tmarker-s3cr3tmarker"
	quoted := `"` + secret + `"`
	bodies := []string{secret, quoted, `{"payload":` + secret, `{` + quoted + `:` + quoted + `:}`}
	for _, name := range requestNames {
		for _, value := range []string{quoted, `[` + quoted + `]`, `{` + quoted + `:1}`, `[{` + quoted + `:1}]`, `[[` + quoted + `]]`} {
			bodies = append(bodies, `{"command":"a","payload":1,"`+name+`":`+value+`}`, `{"`+name+`":`+value+`}`)
		}
		long := `"` + secret + strings.Repeat("x", MaxErrorBytes) + `"`
		bodies = append(bodies, `{"`+name+`":`+long+`}`)
	}
	check := func(body string, err *Error) {
		if err != nil && strings.Contains(err.Sentence, secret) {
			t.Errorf("%s is repeated: %s", brief(body), err)
		}
	}
	for _, body := range bodies {
		_, err := ParseEnqueueRequest([]byte(body))
		check(body, err)
		_, _, err = ParseResultRequest([]byte(body))
		check(body, err)
		_, _, err = ParseNackRequest([]byte(body))
		check(body, err)
		_, _, err = ParseExtendRequest([]byte(body))
		check(body, err)
		_, err = ParseClaimBatchRequest([]byte(body))
		check(body, err)
		items, err := ParseResultBatch([]byte(`{"results":[` + body + `]}`))
		check(body, err)
		for _, item := range items {
			check(body, item.Err)
		}
		for kind := range clientKinds {
			frame := strings.Replace(body, "{", `{"type":"`+kind+`",`, 1)
			frames, err := ParseClientMessage([]byte(frame))
			check(frame, err)
			for _, f := range frames {
				if unknown, ok := f.(*Unknown); ok {
					check(frame, unknown.Err)
				}
			}
		}
	}
}
