package conform

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A driver that does not do what it should makes its script fail with a sentence that says so, and
// leaves nothing behind.
func TestDriversThatFail(t *testing.T) {
	const ready = `echo '{"event":"ready","can":[]}'; `
	for _, try := range []struct{ name, script, only, want string }{
		{"no program", "", "post/unreachable", "start the driver"},
		{"no JSON", "echo hello; cat >/dev/null", "post/unreachable", `printed "hello", which is no JSON object`},
		{"another line first", `echo '{"event":"stopped"}'; cat >/dev/null`, "post/unreachable", "must be the event ready"},
		{"an end", ready + "read -r line; exit 3", "post/unreachable", "ended before the script did"},
		{"silence", ready + "cat >/dev/null", "post/unreachable", `no event {"code":"unreachable","event":"error","id":1} came within`},
		{"another answer", ready + `read -r line; echo '{"event":"enqueued","id":1}'; cat >/dev/null`, "post/unreachable", `instead came {"event":"enqueued","id":1}`},
		{"no session", ready + "cat >/dev/null", "strange/unknown-code", "opened no session within"},
		{"a bad end", ready + `read -r line; echo '{"event":"error","id":1,"code":"unreachable"}'; cat >/dev/null; exit 3`, "post/unreachable", "ended with exit status 3"},
	} {
		command := []string{"sh", "-c", try.script}
		if try.script == "" {
			command = []string{"./no-such-driver"}
		}
		verdicts := Try(t.Context(), Options{Command: command, Only: try.only, AtOnce: 1, Patience: time.Second}, func(Verdict) {})
		if len(verdicts) != 1 || !strings.Contains(verdicts[0].Failed, try.want) {
			t.Errorf("%s: %+v, want %q", try.name, verdicts, try.want)
		}
	}
}

func TestScriptsThatAreNotTried(t *testing.T) {
	command := []string{"sh", "-c", `echo '{"event":"ready","can":["output"]}'; cat >/dev/null`}
	verdicts := Try(t.Context(), Options{Command: command, Only: "work/progress", AtOnce: 1}, func(Verdict) {})
	if len(verdicts) != 1 || verdicts[0].Skipped != "the driver has no progress" || verdicts[0].Failed != "" {
		t.Errorf("%+v", verdicts)
	}
	if verdicts := Try(t.Context(), Options{Command: command, Only: "no such name", AtOnce: 1}, func(Verdict) {}); len(verdicts) != 0 {
		t.Errorf("%+v", verdicts)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if verdicts := Try(ctx, Options{Command: command, AtOnce: 1}, func(Verdict) {}); len(verdicts) != 0 {
		t.Errorf("after the end: %+v", verdicts)
	}
}
