package wire

import (
	"reflect"
	"strings"
	"testing"
)

// FuzzParseEndpoint reads endpoints whatever they are, and wants what was read to be the same
// when it is written.
func FuzzParseEndpoint(f *testing.F) {
	secret := SecretPrefix + strings.Repeat("A", 32)
	f.Add([]byte(`{"name":"n","url":"https://x.org/","commands":["a","b.*"],"statuses":["FAILED"],"state":"disabled","reason":"gone","secret":"` +
		secret + `","oldSecret":"` + secret + `","oldSecretUntil":"2026-01-01T00:00:00Z","version":3,"failures":4,"failingSince":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"url":"https://x.org/","statuses":["COMPLETED"],"secret":"` + secret + `","version":7}`))
	f.Add([]byte(`{"webhooks":[{"name":"n","url":"https://x.org/"}]}`))
	f.Add([]byte(`{"status":204,"ms":3,"problem":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		same := func(was, again any, err error) {
			if err != nil || !reflect.DeepEqual(was, again) {
				t.Fatalf("%+v came back as %+v (%v)", was, again, err)
			}
		}
		if c, refusal := ParseEndpointChange(data); refusal == nil {
			again, err := ParseEndpoint(AppendEndpoint(nil, &c.Endpoint))
			same(&c.Endpoint, again, err)
			if again, refusal := ParseEndpointChange(AppendEndpointChange(nil, c)); refusal != nil || !reflect.DeepEqual(c, again) {
				t.Fatalf("%+v came back as %+v (%v)", c, again, refusal)
			}
		}
		if e, err := ParseEndpointFigures(data); err == nil {
			again, err := ParseEndpointFigures(AppendEndpointFigures(nil, e))
			same(e, again, err)
		}
		if e, err := ParseEndpointTest(data); err == nil {
			again, err := ParseEndpointTest(AppendEndpointTest(nil, e))
			same(e, again, err)
		}
		if list, err := ParseEndpointList(data); err == nil && list == nil {
			t.Fatal("no list and no error")
		}
		if secret, refusal := ParseRotation(data); refusal == nil {
			if again, refusal := ParseRotation(AppendRotation(nil, secret)); refusal != nil || again != secret {
				t.Fatalf("%q came back as %q (%v)", secret, again, refusal)
			}
		}
	})
}

func TestAnEndpointWantsWhatItNames(t *testing.T) {
	for _, c := range []struct {
		e       Endpoint
		command string
		status  Status
		want    bool
	}{
		{Endpoint{}, "a", StatusFailed, true},
		{Endpoint{Commands: []string{"b", "a.*"}}, "a.b", StatusFailed, true},
		{Endpoint{Commands: []string{"b", "a.*"}}, "a", StatusFailed, false},
		{Endpoint{Statuses: []string{"FAILED"}}, "a", StatusFailed, true},
		{Endpoint{Statuses: []string{"FAILED"}}, "a", StatusCompleted, false},
		{Endpoint{Commands: []string{"*"}, Statuses: []string{"CANCELLED"}}, "a", StatusCancelled, true},
	} {
		if c.e.Wants(c.command, c.status) != c.want {
			t.Errorf("%+v and %s %s: not %v", c.e, c.command, c.status, c.want)
		}
	}
}
