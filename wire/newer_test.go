package wire

import (
	"reflect"
	"testing"
)

// answerTexts has each kind of text that a client reads, and how.
func answerTexts() map[string]struct {
	text  string
	parse func(text []byte) (any, error)
} {
	type reading = struct {
		text  string
		parse func(text []byte) (any, error)
	}
	type pair struct{ one, two any }
	figures := AppendQueueFigures(nil, &sampleQueues()[0])
	task := string(AppendTask(nil, sampleTask(), PayloadAsString))
	session := AppendSessionFigures(nil, &SessionFigures{ID: SessionID(sampleID(7)), WorkerID: "w", Subject: "bob", Commands: []string{"a"}, State: SessionLive, ConnectedAtMs: 1, LastSeenAtMs: 1})
	reason := AppendDeadReason(nil, &DeadReason{Error: "e", Count: 1, TaskID: sampleID(1), EndedAtMs: 1})
	all := map[string]reading{
		"task":    {task, func(b []byte) (any, error) { return ParseTask(b) }},
		"record":  {string(AppendResultRecord(nil, sampleRecord())), func(b []byte) (any, error) { return ParseResultRecord(b) }},
		"refusal": {string(AppendError(nil, sampleError())), func(b []byte) (any, error) { return ParseError(b) }},
		"queue":   {string(figures), func(b []byte) (any, error) { return ParseQueueFigures(b) }},
		"queues":  {`{"queues":[` + string(figures) + `]}`, func(b []byte) (any, error) { return ParseQueueList(b) }},
		"reasons": {`{"reasons":[` + string(reason) + `],"read":1,"cursor":"c"}`, func(b []byte) (any, error) { return ParseDeadReasons(b) }},
		"claimed": {string(AppendClaimed(nil, sampleTask(), sampleToken(1))), func(b []byte) (any, error) {
			task, token, err := ParseClaimed(b)
			return pair{task, token}, err
		}},
		"tasks": {`{"tasks":[` + task + `],"cursor":"c"}`, func(b []byte) (any, error) {
			tasks, cursor, err := ParseTaskPage(b)
			return pair{tasks, cursor}, err
		}},
		"sessions": {`{"sessions":[` + string(session) + `],"cursor":"c"}`, func(b []byte) (any, error) {
			list, cursor, err := ParseSessionList(b)
			return pair{list, cursor}, err
		}},
	}
	for name, frame := range sampleServerFrames() {
		all["frame "+name] = reading{string(AppendServerFrame(nil, frame)), func(b []byte) (any, error) { return ParseServerMessage(b) }}
	}
	return all
}

// A client passes over each member that a newer server may send, wherever it stands
// and however often it comes.
func TestU03ClientPassesOverMembersOfANewerServer(t *testing.T) {
	for name, a := range answerTexts() {
		want, err := a.parse([]byte(a.text))
		if err != nil {
			t.Errorf("%s: %s: %v", name, a.text, err)
			continue
		}
		for _, m := range membersOf(t, a.text) {
			if m.free {
				continue
			}
			text := a.text[:m.start-1] + `"zzzzzzzz":{"type":1},"zzzzzzzz":[],` + a.text[m.start-1:]
			if got, err := a.parse([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s: %+v, %v", name, text, got, err)
			}
		}
	}
}

// Nor does a word that an older client does not know keep it from the rest.
func TestU03ClientReadsAPolicyOfANewerServer(t *testing.T) {
	f, err := ParseQueueFigures([]byte(`{"command":"c","backoff":{"policy":"fibonacci","baseSeconds":2}}`))
	if err != nil || f.Settings.Backoff != (Backoff{Policy: "fibonacci", BaseSeconds: 2}) {
		t.Errorf("%+v, %v", f, err)
	}
}

// What nobody asked for is not said, so that an older server knows all of it.
func TestU03ClientSaysOnlyWhatItsUserSet(t *testing.T) {
	for got, want := range map[string]string{
		string(AppendEnqueueRequest(nil, &EnqueueRequest{Command: "a", Payload: []byte("1")})): `{"command":"a","payload":1}`,
		string(AppendClaimRequest(nil, &ClaimRequest{Count: 1})):                               `{}`,
		string(AppendResultCall(nil, Holder{}, &ResultRequest{Result: []byte("{}")})):          `{"result":{}}`,
		string(AppendNackCall(nil, Holder{}, &NackRequest{DelaySeconds: -1})):                  `{}`,
		string(AppendExtendCall(nil, Holder{}, 0)):                                             `{}`,
		string(AppendReleaseCall(nil, Holder{}, ReleaseRequest{})):                             `{}`,
		string(AppendHolderCall(nil, Holder{})):                                                `{}`,
		string(AppendQueueSettings(nil, &QueueSettings{})):                                     `{}`,
		string(AppendBulkRequest(nil, BulkCancel, &BulkRequest{}, "")):                         `{}`,
		string(AppendClientFrame(nil, &Hello{})):                                               `{"type":"hello"}`,
		string(AppendClientFrame(nil, &Heartbeat{})):                                           `{"type":"heartbeat"}`,
		string(AppendClientFrame(nil, &Drain{})):                                               `{"type":"drain"}`,
		string(AppendClientFrame(nil, &Subscribe{Commands: []string{"a"}, Window: 1})):         `{"type":"subscribe","commands":["a"],"window":1}`,
	} {
		if got != want {
			t.Errorf("says %s, want %s", got, want)
		}
	}
}
