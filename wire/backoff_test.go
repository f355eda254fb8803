package wire

import "testing"

// A first wait above the longest one would never be waited.
func TestBackoffBaseAboveItsMaximumIsRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"backoff":{"baseSeconds":10,"maxSeconds":1}}`: "backoff.baseSeconds (10) must not be above maxSeconds (1); they are 5 and 900 if left out",
		`{"backoff":{"maxSeconds":4}}`:                  "backoff.baseSeconds (5) must not be above maxSeconds (4); they are 5 and 900 if left out",
		`{"backoff":{"baseSeconds":901}}`:               "backoff.baseSeconds (901) must not be above maxSeconds (900); they are 5 and 900 if left out",
	} {
		if _, err := ParseQueueSettings([]byte(body)); err == nil || err.Sentence != want {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	if _, err := ParseQueueSettings([]byte(`{"backoff":{"baseSeconds":10,"maxSeconds":10}}`)); err != nil {
		t.Errorf("equal ones: %v", err)
	}
}
