package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// post sends a body and returns the status and the answer.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	answer, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(said)
}

func TestTestServerMovesItsClockByHand(t *testing.T) {
	p := start(t, "test-server", "--json")
	p.out.await(t, "\n")
	var said struct{ URL, Now string }
	if err := json.Unmarshal([]byte(p.out.String()), &said); err != nil || said.Now != "2026-01-01T00:00:00Z" {
		t.Fatalf("it says %s: %v", p.out, err)
	}
	code, id, errs := codeq("", "enqueue", "mail", `"hello"`, "--delay", "1h", "--url", said.URL, "-q")
	if code != exitFine {
		t.Fatal(errs)
	}
	if code, _, errs := codeq("", "claim", "mail", "--url", said.URL); code != exitNotThere {
		t.Errorf("before its time: exit code %d, %s", code, errs)
	}
	if status, now := post(t, said.URL+"/advance", `{"ms":3600000}`); status != http.StatusOK || now != "{\"now\":\"2026-01-01T01:00:00.000Z\"}\n" {
		t.Errorf("the clock was moved: %d %s", status, now)
	}
	if code, out, errs := codeq("", "claim", "mail", "--url", said.URL, "-q"); code != exitFine || !strings.HasPrefix(out, strings.TrimSpace(id)) {
		t.Errorf("at its time: exit code %d, %s%s", code, out, errs)
	}
	for _, wrong := range []string{`{"ms":-1}`, `{"ms":400000000000}`, `{`, `[1]`} {
		if status, now := post(t, said.URL+"/advance", wrong); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", wrong, status, now)
		}
	}
	p.signal(os.Interrupt)
	if code := p.exit(); code != exitFine {
		t.Errorf("exit code %d: %s", code, p.err)
	}
	if code, out, errs := codeq("", "test-server", "--until-eof"); code != exitFine || !strings.HasPrefix(out, `{"url":"http://127.0.0.1:`) {
		t.Errorf("at the end of its input: exit code %d, %s%s", code, out, errs)
	}
}

// The clock of a server that serves is the machine's, whatever is asked of it.
func TestServeHasNoManualClock(t *testing.T) {
	_, said := serve(t, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0")
	if status, answer := post(t, said.URL+"/advance", `{"ms":1}`); status != http.StatusNotFound || !strings.Contains(answer, `"not_found"`) {
		t.Errorf("%d %s", status, answer)
	}
	if o := new(serveCmd).options(); o.Time.WallNs != nil || o.Time.ElapsedNs != nil {
		t.Error("serve sets a clock")
	}
}
