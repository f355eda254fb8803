package wire

import (
	"reflect"
	"testing"
)

func TestSubscriptionsAreReadAsTheyAreWritten(t *testing.T) {
	s, refusal := ParseSubscribeRequest([]byte(`{"callbackUrl":"https://x.org/","eventTypes":["a","b.*","*"],"deliveryMode":"group","groupId":"g","minIntervalSeconds":1,"ttlSeconds":10}`))
	if refusal != nil {
		t.Fatal(refusal)
	}
	s.ExpiresAtMs = 1_767_225_600_000
	again, err := ParseSubscription(AppendSubscription(nil, s))
	if err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("%+v, %v", again, err)
	}
	f := SubscriptionFigures{ID: "i", Subscription: *s, Failures: 3}
	if read, err := parseAnswer("subscription", AppendSubscriptionFigures(nil, &f), shapeOf(new([]string), new(SubscriptionFigures).members), (*SubscriptionFigures).members); err != nil || !reflect.DeepEqual(*read, f) {
		t.Errorf("%+v, %v", read, err)
	}
	want := `{"eventType":"a","available":true,"queueDepth":7,"oldestReadyAt":"2026-01-01T00:00:00.000Z","claimUrl":"/c","sentAt":"2026-01-01T00:00:01.000Z","notificationId":"n"}`
	n := Notification{ID: "n", Command: "a", Ready: 7, OldestReadyAtMs: s.ExpiresAtMs, ClaimURL: "/c", SentAtMs: s.ExpiresAtMs + 1000}
	if got := string(AppendNotification(nil, &n)); got != want {
		t.Error(got)
	}
}

func TestWrongSubscriptionsAreRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{}`: "invalid_webhook: callbackUrl is required: a string",
		`{"callbackUrl":"https://x.org/","deliveryMode":"some"}`:    "invalid_argument: deliveryMode must be fanout, group or hash",
		`{"callbackUrl":"https://x.org/","deliveryMode":"group"}`:   "invalid_argument: groupId belongs to the deliveryMode group, which needs it",
		`{"callbackUrl":"https://x.org/","groupId":"g"}`:            "invalid_argument: groupId belongs to the deliveryMode group, which needs it",
		`{"callbackUrl":"https://x.org/","ttlSeconds":9}`:           "invalid_argument: ttlSeconds must be an integer from 10 to 86400, got 9",
		`{"callbackUrl":"https://x.org/","minIntervalSeconds":0}`:   "invalid_argument: minIntervalSeconds must be an integer from 1 to 86400, got 0",
		`{"callbackUrl":"https://x.org/","eventTypes":["a b"]}`:     `invalid_command: eventTypes[0] may hold only letters, digits, dots, underscores, colons and hyphens, byte 1 is none, but for .* at the end of a prefix`,
		`{"callbackUrl":"https://u:p@x.org/"}`:                      "invalid_webhook: callbackUrl must have no user name and no password: what is posted is signed instead",
		`{"callbackUrl":"https://x.org/","expiresAt":"2026-01-01"}`: "unknown_member: expiresAt is not known; known here: callbackUrl, eventTypes, deliveryMode, groupId, minIntervalSeconds, ttlSeconds",
	} {
		if _, refusal := ParseSubscribeRequest([]byte(body)); refusal == nil || refusal.Error() != want {
			t.Errorf("%s: %v, want %s", body, refusal, want)
		}
	}
	if _, refusal := ParseRenewal([]byte(`{"ttlSeconds":86401}`)); refusal == nil {
		t.Error("a renewal for longer than a day is taken")
	}
}

func FuzzParseSubscription(f *testing.F) {
	f.Add([]byte(`{"callbackUrl":"https://x.org/","eventTypes":["a"],"deliveryMode":"group","groupId":"g","ttlSeconds":10}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = ParseRenewal(body) // it must not panic
		s, refusal := ParseSubscribeRequest(body)
		if refusal != nil {
			return
		}
		if again, err := ParseSubscription(AppendSubscription(nil, s)); err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%s is read as %+v and again as %+v, %v", body, s, again, err)
		}
	})
}
