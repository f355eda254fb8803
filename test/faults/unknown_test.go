package faults

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeq/test/blackbox"
	"codeq/wire"
)

// mustNotKnow wants the refusal of a name that is not known, with the one that was
// meant.
func mustNotKnow(t *testing.T, err error, sentence string) {
	t.Helper()
	var refusal *wire.Error
	if !errors.As(err, &refusal) || refusal.Code != wire.CodeUnknownMember || refusal.Sentence != sentence {
		t.Errorf("answered %v, want unknown_member: %s", err, sentence)
	}
}

// A misspelt member of a post makes no task.
func TestU03PostWithAMisspeltMemberMakesNothing(t *testing.T) {
	x := newSite(t)
	_, err := x.api.Do(x.ctx, http.MethodPost, "/tasks", `{"command":"c","payload":1,"maxAtempts":1}`)
	mustNotKnow(t, err, "maxAtempts is not known; did you mean maxAttempts?")
	_, err = x.api.Do(x.ctx, http.MethodPost, "/tasks", `{"command":"c","payload":1,"delay":3600}`)
	mustNotKnow(t, err, "delay is not known; did you mean delaySeconds?")
	x.mustHold(0)
	if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks", `{"command":"c","payload":{"maxAtempts":1,"delay":2,"delay":3}}`); err != nil {
		t.Errorf("in a payload nobody looks: %v", err)
	}
	x.mustHold(1)
}

// mustHold counts the ready tasks of the queue.
func (x *site) mustHold(ready int64) {
	x.t.Helper()
	answer, err := x.api.Do(x.ctx, http.MethodGet, "/admin/queues/"+command, "")
	if err != nil {
		x.t.Fatal(err)
	}
	if q, err := wire.ParseQueueFigures(answer.Body); err != nil || q.Ready != ready {
		x.t.Errorf("the queue is %s (%v), want %d ready", answer.Body, err, ready)
	}
}

// The item of a batch that has a misspelt member is refused alone.
func TestU03BatchRefusesTheMisspeltItemAlone(t *testing.T) {
	x := newSite(t)
	const good = `{"command":"c","payload":1}`
	answer, err := x.api.Do(x.ctx, http.MethodPost, "/tasks/batch", `{"tasks":[`+good+`,{"command":"c","payload":1,"maxAtempts":1},`+good+`]}`)
	if err != nil {
		t.Fatal(err)
	}
	body := string(answer.Body)
	if strings.Count(body, `{"task":{`) != 2 || strings.Count(body, `"code":"unknown_member"`) != 1 ||
		!strings.Contains(body, "tasks[1].maxAtempts is not known; did you mean maxAttempts?") {
		t.Errorf("answered %s", body)
	}
	x.mustHold(2)
	_, err = x.api.Do(x.ctx, http.MethodPost, "/tasks/batch", `{"tasks":[`+good+`],"task":[`+good+`]}`)
	mustNotKnow(t, err, "task is not known; did you mean tasks?")
	x.mustHold(2)
}

// A session outlives a frame with a misspelt member, with what it holds.
func TestU03SessionOutlivesAFrameWithAMisspeltMember(t *testing.T) {
	x := newSite(t)
	w := x.worker(x.server.Addr, "w", 1, 60)
	x.post(command, 1, 0)
	f := x.take(w, patience)
	for _, frame := range [][3]string{
		{"heartbeat", `,"extendSecond":60`, "extendSecond is not known; did you mean extendSeconds?"},
		{"window", `,"size":5,"siz":6`, "siz is not known; did you mean size?"},
		{"enqueue", `,"command":"c","payload":1,"maxAtempts":1`, "maxAtempts is not known; did you mean maxAttempts?"},
		{"heartbeat", `,"tasks":[{"taskId":"` + f.Task.ID.String() + `","leaseToken":"` + f.Token.String() + `","lease":1}]`,
			"tasks[0].lease is not known; did you mean leaseToken?"},
		{"drain", `,"reason":"none"`, "reason is not known; known here: type, ref"},
	} {
		_, err := w.AskText(x.ctx, frame[0], frame[1])
		mustNotKnow(t, err, frame[2])
	}
	if err := w.Complete(x.ctx, blackbox.RefOf(f), `{}`); err != nil {
		t.Errorf("the session does not go on: %v", err)
	}
	x.mustHold(0)
}

// A misspelt parameter removes no dead letter, and nor does a filter in a body that
// a purge does not take.
func TestU03ParameterThatIsMisspeltDoesNothing(t *testing.T) {
	x := newSite(t)
	w := x.worker(x.server.Addr, "w", 1, 60)
	if _, err := x.api.Do(x.ctx, http.MethodPost, "/tasks", `{"command":"c","payload":1,"maxAttempts":1}`); err != nil {
		t.Fatal(err)
	}
	f := x.take(w, patience)
	if _, err := w.Ask(x.ctx, func(ref wire.Ref) wire.ClientFrame {
		return &wire.Nack{Ref: ref, TaskRef: blackbox.RefOf(f), NackRequest: wire.NackRequest{Reason: "no"}}
	}); err != nil {
		t.Fatal(err)
	}
	for _, ask := range [][4]string{
		{http.MethodDelete, "/admin/queues/c/dlq?wroker=ada", "", "parameter wroker is not known; did you mean worker?"},
		{http.MethodDelete, "/admin/queues/c/dlq", `{"worker":"ada"}`, "worker is not known; nothing can be given here"},
		{http.MethodPost, "/admin/queues/c/dlq/replay", `{"wroker":"ada"}`, "wroker is not known; did you mean worker?"},
		{http.MethodGet, "/admin/queues/c/tasks?stat=dlq", "", "parameter stat is not known; did you mean state?"},
		{http.MethodPost, "/tasks?delaySeconds=5", `{"command":"c","payload":1}`, "parameter delaySeconds is not known; nothing can be given here"},
	} {
		_, err := x.api.Do(x.ctx, ask[0], ask[1], ask[2])
		mustNotKnow(t, err, ask[3])
	}
	answer, err := x.api.Do(x.ctx, http.MethodDelete, "/admin/queues/c/dlq?cursor=", "")
	if err != nil || string(answer.Body) != `{"purged":1,"remaining":0}` {
		t.Errorf("the letter was not left alone: %+v, %v", answer, err)
	}
}

// A file of settings and one of tokens are refused with the name that was meant.
func TestU03FileWithAMisspeltKeyStartsNoServer(t *testing.T) {
	t.Parallel()
	for _, file := range [][3]string{
		{"--config", "max-sesions: 5\n", ":1: max-sesions is not known; did you mean max-sessions?"},
		{"--tokens", "- name: ci\n  tenent: t\n", ":2: tenent is not known; did you mean tenant?"},
	} {
		path := filepath.Join(t.TempDir(), "file.yaml")
		if err := os.WriteFile(path, []byte(file[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		if said := mustNotServe(t, 2, "true", file[0], path); !strings.Contains(said, path+file[2]) {
			t.Errorf("%s %q: %s", file[0], file[1], said)
		}
	}
}
