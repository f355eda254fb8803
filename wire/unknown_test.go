package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/bits"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reading is one kind of text that a client sends, with all of its members, and
// how it is read.
type reading struct {
	name  string
	text  string
	known []string // the members that mean something at its top
	parse func(text []byte) *Error
}

const (
	sampleTask1   = `{"command":"a","payload":{"maxAtempts":1,"deep":[{"comand":2}]},"priority":1,"webhook":"","maxAttempts":2,"idempotencyKey":"k","runAt":null,"delaySeconds":3,"timeoutSeconds":5,"expiresAt":null,"ttlSeconds":9,"traceParent":"` + goodTrace + `","traceState":"s=1","labels":null,"concurrencyKey":"c"}`
	sampleHolder  = `"leaseToken":"ab00000000000000000000000000000f","workerId":"w"`
	sampleOutcome = `"status":"COMPLETED","result":{"eror":{"reslt":1}},"error":"e","artifacts":[{"name":"n","url":"u","contentBase64":null,"contentType":"text/plain"}],"exitCode":1,"signal":null`
	sampleRef1    = `"taskId":"019b7700-8a4b-7000-8000-00000000000f","leaseToken":"ab00000000000000000000000000000f"`
)

// frameTexts are the frames of a client without their type and ref.
var frameTexts = map[string]string{
	"hello":     `"token":"t","workerId":"w","resume":"r","maxMessageBytes":2000000`,
	"subscribe": `"commands":["a"],"leaseSeconds":1,"window":1`,
	"window":    `"size":1`,
	"received":  `"through":1`,
	"result":    sampleRef1 + `,` + sampleOutcome,
	"nack":      sampleRef1 + `,"delaySeconds":1,"reason":"r","exitCode":1,"signal":null`,
	"abandon":   sampleRef1,
	"release":   sampleRef1 + `,"started":false,"stopping":true`,
	"heartbeat": `"tasks":[{` + sampleRef1 + `},{` + sampleRef1 + `}],"extendSeconds":1`,
	"enqueue":   sampleTask1[1 : len(sampleTask1)-1],
	"cancel":    `"taskId":"019b7700-8a4b-7000-8000-00000000000f"`,
	"drain":     "",
	"progress":  sampleRef1 + `,"percent":1,"note":"n","data":{"pecent":1}`,
	"output":    sampleRef1 + `,"stream":"stderr","text":"t"`,
}

// sampleFilter has every member of a filter.
const sampleFilter = `"worker":"w","error":"e","keyPrefix":"k","createdAfter":"2026-01-01T00:00:00Z","createdBefore":"2026-01-02T00:00:00Z",` +
	`"priority":1,"minAttempts":1,"match":{"a":1},"dryRun":false`

// allReadings has every text that a client sends: bodies, batches and frames.
func allReadings() []reading {
	body := func(parse func(text []byte) (any, *Error)) func([]byte) *Error {
		return func(text []byte) *Error { _, err := parse(text); return err }
	}
	all := []reading{
		{"enqueue", sampleTask1, namesOf(requestNames, enqueueShape.bits), body(func(b []byte) (any, *Error) { return ParseEnqueueRequest(b) })},
		{"batch", `{"tasks":[` + sampleTask1 + `,` + sampleTask1 + `]}`, []string{"tasks"}, parseItems},
		{"results", `{"results":[{"taskId":"019b7700-8a4b-7000-8000-00000000000f",` + sampleHolder + `,` + sampleOutcome + `}]}`, []string{"results"}, parseResults},
		{"result", `{` + sampleHolder + `,` + sampleOutcome + `}`, namesOf(requestNames, resultCall.bits),
			func(b []byte) *Error { _, _, err := ParseResultRequest(b); return err }},
		{"nack", `{` + sampleHolder + `,"delaySeconds":1,"reason":"r","exitCode":1,"signal":null}`, namesOf(requestNames, nackCall.bits),
			func(b []byte) *Error { _, _, err := ParseNackRequest(b); return err }},
		{"release", `{` + sampleHolder + `,"started":true,"stopping":true}`, namesOf(requestNames, releaseCall.bits),
			func(b []byte) *Error { _, _, err := ParseReleaseRequest(b); return err }},
		{"abandon", `{` + sampleHolder + `}`, namesOf(requestNames, abandonCall.bits), body(func(b []byte) (any, *Error) { return ParseHolder(b) })},
		{"heartbeat", `{` + sampleHolder + `,"extendSeconds":1}`, namesOf(requestNames, extensionCall.bits),
			func(b []byte) *Error { _, _, err := ParseExtendRequest(b); return err }},
		{"progress", `{` + sampleHolder + `,"percent":1,"note":"n","data":[]}`, namesOf(requestNames, progressCall.bits),
			func(b []byte) *Error { _, _, err := ParseProgressRequest(b); return err }},
		{"output", `{` + sampleHolder + `,"stream":"stdout","text":"t"}`, namesOf(requestNames, outputCall.bits),
			func(b []byte) *Error { _, _, err := ParseOutputRequest(b); return err }},
		{"claim", `{"commands":["a"],"leaseSeconds":1,"waitSeconds":1,"workerId":"w"}`, namesOf(*claimShape.names, claimShape.without("count")),
			body(func(b []byte) (any, *Error) { return ParseClaimRequest(b) })},
		{"claims", `{"commands":["a"],"leaseSeconds":1,"waitSeconds":1,"workerId":"w","count":1}`, *claimShape.names,
			body(func(b []byte) (any, *Error) { return ParseClaimBatchRequest(b) })},
		{"settings", `{"spread":true,"maxAttempts":1,"leaseSeconds":1,"timeoutSeconds":1,"ttlSeconds":1,"backoff":{"policy":"fixed","baseSeconds":1,"maxSeconds":1},"retentionSeconds":1,"dlqRetentionSeconds":1,"maxInProgress":1,"startsPerSecond":1,"perKey":{"inProgress":1,"startsPerSecond":1},"target":{"url":"https://x.org/","window":1}}`,
			*settingsShape.names, body(func(b []byte) (any, *Error) { return ParseQueueSettings(b) })},
		{"subscription", `{"callbackUrl":"https://x.org/","eventTypes":["a"],"deliveryMode":"group","groupId":"g","minIntervalSeconds":1,"ttlSeconds":10}`,
			namesOf(*subscriptionShape.names, subscriptionBits), body(func(b []byte) (any, *Error) { return ParseSubscribeRequest(b) })},
		{"dead", `{"before":"2026-01-01T00:00:00Z","limit":1,"cursor":"c","cause":"failed",` + sampleFilter + `}`, BulkParameters(BulkDead),
			body(func(b []byte) (any, *Error) { return ParseBulkRequest(b, BulkDead, BulkRequest{}) })},
		{"cancel", `{"limit":1,"cursor":"c","state":"open",` + sampleFilter + `}`, BulkParameters(BulkCancel),
			body(func(b []byte) (any, *Error) { return ParseBulkRequest(b, BulkCancel, BulkRequest{}) })},
		{"run", `{"limit":1,"cursor":"c",` + sampleFilter + `}`, BulkParameters(BulkRun),
			body(func(b []byte) (any, *Error) { return ParseBulkRequest(b, BulkRun, BulkRequest{}) })},
		{"move", `{"limit":1,"cursor":"c","state":"ready","toPriority":9,` + sampleFilter + `}`, BulkParameters(BulkMove),
			body(func(b []byte) (any, *Error) { return ParseBulkRequest(b, BulkMove, BulkRequest{}) })},
		{"ended", `{"before":"2026-01-01T00:00:00Z","limit":1}`, *endedShape.names, body(func(b []byte) (any, *Error) { return ParseEndedRequest(b) })},
	}
	for _, kind := range slices.Sorted(maps.Keys(clientKinds)) {
		text := strings.TrimSuffix(`{"type":"`+kind+`","ref":7,`+frameTexts[kind], ",") + "}"
		all = append(all, reading{"frame " + kind, text, namesOf(requestNames, envelopeBits|clientKinds[kind].shape.bits), parseFrame})
	}
	return all
}

func parseItems(text []byte) *Error {
	items, err := ParseBatchRequest(text)
	for _, item := range items {
		if item.Err != nil {
			return item.Err
		}
	}
	return err
}

func parseResults(text []byte) *Error {
	items, err := ParseResultBatch(text)
	for _, item := range items {
		if item.Err != nil {
			return item.Err
		}
	}
	return err
}

func parseFrame(text []byte) *Error {
	frames, err := ParseClientMessage(text)
	for _, f := range frames {
		if unknown, ok := f.(*Unknown); ok {
			return unknown.Err
		}
	}
	return err
}

// namesOf is the names of a table whose bits are set.
func namesOf(table []string, set uint64) []string {
	var names []string
	for ; set != 0; set &= set - 1 {
		names = append(names, table[bits.TrailingZeros64(set)])
	}
	return names
}

// member is where the name of a member stands in a text, between its quotes.
// free ones lie below a payload or a result, at which nobody looks. Those of a match
// are left out: whoever asks has chosen them.
type member struct {
	start, end int
	depth      int
	free       bool
}

// membersOf finds the names of a text, none of which has escapes.
func membersOf(t testing.TB, text string) (all []member) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var value func(depth int, free bool)
	token := func() json.Token {
		token, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return token
	}
	value = func(depth int, free bool) {
		open, _ := token().(json.Delim)
		for open != 0 && d.More() {
			if open == '[' {
				value(depth, free)
				continue
			}
			name := token().(string)
			end := int(d.InputOffset()) - 1
			all = append(all, member{end - len(name), end, depth, free})
			if name == "match" {
				var chosen any
				if err := d.Decode(&chosen); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				continue
			}
			value(depth+1, free || name == "payload" || name == "result" || name == "data")
		}
		if open != 0 {
			token()
		}
	}
	value(0, false)
	return all
}

// misspelt is a name with one letter changed, put in, left out or swapped with
// the next.
func misspelt(name string, how, at int, letter byte) string {
	at %= len(name)
	letter = 'a' + letter%26
	switch how % 4 {
	case 0:
		return name[:at] + string(letter) + name[at+1:]
	case 1:
		return name[:at] + string(letter) + name[at:]
	case 2:
		return name[:at] + name[at+1:]
	}
	if at+1 == len(name) {
		return name
	}
	return name[:at] + name[at+1:at+2] + name[at:at+1] + name[at+2:]
}

// checkMisspelt renames one member and expects a refusal that says what was meant,
// or none where nobody looks.
func (r *reading) checkMisspelt(t *testing.T, m member, wrong string) {
	t.Helper()
	name := r.text[m.start:m.end]
	if isName(wrong) {
		return // by chance, or the same
	}
	text := r.text[:m.start] + wrong + r.text[m.end:]
	err := r.parse([]byte(text))
	switch {
	case m.free && err != nil:
		t.Errorf("%s: %s: %v, where nobody looks", r.name, text, err)
	case m.free:
	case err == nil:
		t.Errorf("%s: %s passed with %s", r.name, text, wrong)
	case err.Code != CodeUnknownMember || !suggests(err.Sentence, wrong, name):
		t.Errorf("%s: %s for %s: %v", r.name, wrong, name, err)
	}
}

// suggests reports a sentence about a wrong name that suggests the one that was meant, or one
// that is as near: "opriority" is one letter from "priority" and from "toPriority".
func suggests(sentence, wrong, name string) bool {
	_, near, found := strings.Cut(strings.TrimSuffix(sentence, "?"), wrong+" is not known; did you mean ")
	far := func(from string) int { return distance(fold(nil, wrong), fold(nil, from)) }
	return found && (near == name || isName(near) && far(near) <= far(name))
}

// isName reports a text that is a name of a member somewhere, which a misspelt
// one may be by chance.
func isName(text string) bool {
	for _, table := range [][]string{requestNames, *claimShape.names, *settingsShape.names, *backoffShape.names, *perKeyShape.names, *targetShape.names, *subscriptionShape.names, *bulkShape.names, *endedShape.names, *artifactShape.names, {"tasks", "results"}} {
		if slices.Contains(table, text) {
			return true
		}
	}
	return false
}

// Each member of each text that a client sends, with each letter wrong in each
// way: refused, with the right name.
func TestU03MemberThatIsMisspeltIsRefusedWithTheNameThatWasMeant(t *testing.T) {
	for _, r := range allReadings() {
		if err := r.parse([]byte(r.text)); err != nil {
			t.Errorf("%s: %s: %v", r.name, r.text, err)
			continue
		}
		var top []string
		for _, m := range membersOf(t, r.text) {
			if m.depth == 0 {
				top = append(top, r.text[m.start:m.end])
			}
			for at := range 4 * (m.end - m.start) {
				r.checkMisspelt(t, m, misspelt(r.text[m.start:m.end], at%4, at/4, 'q'-'a'))
			}
		}
		slices.Sort(top)
		known := slices.DeleteFunc(slices.Clone(r.known), func(name string) bool { return name == "ordered" })
		if slices.Sort(known); !slices.Equal(top, known) {
			t.Errorf("%s has %v, and the sample %v", r.name, known, top)
		}
	}
}

// A member of another kind, and one of none, are refused wherever an object is
// looked at, also when they come twice or are null.
func TestU03MemberThatIsNotKnownIsRefusedEverywhere(t *testing.T) {
	for _, r := range allReadings() {
		for _, m := range membersOf(t, r.text) {
			for _, more := range []string{`"zzzzzzzz":1,`, `"zzzzzzzz":null,`, `"zzzzzzzz":1,"zzzzzzzz":{"command":1},`, `"\u007azzzzzzz":[],`} {
				text := r.text[:m.start-1] + more + r.text[m.start-1:]
				err := r.parse([]byte(text))
				if m.free != (err == nil) || err != nil && (err.Code != CodeUnknownMember || !strings.Contains(err.Sentence, "zzzzzzzz is not known")) {
					t.Errorf("%s: %s: %v", r.name, text, err)
				}
			}
		}
	}
	for body, want := range map[string]string{
		`{"command":"a","payload":1,"size":3}`:                            "unknown_member: size is not known; known here: ",
		`{"command":"a","payload":1,"delay":3}`:                           "unknown_member: delay is not known; did you mean delaySeconds?",
		`{"command":"a","payload":1,"maxAtempts":3}`:                      "unknown_member: maxAtempts is not known; did you mean maxAttempts?",
		`{"command":"a","payload":1,"trace":3}`:                           "unknown_member: trace is not known; known here: ",
		`{"command":"a","payload":1,"":3}`:                                `unknown_member: "" is not known; known here: `,
		`{"command":"a","payload":1,"größe":3}`:                           `unknown_member: "größe" is not known; known here: `,
		`{"command":"a","payload":1,"a\nb":3}`:                            `unknown_member: "a\nb" is not known; known here: `,
		`{"command":"a","payload":1,"` + strings.Repeat("n", 41) + `":3}`: "unknown_member: (a name of 41 bytes) is not known; known here: ",
		`{"command":"a","payload":1,"Payload":3}`:                         "unknown_member: Payload is not known; did you mean payload?",
		`{"command":"a","payload":1,"max_attempts":3}`:                    "unknown_member: max_attempts is not known; did you mean maxAttempts?",
		`{"command":"a","payload":1,"payload":2,"more":3}`:                "invalid_body: payload must not appear twice",
	} {
		if _, err := ParseEnqueueRequest([]byte(body)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	if err := CheckBareRequest([]byte(`{"reason":1}`)); err == nil || err.Error() != "unknown_member: reason is not known; nothing can be given here" {
		t.Errorf("a body that means nothing: %v", err)
	}
	_, err := ParseQueueSettings([]byte(`{"backoff":{"base":1}}`))
	checkRefusal(t, "backoff", err, "unknown_member: backoff.base is not known; did you mean baseSeconds?")
}

func TestU03NearestNameIsNear(t *testing.T) {
	known := []string{"type", "ref", "taskId", "leaseToken", "delaySeconds", "some-size"}
	for name, want := range map[string]string{
		"type": "type", "TYPE": "type", "tpye": "type", "tye": "type", "tipo": "", "rfe": "ref", "x": "", "": "", "taskid": "taskId", "task_id": "taskId",
		"task": "taskId", "id": "", "token": "leaseToken", "lease": "leaseToken", "delay": "delaySeconds", "delayInSeconds": "delaySeconds",
		"e": "", "se": "", "somesize": "some-size", strings.Repeat("leaseToken", 5): "", "typetaskid": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%q is near %q, want %q", name, got, want)
		}
	}
	long := strings.Repeat("k", 60)
	if got := NotKnown("a.", "x", []string{long, long, long}); got != "a.x is not known" {
		t.Errorf("a long list: %s", got)
	}
	if got := Nearest("kk", []string{long}); got != "" {
		t.Errorf("a long name is near: %s", got)
	}
}

// The document has the names that are taken from clients of the original API and
// mean nothing, and no others.
func TestU03ToleratedMembersAreThoseOfTheDocument(t *testing.T) {
	page, err := os.ReadFile("../docs/from-codeq-http.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := bytes.Cut(page, []byte("\n## Members that nobody reads\n"))
	if !found {
		t.Fatal("the page has no such section")
	}
	section, _, _ = bytes.Cut(section, []byte("\n## "))
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllSubmatch(section, -1) {
		listed = append(listed, string(row[1]))
	}
	var tolerated []string
	for _, name := range namesOf(*artifactShape.names, artifactShape.without("name", "url", "contentBase64")) {
		tolerated = append(tolerated, "artifacts[]."+name)
	}
	if !slices.Equal(listed, tolerated) {
		t.Errorf("the document lists %v, the code takes %v", listed, tolerated)
	}
}

// FuzzMisspeltMember renames one member of one text by one letter.
func FuzzMisspeltMember(f *testing.F) {
	all := allReadings()
	for i := range all {
		f.Add(uint(i), uint(i), uint(i), byte(i))
	}
	f.Fuzz(func(t *testing.T, which, place, at uint, how byte) {
		r := all[which%uint(len(all))]
		members := membersOf(t, r.text)
		m := members[place%uint(len(members))]
		name := r.text[m.start:m.end]
		r.checkMisspelt(t, m, misspelt(name, int(how), int(at%uint(len(name))), how/4))
	})
}

// FuzzNearest: a name is nearest to itself, whatever is in it, and what is nearest
// is one of the names.
func FuzzNearest(f *testing.F) {
	f.Add("maxAtempts", "maxAttempts", "payload")
	f.Add("", "a", "é\xff")
	f.Fuzz(func(t *testing.T, name, one, two string) {
		near := Nearest(name, []string{one, two})
		if near != "" && near != one && near != two {
			t.Fatalf("%q is near %q", name, near)
		}
		if sentence := NotKnown("", name, []string{one, two}); near != "" && !strings.HasSuffix(sentence, " is not known; did you mean "+near+"?") {
			t.Fatalf("%q: %s", name, sentence)
		}
		if len(one) >= 2 && len(one) <= mostNearBytes && Nearest(one, []string{one}) != one {
			t.Fatalf("%q is not near itself", one)
		}
	})
}
