package client

import (
	"strings"
	"testing"
	"time"

	"codeq/wire"
)

func TestCompleteTakesOneJSONObjectOfTheSizeAllowed(t *testing.T) {
	full := `{"a":"` + strings.Repeat("x", wire.MaxResultBytes-8) + `"}`
	for result, want := range map[string]string{
		`{}`:               "",
		` {"a":1}`:         "",
		full:               "",
		full + " ":         "limit",
		``:                 "not JSON",
		`   `:              "not JSON",
		`[]`:               "not an object",
		`1`:                "not an object",
		`{"a":1`:           "not JSON",
		`{}{}`:             "not JSON",
		"{\"a\":\"\xff\"}": "not JSON",
	} {
		got := Complete([]byte(result))
		if want == "" {
			if got.Kind != Completed || string(got.Result) != result {
				t.Errorf("%.20s became %s %q, want completed", result, got.Kind, got.Reason)
			}
		} else if got.Kind != Nacked || !strings.Contains(got.Reason, want) {
			t.Errorf("%.20s became %s %q, want a nack about %q", result, got.Kind, got.Reason, want)
		}
	}
}

func TestReasonsFitTheProtocol(t *testing.T) {
	for reason, want := range map[string]string{
		"":          "no reason given",
		"plain":     "plain",
		"bad \xff.": "bad \uFFFD.",
		strings.Repeat("a", wire.MaxErrorBytes+5) + "end": strings.Repeat("a", wire.MaxErrorBytes-3) + "end",
	} {
		if got := Fail(reason); got.Reason != want {
			t.Errorf("%.20q became %.20q", reason, got.Reason)
		}
	}
}

func TestEveryOutcomeHasItsFrame(t *testing.T) {
	at := wire.Ref{Value: 7, Present: true}
	for _, c := range []struct {
		outcome Outcome
		want    string
	}{
		{Complete([]byte(`{"b":1,"a":2}`)), `"type":"result","ref":7,*"status":"COMPLETED","result":{"b":1,"a":2}}`},
		{Fail("no"), `"type":"result","ref":7,*"status":"FAILED","error":"no"}`},
		{Nack("no"), `"type":"nack","ref":7,*"leaseToken":"61000000000000000000000000000000","reason":"no"}`},
		{NackAfter("no", time.Nanosecond), `"type":"nack","ref":7,*"delaySeconds":1,"reason":"no"}`},
		{NackAfter("no", -time.Hour), `"type":"nack","ref":7,*"delaySeconds":0,"reason":"no"}`},
		{NotStarted("no"), `"type":"release","ref":7,*"leaseToken":"61000000000000000000000000000000","started":false}`},
		{Stopped(), `"type":"release","ref":7,*"leaseToken":"61000000000000000000000000000000","stopping":true}`},
		{Release(), `"type":"release","ref":7,*"leaseToken":"61000000000000000000000000000000"}`},
	} {
		got := string(wire.AppendClientFrame(nil, c.outcome.frame(at, ref('a'))))
		head, tail, _ := strings.Cut(c.want, "*")
		if !strings.HasPrefix(got, "{"+head) || !strings.HasSuffix(got, tail) {
			t.Errorf("%s is %s, want %s", c.outcome.Kind, got, c.want)
		}
	}
}

// Waits of clients are spread, but none is shorter than half of what it is about.
func TestA26WaitsOfClientsGrowAndStayUnderTheGraceOfTheServer(t *testing.T) {
	for failures := range 100 {
		about := maxBackoff
		if failures < 10 {
			about = min(firstBackoff<<failures, maxBackoff)
		}
		low, high := time.Hour, time.Duration(0)
		for range 200 {
			delay := backoff(failures)
			low, high = min(low, delay), max(high, delay)
		}
		if low < about/2 || high > about*3/2 || high > wire.ResumeGraceSeconds*time.Second {
			t.Errorf("after %d failures the wait is from %s to %s, want about %s", failures, low, high, about)
		}
		if high < low*3/2 {
			t.Errorf("after %d failures the wait is hardly spread: %s to %s", failures, low, high)
		}
	}
}
