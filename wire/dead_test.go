package wire

import "testing"

func TestRequestsForDeadLettersAreReadAsTheyWereWritten(t *testing.T) {
	absent := BulkRequest{EndedRequest: EndedRequest{Limit: 9}}
	for body, want := range map[string]BulkRequest{
		"":                   {EndedRequest: EndedRequest{Limit: 9}},
		`{"cause":"failed"}`: {EndedRequest: EndedRequest{Limit: 9}, Causes: OnlyDead(DeadFailed)},
		`{"cause":"all"}`:    {EndedRequest: EndedRequest{Limit: 9}},
		`{"limit":7}`:        {EndedRequest: EndedRequest{Limit: 7}},
		`{"cursor":""}`:      {EndedRequest: EndedRequest{Limit: 9}}, // the beginning
		`{"before":"1960-01-01T00:00:00Z","limit":null}`: {EndedRequest: EndedRequest{BeforeMs: 1, Limit: 9}},
		`{"error":"no \"luck\"","worker":"ada","cursor":"x","limit":10000}`: {
			EndedRequest: EndedRequest{Limit: 10_000}, TaskFilter: TaskFilter{Worker: "ada", ErrorPart: `no "luck"`}, Cursor: "x",
		},
	} {
		got, refusal := ParseBulkRequest([]byte(body), BulkDead, absent)
		if refusal != nil || *got != want {
			t.Errorf("%s: %+v, %v", body, got, refusal)
			continue
		}
		if again, refusal := ParseBulkRequest(AppendBulkRequest(nil, BulkDead, got, causeWord(got.Causes, 0)), BulkDead, absent); refusal != nil || *again != want {
			t.Errorf("%s: written as %s, read as %+v, %v", body, AppendBulkRequest(nil, BulkDead, got, ""), again, refusal)
		}
	}
	for body, want := range map[string]Code{
		`[]`: CodeInvalidBody, `{"limit":0}`: CodeInvalidArgument, `{"limit":10001}`: CodeInvalidArgument,
		`{"limit":"7"}`: CodeInvalidArgument, `{"before":"yesterday"}`: CodeInvalidTime,
		`{"error":""}`: CodeInvalidArgument, `{"worker":""}`: CodeInvalidArgument, `{"other":1}`: CodeUnknownMember,
		`{"error":1}`: CodeInvalidArgument, `{"cause":"luck"}`: CodeInvalidArgument, `{"cause":1}`: CodeInvalidArgument,
	} {
		if _, refusal := ParseBulkRequest([]byte(body), BulkDead, absent); refusal == nil || refusal.Code != want {
			t.Errorf("%s: %v, want %s", body, refusal, want)
		}
	}
}
