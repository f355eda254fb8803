package wire

import (
	"strings"
	"testing"
)

func TestU05FiltersOfTasksAreReadAsTheyWereWritten(t *testing.T) {
	body := `{"state":"open","priority":0,"createdAfter":"2026-01-01T00:00:00Z","createdBefore":"2026-01-02T00:00:00Z",` +
		`"keyPrefix":"im\u0070ort/","minAttempts":2,"match":{"customer":42,"a.b":"x\"y","c":null},"dryRun":true,"limit":5}`
	want := BulkRequest{
		EndedRequest: EndedRequest{Limit: 5}, State: StateOpen, DryRun: true,
		TaskFilter: TaskFilter{
			OnlyPriority: true, CreatedFromMs: 1_767_225_600_000, CreatedBeforeMs: 1_767_312_000_000, KeyPrefix: "import/", MinAttempts: 2,
			Members: [MaxFilterMembers]MemberIs{{"customer", "42"}, {"a.b", `x"y`}, {"c", "null"}},
		},
	}
	got, refusal := ParseBulkRequest([]byte(body), BulkCancel, BulkRequest{})
	if refusal != nil || *got != want {
		t.Fatalf("read %+v, %v, want %+v", got, refusal, want)
	}
	text := AppendBulkRequest(nil, BulkCancel, got, "")
	if again, refusal := ParseBulkRequest(text, BulkCancel, BulkRequest{}); refusal != nil || *again != want {
		t.Errorf("written as %s, read as %+v, %v", text, again, refusal)
	}
	if move, refusal := ParseBulkRequest([]byte(`{"toPriority":0}`), BulkMove, BulkRequest{}); refusal != nil || move.State != StateWaiting {
		t.Errorf("a move without a state: %+v, %v", move, refusal)
	}
}

func TestU05WrongFiltersAreRefusedWithWhatIsRight(t *testing.T) {
	for body, want := range map[string]string{
		`{"state":"dead"}`:                          "state must be one of waiting, ready, delayed, inProgress, open",
		`{"priority":10}`:                           "priority must be an integer from 0 to 9",
		`{"match":{}}`:                              "match must be an object of 1 to 4 names",
		`{"match":[1]}`:                             "match must be an object of 1 to 4 names",
		`{"match":{"a":[1]}}`:                       "match must be an object of 1 to 4 names",
		`{"match":{"":1}}`:                          "match must be an object of 1 to 4 names",
		`{"keyPrefix":""}`:                          "keyPrefix ",
		`{"minAttempts":-1}`:                        "minAttempts must be an integer from 0",
		`{"dryRun":1}`:                              "dryRun must be true or false",
		`{"createdAfter":"x"}`:                      "createdAfter ",
		`{"toPriority":1}`:                          "toPriority is not known",
		`{"cause":"all"}`:                           "cause is not known",
		`{"match":{"a":1,"b":1,"c":1,"d":1,"e":1}}`: "match must be an object of 1 to 4 names",
	} {
		if _, refusal := ParseBulkRequest([]byte(body), BulkCancel, BulkRequest{}); refusal == nil || !strings.Contains(refusal.Sentence, want) {
			t.Errorf("%s: %v, want %q", body, refusal, want)
		}
	}
	if _, refusal := ParseBulkRequest([]byte(`{"state":"open","toPriority":1}`), BulkMove, BulkRequest{}); refusal == nil {
		t.Error("tasks in progress are moved")
	}
	if _, refusal := ParseBulkRequest(nil, BulkMove, BulkRequest{}); refusal == nil || refusal.Code != CodeInvalidPriority {
		t.Errorf("a move to no priority: %v", refusal)
	}
}

func TestU05MembersOfPayloadsAreCompared(t *testing.T) {
	const payload = `{ "a" : 1, "b":{"c":"x","d":{"e":true}}, "\u0066":"\u0041b", "g.h":null, "n":1.50, "b.c":2 }`
	for name, value := range map[string]string{
		"a": "1", "b.d.e": "true", "f": "Ab", "g.h": "null", "n": "1.50", "b.c": "x",
	} {
		f := TaskFilter{Members: [MaxFilterMembers]MemberIs{{name, value}}}
		if !f.TakesPayload([]byte(payload)) {
			t.Errorf("%s is not %s", name, value)
		}
		if f.Members[0].Value += "0"; f.TakesPayload([]byte(payload)) {
			t.Errorf("%s is %s0", name, value)
		}
	}
	both := TaskFilter{Members: [MaxFilterMembers]MemberIs{{"a", "1"}, {"n", "2"}}}
	if both.TakesPayload([]byte(payload)) {
		t.Error("one of two members is enough")
	}
	for _, other := range []string{`1`, `"a"`, `[{"a":1}]`, `{}`, `null`} {
		if f := (TaskFilter{Members: [MaxFilterMembers]MemberIs{{"a", "1"}}}); f.TakesPayload([]byte(other)) {
			t.Errorf("%s has a member", other)
		}
	}
}
