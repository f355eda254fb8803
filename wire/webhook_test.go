package wire

import (
	"bytes"
	"reflect"
	"testing"
)

func TestACallbackComesBackAndItsBodyStaysAsItIs(t *testing.T) {
	o := &Outcome{Command: "a", ResultRecord: *sampleRecord(), ResultURL: "https://c/r"}
	k := &Callback{ID: sampleID(1).String() + ".7", URL: "https://x.org/" + awkward, Body: AppendOutcome(nil, o)}
	again, err := ParseCallback(AppendCallback(nil, k))
	if err != nil || !reflect.DeepEqual(again, k) {
		t.Fatalf("%+v came back as %+v, %v", k, again, err)
	}
	if err := CheckJSON(k.Body); err != nil || !bytes.Contains(k.Body, o.Result) {
		t.Errorf("the body is %s: %v", k.Body, err)
	}
	const least = `{"eventType":"a","taskId":"` + "00000000-0000-0000-0000-000000000000" + `","status":"CANCELLED"}`
	if got := AppendOutcome(nil, &Outcome{Command: "a", ResultRecord: ResultRecord{Status: StatusCancelled}}); string(got) != least {
		t.Errorf("the least body is %s", got)
	}
	for _, text := range []string{``, `{}`, `{"id":"1.1"}`, `{"url":"https://x"}`, `[]`, `{"id":1,"url":"https://x"}`} {
		if got, err := ParseCallback([]byte(text)); err == nil {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
}

func FuzzParseCallback(f *testing.F) {
	f.Add([]byte(`{"id":"x.1","url":"https://x.org","body":{"taskId":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := ParseCallback(data)
		if err != nil {
			return
		}
		first := AppendCallback(nil, k)
		again, err := ParseCallback(first)
		if err != nil {
			t.Fatal(err)
		}
		checkFixed(t, first, AppendCallback(nil, again), nil)
	})
}

func TestWrongWebhooksAreRefusedWithWhatIsRight(t *testing.T) {
	for webhook, want := range map[string]string{
		`7`:                           "must be a string, got 7",
		`"x"`:                         "must be an http or https URL with a host, such as https://example.com/done",
		`"/x"`:                        "must be an http or https URL with a host, such as https://example.com/done",
		`"ftp://x.org"`:               "must be an http or https URL with a host, such as https://example.com/done",
		`"https:///x"`:                "must be an http or https URL with a host, such as https://example.com/done",
		`"http:x.org"`:                "must be an http or https URL with a host, such as https://example.com/done",
		`"javascript:alert(1)"`:       "must be an http or https URL with a host, such as https://example.com/done",
		`"https://x.org:port/"`:       "must be an http or https URL with a host, such as https://example.com/done",
		`"https://ada:secret@x.org/"`: "must have no user name and no password: what is posted is signed instead",
		`"https://ada@x.org/"`:        "must have no user name and no password: what is posted is signed instead",
		`"https://x org/"`:            "must be an http or https URL with a host, such as https://example.com/done",
		`"https://x.org/\na"`:         "must have no control characters and no byte order mark, byte 14 is one",
		`"https://m\u00fcller.de/"`:   "must have a host name of letters, digits, hyphens and dots, or an IP address, and a port up to 65535 if any",
		`"https://x.org:65536/"`:      "must have a host name of letters, digits, hyphens and dots, or an IP address, and a port up to 65535 if any",
	} {
		_, refusal := ParseEnqueueRequest([]byte(`{"command":"a","payload":1,"webhook":` + webhook + `}`))
		if refusal == nil || refusal.Code != CodeInvalidWebhook || refusal.Sentence != "webhook "+want {
			t.Errorf("%s: %v, want %s", webhook, refusal, want)
		}
	}
}
