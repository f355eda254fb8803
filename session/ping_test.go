package session

import (
	"testing"

	"codeq/internal/auth"
	"codeq/wire"
)

// The time between pings is what the server was set to, and the welcome says
// the same.
func TestPingsComeAsOftenAsTheWelcomeSays(t *testing.T) {
	for _, set := range []int{0, 3} {
		want := set
		if set == 0 {
			want = wire.PingSeconds
		}
		c := NewConversation(Facts{Router: &testRouter{shards: 1}, PingSeconds: set}, scriptEpochMs)
		c.Step(scriptEpochMs, &ClientMessage{Data: []byte(`{"type":"hello"}`)})
		said := c.Step(scriptEpochMs, &Admitted{Principal: &auth.Principal{Tenant: "default"}})
		welcome, ok := said.Frames[0].Frame.(*wire.Welcome)
		if !ok || welcome.PingSeconds != want {
			t.Errorf("set to %d, the welcome is %+v", set, said.Frames[0].Frame)
		}
		if got := c.DeadlineMs() - scriptEpochMs; got != int64(want)*1000 {
			t.Errorf("set to %d, the first ping is due after %d ms", set, got)
		}
	}
}
