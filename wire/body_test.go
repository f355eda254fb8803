package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestClaimRefusals(t *testing.T) {
	cases := map[string]string{
		`{"commands":"a"}`:       "invalid_argument: commands must be a list, got a string",
		`{"commands":["a",1]}`:   "invalid_command: commands[1] must be a string, got 1",
		`{"commands":["a/b"]}`:   "invalid_command: commands[0] may hold only letters, digits, dots, underscores, colons and hyphens, byte 1 is none",
		`{"leaseSeconds":0}`:     "invalid_argument: leaseSeconds must be an integer from 1 to 43200, got 0",
		`{"leaseSeconds":43201}`: "invalid_argument: leaseSeconds must be an integer from 1 to 43200, got 43201",
		`{"waitSeconds":31}`:     "invalid_argument: waitSeconds must be an integer from 0 to 30, got 31",
		`{"waitSeconds":-1}`:     "invalid_argument: waitSeconds must be an integer from 0 to 30, got -1",
		`{"waitSeconds":1.5}`:    "invalid_argument: waitSeconds must be an integer from 0 to 30, got 1.5",
		`{"workerId":1}`:         "invalid_argument: workerId must be a string, got 1",
		`{"commands":[` + strings.Repeat(`"a",`, MaxSubscribeCommands) + `"a"]}`: "invalid_argument: commands must have at most 1000 elements, got 1001",
		`{"workerId":` + jsonText(MaxWorkerIDBytes+1) + `}`:                      "invalid_argument: workerId must be at most 200 bytes, got 201",
		`{"waitSeconds":1,"waitSeconds":2}`:                                      "invalid_body: waitSeconds must not appear twice",
	}
	for body, want := range cases {
		_, err := ParseClaimRequest([]byte(body))
		checkRefusal(t, body, err, want)
		_, err = ParseClaimBatchRequest([]byte(body))
		checkRefusal(t, body, err, want)
	}
	for body, want := range map[string]string{
		`{"count":0}`:   "invalid_argument: count must be an integer from 1 to 100, got 0",
		`{"count":101}`: "invalid_argument: count must be an integer from 1 to 100, got 101",
		`{"count":"2"}`: "invalid_argument: count must be an integer from 1 to 100, got a string",
	} {
		_, err := ParseClaimBatchRequest([]byte(body))
		checkRefusal(t, body, err, want)
		_, err = ParseClaimRequest([]byte(body))
		checkRefusal(t, body, err, "unknown_member: count is not known; known here: commands, leaseSeconds, waitSeconds, workerId")
	}
}

func TestClaimAccepts(t *testing.T) {
	least := ClaimRequest{Count: 1}
	full := ClaimRequest{
		Commands: []string{"a", AllCommands}, LeaseSeconds: MaxLeaseSeconds, WaitSeconds: MaxClaimWaitSeconds, WorkerID: "ada", Count: MaxClaimTasks,
	}
	cases := map[string]ClaimRequest{
		``: least, " ": least, `{}`: least, `{"commands":[],"waitSeconds":null}`: least,
		string(AppendClaimRequest(nil, &full)):              full,
		string(AppendClaimRequest(nil, &ClaimRequest{})):    least,
		`{"count":1,"workerId":"","commands":["CaSe","a"]}`: {Commands: []string{"CaSe", "a"}, Count: 1},
	}
	for body, want := range cases {
		got, err := ParseClaimBatchRequest([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		checkSame(t, body, *got, want)
	}
}

func TestCallsOfAWorkerComeBack(t *testing.T) {
	for _, holder := range []Holder{{}, {Token: sampleToken(3)}, {WorkerID: awkwardName}, {Token: sampleToken(4), WorkerID: "w"}} {
		result := ResultRequest{Status: StatusCompleted, Result: []byte(`{"a":1.0}`), Artifacts: []Artifact{{Name: "n", URL: "u"}}}
		gotResult, of, err := ParseResultRequest(AppendResultCall(nil, holder, &result))
		if err != nil || of != holder || !reflect.DeepEqual(*gotResult, result) {
			t.Errorf("result of %+v came back as %+v of %+v (%v)", holder, gotResult, of, err)
		}
		for _, nack := range []NackRequest{{DelaySeconds: -1}, {DelaySeconds: 0}, {DelaySeconds: 9, Reason: "no"}} {
			got, of, err := ParseNackRequest(AppendNackCall(nil, holder, &nack))
			if err != nil || of != holder || *got != nack {
				t.Errorf("nack of %+v came back as %+v of %+v (%v)", holder, got, of, err)
			}
		}
		for _, seconds := range []int{0, 7} {
			got, of, err := ParseExtendRequest(AppendExtendCall(nil, holder, seconds))
			if err != nil || of != holder || got != seconds {
				t.Errorf("heartbeat of %+v came back as %d of %+v (%v)", holder, got, of, err)
			}
		}
		for _, release := range []ReleaseRequest{{}, {NotStarted: true}, {Stopping: true}, {NotStarted: true, Stopping: true}} {
			got, of, err := ParseReleaseRequest(AppendReleaseCall(nil, holder, release))
			if err != nil || of != holder || *got != release || got.Counts() != (release == ReleaseRequest{}) {
				t.Errorf("release of %+v came back as %+v of %+v (%v)", holder, got, of, err)
			}
		}
		if of, err := ParseHolder(AppendHolderCall(nil, holder)); err != nil || of != holder {
			t.Errorf("%+v came back as %+v (%v)", holder, of, err)
		}
	}
	for body, want := range map[string]string{
		`{"started":0}`:           "invalid_argument: started must be true or false, got 0",
		`{"extendSeconds":0}`:     "invalid_argument: extendSeconds must be an integer from 1 to 43200, got 0",
		`{"extendSeconds":43201}`: "invalid_argument: extendSeconds must be an integer from 1 to 43200, got 43201",
	} {
		_, _, err := ParseExtendRequest([]byte(body))
		if strings.Contains(body, "started") {
			_, _, err = ParseReleaseRequest([]byte(body))
		}
		checkRefusal(t, body, err, want)
	}
}

// resultsOf is the body of a batch of results around the texts of its elements.
func resultsOf(elements ...string) string {
	return `{"results":[` + strings.Join(elements, ",") + `]}`
}

func TestEachResultOfABatchStandsAlone(t *testing.T) {
	id := `"taskId":"` + sampleID(1).String() + `"`
	cases := []struct{ element, want string }{
		{`{` + id + `,"result":{}}`, ""},
		{`7`, "invalid_body: results[1] must be an object, got 7"},
		{`{"result":{}}`, "invalid_argument: results[2].taskId is required: a string"},
		{`{"taskId":"x","result":{}}`, "task_not_found: results[3].taskId names no task"},
		{`{` + id + `}`, "invalid_result: results[4].result or error is required when status is left out"},
		{`{` + id + `,"result":[]}`, "invalid_result: results[5].result must be a JSON object, got a list"},
		{`{` + id + `,"result":{},"leaseToken":"x"}`, "invalid_argument: results[6].leaseToken must be the 32 lower-case hexadecimal digits that came with the task"},
		{`{` + id + `,` + id + `,"result":{}}`, "invalid_body: results[7].taskId must not appear twice"},
		{`{` + id + `,"error":` + jsonText(MaxErrorBytes+1) + `}`, "too_large: results[8].error must be at most 8192 bytes, got 8193"},
		{`{` + id + `,"error":"e","workerId":"w"}`, ""},
	}
	var elements []string
	for _, c := range cases {
		elements = append(elements, c.element)
	}
	items, err := ParseResultBatch([]byte(resultsOf(elements...)))
	if err != nil || len(items) != len(cases) {
		t.Fatalf("%d items, %v", len(items), err)
	}
	for i, c := range cases {
		item := &items[i]
		named := item.TaskID == sampleID(1)
		if named != (strings.Contains(c.element, id) && i != 7) || item.Bytes != len(c.element) {
			t.Errorf("element %d is about %v, %d bytes", i, item.TaskID, item.Bytes)
		}
		if c.want != "" {
			checkRefusal(t, c.element, item.Err, c.want)
		} else if item.Err != nil {
			t.Errorf("element %d: %v", i, item.Err)
		}
	}
	if items[9].WorkerID != "w" || items[9].Request.Status != StatusFailed {
		t.Errorf("the last element is %+v", items[9])
	}
}

func TestResultBatchRefusals(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:             "invalid_argument: results is required: a list of 1 to 1000 results",
		`{"results":{}}`: "invalid_argument: results must be a list, got an object",
		`{"results":[]}`: "invalid_argument: results must have 1 to 1000 elements, got 0",
		resultsOf(strings.Split(strings.Repeat(" {}", MaxBatchTasks+1)[1:], " ")...): "invalid_argument: results must have 1 to 1000 elements, got 1001",
		`{"results":[1],"results":[1]}`:                                              "invalid_body: results must not appear twice",
	} {
		items, err := ParseResultBatch([]byte(body))
		checkRefusal(t, body, err, want)
		if items != nil {
			t.Errorf("%s: refused, with %d items", brief(body), len(items))
		}
	}
}

// FuzzParseResultBatch compares each element with what it gives alone.
func FuzzParseResultBatch(f *testing.F) {
	addBodyFaults(f)
	f.Add(AppendResultBatch(nil, []ResultItem{
		{TaskID: sampleID(1), Holder: Holder{Token: sampleToken(1)}, Request: ResultRequest{Status: StatusCompleted, Result: []byte(`{}`)}},
		{TaskID: sampleID(2), Holder: Holder{WorkerID: "w"}, Request: ResultRequest{Status: StatusFailed, Error: "e"}},
	}))
	addAll(f, resultsOf(`1`, `{}`, `{"taskId":7,"error":"x"}`), `{"results":null}`, `{"r\u0065sults":[[]]}`)
	f.Fuzz(func(t *testing.T, body []byte) {
		items, refusal := ParseResultBatch(body)
		checkEither(t, items != nil, refusal)
		if refusal != nil {
			return
		}
		var standard struct{ Results []json.RawMessage }
		if err := json.Unmarshal(body, &standard); err != nil {
			t.Fatalf("read what is not JSON: %v", err)
		}
		for i := range items {
			item := &items[i]
			if item.Err != nil || i >= len(standard.Results) {
				continue
			}
			alone, holder, refusal := ParseResultRequest(bytes.Clone(standard.Results[i]))
			if refusal == nil && (holder != item.Holder || !reflect.DeepEqual(*alone, item.Request)) {
				t.Fatalf("%s: %+v in a batch, %+v alone", standard.Results[i], item, alone)
			}
		}
	})
}

func FuzzParseClaimRequest(f *testing.F) {
	addBodyFaults(f)
	addAll(f, ``, `{"commands":["a","*"],"leaseSeconds":1,"waitSeconds":30,"workerId":"w","count":100}`, `{"count":0}`, `{"c\u006funt":2}`)
	f.Fuzz(func(t *testing.T, body []byte) {
		r, refusal := ParseClaimBatchRequest(body)
		checkEither(t, r != nil, refusal)
		if refusal != nil {
			return
		}
		again, refusal := ParseClaimBatchRequest(AppendClaimRequest(nil, r))
		if refusal != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v came back as %+v (%v)", r, again, refusal)
		}
	})
}
