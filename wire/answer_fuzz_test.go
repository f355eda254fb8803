package wire

import (
	"reflect"
	"strconv"
	"testing"
)

// FuzzParseAnswers: whatever a server answers to a question for lists, it is
// either read as something that reads the same once it is written, or an error.
func FuzzParseAnswers(f *testing.F) {
	task := string(AppendTask(nil, sampleTask(), PayloadAsString))
	figures := string(AppendQueueFigures(nil, &sampleQueues()[0]))
	reason := string(AppendDeadReason(nil, &DeadReason{Error: "no", Count: 2, TaskID: sampleTask().ID, EndedAtMs: 1}))
	addAll(f, task, figures, `{"tasks":[`+task+`],"cursor":"c"}`, `{"tasks":[],"scanned":7}`, `{"tasks":[]}`, `{"tasks":[{}]}`, `{"reasons":[`+reason+`],"read":7,"cursor":"c"}`,
		`{"reasons":[{"count":1}],"read":-1}`, `{"leaseToken":""}`, `[]`, ``,
		string(AppendArtifacts(nil, sampleArtifacts)), string(AppendArtifact(nil, &sampleArtifacts[1])))
	f.Fuzz(func(t *testing.T, data []byte) {
		if task, _, err := ParseClaimed(data); err == nil {
			checkTask(t, task)
		}
		tasks, _, cursor, err := ParseFoundPage(data)
		if plain, next, bad := ParseTaskPage(data); len(plain) != len(tasks) || next != cursor || (bad == nil) != (err == nil) {
			t.Fatalf("as found %d tasks, %q (%v), as a list %d, %q (%v)", len(tasks), cursor, err, len(plain), next, bad)
		}
		for _, task := range tasks {
			if err != nil {
				t.Fatal("a fault and tasks")
			}
			checkTask(t, task)
		}
		if reasons, err := ParseDeadReasons(data); err == nil {
			again, err := ParseDeadReasons(appendDeadReasons(nil, reasons))
			if err != nil || !reflect.DeepEqual(again, reasons) {
				t.Fatalf("%+v came back as %+v (%v)", reasons, again, err)
			}
		}
		if list, err := ParseArtifacts(data); err == nil && len(list) > 0 {
			if again, err := ParseArtifacts(AppendArtifacts(nil, list)); err != nil || !reflect.DeepEqual(again, list) {
				t.Fatalf("%+v came back as %+v (%v)", list, again, err)
			}
		}
		if a, err := ParseArtifact(data); err == nil {
			if again, err := ParseArtifact(AppendArtifact(nil, a)); err != nil || !reflect.DeepEqual(again, a) {
				t.Fatalf("%+v came back as %+v (%v)", a, again, err)
			}
		}
		if figures, err := ParseQueueFigures(data); err == nil {
			again, err := ParseQueueFigures(AppendQueueFigures(nil, figures))
			if err != nil || !reflect.DeepEqual(again, figures) {
				t.Fatalf("%+v came back as %+v (%v)", figures, again, err)
			}
		}
	})
}

var sampleArtifacts = []Artifact{{Name: "log", URL: "https://x"}, {
	Name: "a/b", URL: ArtifactPath(TaskID{1}, "a/b"), ContentType: "text/html", SizeBytes: 7, SHA256: "ab", File: FileName(1, 2),
}}

// checkTask wants a task that was read to be the same when it is written.
func checkTask(t *testing.T, task *Task) {
	t.Helper()
	first := AppendTask(nil, task, PayloadAsString)
	again, err := ParseTask(first)
	if err != nil {
		t.Fatal(err)
	}
	checkFixed(t, first, AppendTask(nil, again, PayloadAsString), nil)
}

func appendDeadReasons(dst []byte, r *DeadReasons) []byte {
	dst = append(dst, `{"reasons":[`...)
	for i := range r.Reasons {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendDeadReason(dst, &r.Reasons[i])
	}
	dst = strconv.AppendInt(append(dst, `],"read":`...), r.Read, 10)
	return append(AppendQuoted(append(dst, `,"cursor":`...), r.Cursor), '}')
}

// causeWord is how a request says what causes it is about.
func causeWord(causes, absent DeadCauses) string {
	for c := DeadExhausted; c < DeadKinds; c++ {
		if causes == OnlyDead(c) {
			return c.String()
		}
	}
	if causes == absent {
		return ""
	}
	return allDeadCauses
}

// FuzzParseAdminRequests: the bodies of what operators ask for are taken whole,
// and mean the same once they are written, or are refused.
func FuzzParseAdminRequests(f *testing.F) {
	addBodyFaults(f)
	addAll(f, ``, ` `, `{"limit":1}`, `{"limit":0}`, `{"limit":10001}`, `{"before":"2026-01-02T03:04:05.678Z","worker":"w","error":"no","cursor":"c"}`,
		`{"cause":"failed"}`, `{"cause":"all"}`, `{`+sampleFilter+`,"dryRun":true}`, `{"state":"open","match":{"a":{}}}`, `{"toPriority":9,"match":{"\\u0061.b":null}}`, `{"cause":"bad luck"}`, `{"cause":1}`, `{"before":5}`, `{"spread":true,"maxAttempts":3,"leaseSeconds":30,"backoff":{"policy":"fixed","baseSeconds":1,"maxSeconds":2}}`,
		`{"retentionSeconds":60,"dlqRetentionSeconds":0}`, `{"leaseToken":"x","workerId":"w"}`, `{"extendSeconds":43201}`)
	absent := BulkRequest{EndedRequest: EndedRequest{Limit: 100}, Causes: OnlyDead(DeadExhausted, DeadReleased)}
	f.Fuzz(func(t *testing.T, body []byte) {
		for kind := BulkDead; kind <= BulkMove; kind++ {
			bulk, refusal := ParseBulkRequest(body, kind, absent)
			checkEither(t, bulk != nil, refusal)
			if refusal != nil {
				continue
			}
			again, refusal := ParseBulkRequest(AppendBulkRequest(nil, kind, bulk, causeWord(bulk.Causes, absent.Causes)), kind, absent)
			if refusal != nil || !reflect.DeepEqual(again, bulk) {
				t.Fatalf("%+v came back as %+v (%v)", bulk, again, refusal)
			}
			bulk.TakesPayload(body)
		}
		if to, refusal := ParseMoveRequest(body); refusal == nil && (to < 0 || to > MaxPriority) {
			t.Fatalf("priority %d", to)
		}
		ended, refusal := ParseEndedRequest(body)
		checkEither(t, ended != nil, refusal)
		if refusal == nil {
			again, refusal := ParseEndedRequest(AppendBulkRequest(nil, BulkDead, &BulkRequest{EndedRequest: *ended}, ""))
			if refusal != nil || !reflect.DeepEqual(again, ended) {
				t.Fatalf("%+v came back as %+v (%v)", ended, again, refusal)
			}
		}
		settings, refusal := ParseQueueSettings(body)
		checkEither(t, settings != nil, refusal)
		if refusal == nil {
			again, refusal := ParseQueueSettings(AppendQueueSettings(nil, settings))
			if refusal != nil || !reflect.DeepEqual(again, settings) {
				t.Fatalf("%+v came back as %+v (%v)", settings, again, refusal)
			}
		}
		held, heldRefusal := ParseHolder(body)
		release, releaser, refusal := ParseReleaseRequest(body)
		checkEither(t, release != nil, refusal)
		if refusal == nil {
			again, of, refusal := ParseReleaseRequest(AppendReleaseCall(nil, releaser, *release))
			if refusal != nil || *again != *release || of != releaser {
				t.Fatalf("%+v came back as %+v (%v)", release, again, refusal)
			}
		}
		progress, _, refusal := ParseProgressRequest(body)
		checkEither(t, progress != nil, refusal)
		if refusal == nil {
			said := &TaskProgress{ProgressRequest: *progress, AtMs: sampleTimeMs, Delivery: 1}
			if again := ReadProgress(string(AppendProgress(nil, said))); again == nil || !reflect.DeepEqual(again, said) {
				t.Fatalf("%+v came back as %+v", said, again)
			}
		}
		if output, _, refusal := ParseOutputRequest(body); refusal == nil && (output.Text == "" || len(output.Text) > MaxOutputBytes) {
			t.Fatalf("an output of %d bytes passed", len(output.Text))
		}
		extend, holder, extendRefusal := ParseExtendRequest(body)
		if heldRefusal == nil && extendRefusal == nil && held != holder {
			t.Fatalf("the same body names %+v and %+v", held, holder)
		}
		if extendRefusal == nil && (extend < 0 || extend > MaxLeaseSeconds) {
			t.Fatalf("a lease is extended by %d s", extend)
		}
		if claim, refusal := ParseClaimRequest(body); refusal == nil && claim.Count > 1 {
			t.Fatalf("one claim asks for %d tasks", claim.Count)
		}
	})
}
