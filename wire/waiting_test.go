package wire

import (
	"strings"
	"testing"
)

func TestReasonToWaitComesBackAsItWasWritten(t *testing.T) {
	for text, w := range map[string]Waiting{
		`{"reason":"no_room","behind":0}`: {Reason: WaitingNoCredit, BehindKnown: true},
		`{"reason":"target","behind":3,"until":"2026-01-01T00:00:00.000Z","problem":"no answer"}`: {
			Reason: WaitingTarget, Behind: 3, BehindKnown: true, UntilMs: 1_767_225_600_000, Problem: "no answer",
		},
		`{"reason":"behind"}`: {Reason: WaitingBehind},
		`{"reason":"delayed","until":"2026-01-01T00:00:00.000Z"}`: {Reason: WaitingDelayed, UntilMs: 1_767_225_600_000},
		`{"reason":"behind","behind":12345678901}`:                {Reason: WaitingBehind, Behind: 12_345_678_901, BehindKnown: true},
	} {
		task := sampleTask()
		task.Waiting = &w
		body := AppendTask(nil, task, PayloadAsString)
		if !strings.Contains(string(body), `,"waiting":`+text+`,`) {
			t.Errorf("want %s in %s", text, body)
		}
		read, err := ParseTask(body)
		if err != nil || read.Waiting == nil || *read.Waiting != w {
			t.Errorf("%s came back as %+v, %v", text, read, err)
		}
	}
	for _, bad := range []string{`3`, `{}`, `{"reason":1}`, `[]`, `{"reason":"delayed","until":"soon"}`} {
		body := `{"id":"` + sampleID(1).String() + `","waiting":` + bad + `}`
		if task, err := ParseTask([]byte(body)); err == nil {
			t.Errorf("%s was read as %+v", bad, task.Waiting)
		}
	}
}
