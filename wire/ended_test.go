package wire

import "testing"

func TestEndedRequestsAreRead(t *testing.T) {
	for body, want := range map[string]EndedRequest{
		"":                                  {Limit: MaxEndedTasks},
		`{"limit":7}`:                       {Limit: 7},
		`{"before":null}`:                   {Limit: MaxEndedTasks},
		`{"before":"1960-01-01T00:00:00Z"}`: {BeforeMs: 1, Limit: MaxEndedTasks},
		`{"before":"2026-01-01T00:00:00Z","limit":10000}`: {BeforeMs: 1_767_225_600_000, Limit: 10_000},
	} {
		got, refusal := ParseEndedRequest([]byte(body))
		if refusal != nil || *got != want {
			t.Errorf("%s: %+v, %v", body, got, refusal)
		}
	}
	for body, want := range map[string]Code{
		`[]`: CodeInvalidBody, `{"limit":0}`: CodeInvalidArgument, `{"limit":10001}`: CodeInvalidArgument,
		`{"before":"yesterday"}`: CodeInvalidTime, `{"before":1}`: CodeInvalidTime, `{"x":1}`: CodeUnknownMember,
	} {
		if _, refusal := ParseEndedRequest([]byte(body)); refusal == nil || refusal.Code != want {
			t.Errorf("%s: %v, want %s", body, refusal, want)
		}
	}
}
