package wire

import (
	"strings"
	"testing"
)

func TestLabelsAreReadInOneOrderAndWrittenAsAnObject(t *testing.T) {
	for object, want := range map[string]Labels{
		`null`: "", `{}`: "",
		`{"run":"2026-11","customer":"acme"}`:     "customer=acme\nrun=2026-11",
		`{"a-b":"1","a":"x=y"}`:                   "a-b=1\na=x=y",
		`{"customer":"M\u00fcller & Co"}`:         "customer=Müller & Co",
		`{"k":"` + strings.Repeat("v", 63) + `"}`: Labels("k=" + strings.Repeat("v", 63)),
	} {
		r, refusal := ParseEnqueueRequest([]byte(`{"command":"a","payload":1,"labels":` + object + `}`))
		if refusal != nil || r.Labels != want {
			t.Errorf("%s is %+v, %v", object, r, refusal)
			continue
		}
		again, refusal := ParseEnqueueRequest(AppendEnqueueRequest(nil, r))
		if refusal != nil || again.Labels != want || r.Check() != nil {
			t.Errorf("%s came back as %+v, %v", object, again, refusal)
		}
	}
}

func TestWrongLabelsAreRefusedWithWhatIsRight(t *testing.T) {
	long := strings.Repeat("v", 64)
	for object, want := range map[string]string{
		`[]`:                     "labels must be an object with a string for each label, got a list",
		`{"a":1}`:                "labels must have a string for a, got 1",
		`{"":"b"}`:               "labels has a name that must have 1 to 200 bytes, got 0",
		`{"a b":"c"}`:            "labels has a name that may hold only letters, digits, dots, underscores, colons and hyphens, byte 1 is none",
		`{"a":""}`:               "labels.a must not be empty",
		`{"a":" b"}`:             "labels.a must not begin or end with white space",
		`{"a":"b\nc"}`:           "labels.a must have no control characters",
		`{"a":"b\ud800"}`:        "labels.a must be Unicode text",
		`{"a":"` + long + `"}`:   "labels.a and its value must be at most 64 bytes together, got 65",
		`{"a":"1","a":"2"}`:      "labels.a must not be given twice",
		`{"a":"1","\u0061":"1"}`: "labels.a must not be given twice",
		`{"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1","g":"1","h":"1","i":"1"}`: "labels must be at most 8, got 9",
	} {
		_, refusal := ParseEnqueueRequest([]byte(`{"command":"a","payload":1,"labels":` + object + `}`))
		if refusal == nil || !strings.HasPrefix(refusal.Sentence, want) {
			t.Errorf("%s: %v, want %q", object, refusal, want)
		}
	}
	for _, labels := range []Labels{"a", "b=1\na=1", "a=1\n", "a=1\na=2", "=1", "a="} {
		if refusal := (&EnqueueRequest{Command: "a", Payload: []byte("1"), Labels: labels}).Check(); refusal == nil {
			t.Errorf("%q passes", labels)
		}
	}
	if _, refusal := MakeLabels([]string{"customer"}); refusal == nil || refusal.Sentence != "label must be a name and a value like customer=acme, got customer" {
		t.Error(refusal)
	}
	if _, refusal := MakeLabels([]string{"a=1", "a=2"}); refusal == nil || refusal.Sentence != "label.a must not be given twice" {
		t.Error(refusal)
	}
}

// FuzzLabels makes labels of any texts: what passes comes back from JSON, and has each of them.
func FuzzLabels(f *testing.F) {
	f.Add("customer=acme", "run=2026-11")
	f.Add("a=1", "a=1")
	f.Add("a=b=c", "a-b=\"\\")
	f.Add("a=\n", "=")
	f.Fuzz(func(t *testing.T, first, second string) {
		labels, refusal := MakeLabels([]string{first, second})
		if refusal != nil {
			return
		}
		r := &EnqueueRequest{Command: "a", Payload: []byte("1"), Labels: labels}
		if refusal := r.Check(); refusal != nil {
			t.Fatal(refusal)
		}
		again, refusal := ParseEnqueueRequest(AppendEnqueueRequest(nil, r))
		if refusal != nil || again.Labels != labels {
			t.Fatalf("%q came back as %+v, %v", labels, again, refusal)
		}
		if !labels.Have(Labels(first)) || !labels.Have(Labels(second)) || labels.Have(Labels(first+"x")) && first+"x" != second {
			t.Errorf("%q have not %q and %q", labels, first, second)
		}
		if task, err := ParseTask(AppendTask(nil, &Task{ID: sampleID(1), Command: "a", Payload: []byte("1"), Labels: labels}, PayloadAsString)); err != nil || task.Labels != labels {
			t.Errorf("a task has %+v, %v", task, err)
		}
	})
}
