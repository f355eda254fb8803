package webhooks

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"codeq/test/blackbox"
)

// said is a line of receiver.mjs.
type said struct {
	Port, Knows  int
	ID           string
	Verified     []bool
	Changed, Old bool
}

// receiver is receiver.mjs as a process.
type receiver struct {
	t     *testing.T
	in    io.Writer
	lines *json.Decoder
}

// startReceiver skips the test where Node or the library is missing, but not in CI.
func startReceiver(t *testing.T) (r *receiver, url string) {
	t.Helper()
	_, err := os.Stat("node_modules/standardwebhooks")
	if err == nil {
		_, err = exec.LookPath("node")
	}
	if err != nil {
		if os.Getenv("CODEQ_TEST_NODE") == "required" {
			t.Fatal(err)
		}
		t.Skipf("Node is not here, or `npm ci` was not run in test/webhooks: %v", err) // CI has both
	}
	node := exec.CommandContext(t.Context(), "node", "receiver.mjs")
	node.Stderr = os.Stderr
	in, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Wait() }) // the context of the test has ended it
	r = &receiver{t: t, in: in, lines: json.NewDecoder(bufio.NewReader(out))}
	return r, fmt.Sprintf("http://127.0.0.1:%d/hook", r.next().Port)
}

func (r *receiver) next() (s said) {
	r.t.Helper()
	if err := r.lines.Decode(&s); err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *receiver) learn(secret string) {
	r.t.Helper()
	if _, err := fmt.Fprintln(r.in, secret); err != nil {
		r.t.Fatal(err)
	}
	r.next()
}

// arrives wants the next request to be signed with those of the known secrets.
func (r *receiver) arrives(id string, want ...bool) {
	r.t.Helper()
	if s := r.next(); !strings.HasPrefix(s.ID, id) || !slices.Equal(s.Verified, want) || s.Changed || s.Old {
		r.t.Errorf("%+v arrives, want %s and %v", s, id, want)
	}
}

// asked sends a request, and reads the answer into a map.
func asked(t *testing.T, s *blackbox.Server, method, path, body string) (answer map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+"/v1/codeq"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }() // all of it was read
	if err := json.NewDecoder(a.Body).Decode(&answer); err != nil || a.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %v %v", method, path, a.StatusCode, answer, err)
	}
	return answer
}

// The library takes what goes to the webhook of a task with the secret of the tenant, and what
// goes to a webhook of the tenant with its own, with both while one is replaced. It takes
// nothing that was changed, and nothing with another time.
func TestTheLibraryOfNpmVerifiesWhatIsPosted(t *testing.T) {
	r, url := startReceiver(t)
	s := blackbox.Serve(t, "--webhook-allow", "127.0.0.1")
	secret := func(method, path, body string) {
		t.Helper()
		r.learn(asked(t, s, method, path, body)["secret"].(string))
	}
	end := func(webhook string) string {
		t.Helper()
		id := asked(t, s, "POST", "/tasks", `{"command":"c","payload":{"é":"\u2028"}`+webhook+`}`)["id"].(string)
		asked(t, s, "POST", "/tasks/"+id+"/cancel", "")
		return id
	}
	secret("GET", "/admin/webhooks/secret", "")
	r.arrives(end(`,"webhook":"`+url+`"`), true)
	secret("PUT", "/admin/webhooks/e", `{"url":"`+url+`"}`)
	r.arrives(end(""), false, true)
	secret("POST", "/admin/webhooks/e/rotate", "")
	r.arrives(end(""), false, true, true)
	secret("POST", "/admin/webhooks/e/rotate", `{"secret":"whsec_`+strings.Repeat("b3du", 12)+`"}`)
	r.arrives(end(""), false, false, true, true)
	asked(t, s, "POST", "/admin/webhooks/e/test", "")
	r.arrives("test.", false, false, true, true)
}
