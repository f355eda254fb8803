package wire

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzCheckEnqueueRequest: a request that was made in Go is refused exactly if the server
// would refuse what is written of it, with the same code and sentence.
func FuzzCheckEnqueueRequest(f *testing.F) {
	f.Add("a", "1", "key", "trace", int64(1), int64(2), int64(3), int64(0), int64(5))
	f.Add("", "", "", "", int64(0), int64(0), int64(0), int64(0), int64(0))
	f.Add("..", `{"a":[]}`, strings.Repeat("k", MaxKeyBytes+1), "", int64(10), int64(-1), int64(0), int64(1), int64(0))
	f.Add("a b", nested(MaxNesting+1), "k", strings.Repeat("t", MaxTraceBytes+1), int64(-1), int64(1001), int64(MaxDelaySeconds+1), int64(-5), int64(9))
	f.Fuzz(func(t *testing.T, command, payload, key, trace string, priority, attempts, delay, runAt, ttl int64) {
		r := &EnqueueRequest{
			Command: command, Payload: []byte(payload), Priority: int(priority), MaxAttempts: int(attempts), IdempotencyKey: key,
			RunAtMs: runAt, DelaySeconds: delay, TimeoutSeconds: attempts, ExpiresAtMs: runAt, TTLSeconds: ttl, TraceParent: trace, TraceState: key,
		}
		got := r.Check()
		bad := CheckJSON(r.Payload)
		if len(payload) > 0 && bad != nil && !strings.Contains(bad.Error(), problemTooDeep) || strings.TrimSpace(payload) != payload {
			return // it spoils the text around it
		}
		_, want := ParseEnqueueRequest(AppendEnqueueRequest(nil, r))
		if !utf8.ValidString(key + trace) {
			if got == nil {
				t.Fatalf("%+v passes", r)
			}
			return
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v: %v, want %v", r, got, want)
		}
	})
}
