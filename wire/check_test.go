package wire

import (
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzCheckEnqueueRequest: a request that was made in Go is refused exactly if the server
// would refuse what is written of it, with the same code and sentence.
func FuzzCheckEnqueueRequest(f *testing.F) {
	numbers := func(list ...int64) (data []byte) {
		for _, n := range list {
			data = binary.AppendVarint(data, n)
		}
		return data
	}
	f.Add("a", "1", "key", numbers(1, 2, 3, 0, 5))
	f.Add("", "", "", numbers())
	f.Add("..", `{"a":[]}`, strings.Repeat("k", MaxKeyBytes+1), numbers(10, -1, 0, 1, 0))
	f.Add("a b", nested(MaxNesting+1), strings.Repeat("t", MaxTraceBytes+1), numbers(-1, 1001, MaxDelaySeconds+1, -5, 9))
	f.Add("a", "1", "c=d\nk=v", numbers())
	f.Add("a", "1", "k=v\nk=w", numbers())
	f.Add("a", "1", "é=v", numbers())
	f.Add("a", "1", "k=\u200b \ufeff", numbers())
	f.Add(strings.Repeat("\xff", 67), "1", "k", numbers()) // 67 bytes, 201 once each stands as U+FFFD
	f.Fuzz(func(t *testing.T, command, payload, key string, numbers []byte) {
		number := func() int64 {
			n, size := binary.Varint(numbers)
			numbers = numbers[max(0, size):]
			return n
		}
		r := &EnqueueRequest{
			Command: command, Payload: []byte(payload), Priority: int(number()), MaxAttempts: int(number()), IdempotencyKey: key,
			DelaySeconds: number(), RunAtMs: number(), TTLSeconds: number(), ExpiresAtMs: number(), TimeoutSeconds: number(),
			TraceParent: strings.TrimPrefix(key, "k"), TraceState: key,
			Labels: Labels(key),
		}
		got := r.Check()
		bad := CheckJSON(r.Payload)
		if len(payload) > 0 && bad != nil && !strings.Contains(bad.Error(), problemTooDeep) || strings.TrimSpace(payload) != payload {
			return // it spoils the text around it
		}
		if list := strings.Split(key, labelSign); key != "" && !(slices.IsSorted(list) && !slices.ContainsFunc(list, func(label string) bool { return !strings.Contains(label, "=") })) {
			if got == nil {
				t.Fatalf("%+v passes", r)
			}
			return // no object is written as such labels
		}
		_, want := ParseEnqueueRequest(AppendEnqueueRequest(nil, r))
		if !utf8.ValidString(key) || !utf8.ValidString(command) { // in JSON each bad byte becomes three
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
