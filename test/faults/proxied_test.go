package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// impatient is a proxy in front of the server that gives each answer a second:
// then it answers with a status of its own, or closes the connection for 0.
type impatient struct {
	*httptest.Server
	cuts atomic.Int64
}

func (x *site) impatient(status int) *impatient {
	target, err := url.Parse(x.server.URL())
	if err != nil {
		x.t.Fatal(err)
	}
	p := &impatient{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) {
		p.cuts.Add(1)
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		http.Error(w, "<html>the proxy</html>", status)
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}))
	x.t.Cleanup(p.Close)
	return p
}

// running is one command of the program on its way.
type running struct {
	site      *site
	cmd       *exec.Cmd
	out, said transcript
}

// transcript is what a command prints, for those who read it while it runs.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// begin starts a command of the program against an address.
func (x *site) begin(address string, args ...string) *running {
	x.t.Helper()
	path, err := blackbox.Program()
	if err != nil {
		x.t.Fatal(err)
	}
	r := &running{site: x, cmd: exec.CommandContext(x.ctx, path, append([]string{"--url", address}, args...)...)}
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.said
	if err := r.cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	return r
}

// ends waits for the command and compares its exit code. One that does not end is
// killed, and the test with it.
func (r *running) ends(code int) {
	r.site.t.Helper()
	var late atomic.Bool
	defer time.AfterFunc(patience, func() {
		late.Store(true)
		_ = r.cmd.Process.Kill() // it may have ended just now
	}).Stop()
	_ = r.cmd.Wait() // the code says it
	if late.Load() {
		r.site.t.Fatalf("%q did not end within %v; it printed %q and said %q", r.cmd.Args[1:], patience, r.out.String(), r.said.String())
	}
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.site.t.Errorf("%q ended with %d, want %d; it printed %q and said %q", r.cmd.Args[1:], got, code, r.out.String(), r.said.String())
	}
}

// says makes sure of what is in the command's sentences, and of what is not.
func (r *running) says(want string, never ...string) {
	r.site.t.Helper()
	if !strings.Contains(r.said.String(), want) {
		r.site.t.Errorf("%q said %q, want %q", r.cmd.Args[1:], r.said.String(), want)
	}
	for _, wrong := range never {
		if strings.Contains(r.said.String(), wrong) {
			r.site.t.Errorf("%q said %q", r.cmd.Args[1:], r.said.String())
		}
	}
}

// Waits go on over a proxy that ends them early, in whatever way.
func TestN07WaitsOutliveAProxyThatCutsThem(t *testing.T) {
	for _, status := range []int{0, 502, 503, 504} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			x := newSite(t)
			id := x.post("other", 1, 0)[0]
			var waits []*running
			var proxies []*impatient
			for _, args := range [][]string{{"result", id.String()}, {"enqueue", "other", "1"}, {"claim", command}} {
				proxy := x.impatient(status)
				proxies = append(proxies, proxy)
				waits = append(waits, x.begin(proxy.URL, append(args, "--wait", "10m")...))
			}
			for _, proxy := range proxies {
				x.eventually(patience, "each wait was cut twice", func() bool { return proxy.cuts.Load() >= 2 })
			}
			x.post(command, 1, 0)
			waits[2].ends(0)
			waits[2].says("if the server gave it a task, the task is ready again when its lease of 30s ends")
			if words := strings.Fields(waits[2].out.String()); len(words) < 3 {
				t.Errorf("the claim printed %q", waits[2].out.String())
			}
			if held := x.figures(command); held.InProgress != 1 || held.Ready != 0 {
				t.Errorf("after the claim the queue is %+v", held)
			}
			p := x.peer(x.server.Addr, "late")
			if err := p.Subscribe(x.ctx, "other", 2, 60); err != nil {
				t.Fatal(err)
			}
			for _, f := range x.takeAll(p, 2, patience) {
				x.complete(p, f, `{"done":1}`)
			}
			for _, w := range waits[:2] {
				w.ends(0)
				w.says("it is tried again", "no codeq server answers")
				if !strings.Contains(w.out.String(), `{"done":1}`) {
					t.Errorf("%q printed %q", w.cmd.Args[1:], w.out.String())
				}
			}
		})
	}
}

// When the time of a wait is over, the sentence names what happened last.
func TestN07TheEndOfAWaitNamesTheProxy(t *testing.T) {
	x := newSite(t)
	id := x.post(command, 1, 0)[0]
	for status, want := range map[int]string{
		0:   "the connection to %s ended before the answer came",
		504: "%s answered 504 Gateway Timeout, not in the words of codeq: a proxy has no answer of the server",
	} {
		// Nothing comes through this one, not even what is asked without waiting.
		always := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(status)
		}))
		defer always.Close()
		for _, args := range [][]string{{"result", id.String()}, {"claim", command}} {
			r := x.begin(always.URL, append(args, "--wait", "3s")...)
			r.ends(75)
			r.says("the wait of 3s is over; what happened last: "+fmt.Sprintf(want, always.URL), "no codeq server answers")
		}
	}
}

// A proxy that hands a request on and cuts the answer leaves a doubt, which is told.
func TestF01AChangeWhoseAnswerIsCutSaysThatItMayBeDone(t *testing.T) {
	x := newSite(t)
	id := x.post("other", 1, 0)[0]
	cutting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := r.Clone(r.Context())
		request.URL.Scheme, request.URL.Host, request.RequestURI = "http", x.server.Addr, ""
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Error(err)
			return
		}
		_ = answer.Body.Close() // it is cut
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 2") // the client says what it got
		_ = conn.Close()                          // as above
	}))
	defer cutting.Close()
	for _, args := range [][]string{{"pause", "other", "--create"}, {"cancel", id.String()}, {"dlq", "purge", "other"}} {
		r := x.begin(cutting.URL, args...)
		r.ends(75)
		r.says("the server may or may not have done it")
		r.says("it can be done again")
	}
	if task := x.read(id); task.Status != wire.StatusCancelled {
		t.Errorf("the task is %s, want one that is cancelled", task.Status)
	}
	answer, err := x.api.Do(x.ctx, http.MethodGet, "/admin/queues/other", "")
	if err != nil || !strings.Contains(string(answer.Body), `"paused":true`) {
		t.Errorf("the queue is %s, %v", answer.Body, err)
	}
}

// A server that is killed and comes back ends no wait.
func TestN07WaitsOutliveARestart(t *testing.T) {
	x := newSite(t)
	id := x.post("other", 1, 0)[0]
	var waits []*running
	var proxies []*blackbox.Proxy
	for _, args := range [][]string{{"result", id.String()}, {"claim", command}} {
		proxy := blackbox.NewProxy(t, x.server.Addr)
		proxies = append(proxies, proxy)
		waits = append(waits, x.begin("http://"+proxy.Addr, append(args, "--wait", "10m")...))
		x.eventually(patience, "a request is on its way", func() bool { return proxy.CarriedBytes(blackbox.Up) > 0 })
	}
	x.server.Kill()
	for _, proxy := range proxies {
		x.eventually(patience, "each was cut and tried again", func() bool { return proxy.Taken() >= 2 })
	}
	x.server.Start()
	x.post(command, 1, 0)
	waits[1].ends(0)
	p := x.peer(x.server.Addr, "late")
	if err := p.Subscribe(x.ctx, "other", 1, 60); err != nil {
		t.Fatal(err)
	}
	x.complete(p, x.take(p, patience), `{"done":1}`)
	waits[0].ends(0)
}

// A redirect that turns a request into a GET is no answer to it.
func TestN08CommandsSayWhereTheServerHasMovedTo(t *testing.T) {
	x := newSite(t)
	for _, status := range []int{301, 302, 303, 307} {
		moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, x.server.URL()+r.URL.RequestURI(), status)
		}))
		defer moved.Close()
		commands := [][]string{
			{"queue", "set", command, "--create", "--max-attempts", fmt.Sprint(status)}, {"queues"}, {"enqueue", fmt.Sprint("q", status), "1"},
			{"enqueue", fmt.Sprint("q", status), "--file", "/dev/null"}, {"backup", t.TempDir() + "/backup"},
		}
		for _, args := range commands {
			r := x.begin(moved.URL, args...)
			if status == 307 {
				r.ends(0)
				continue
			}
			r.ends(1)
			r.says("the server has moved to "+x.server.URL()+": give that address (--url)", "may or may not")
		}
		answer, err := x.api.Do(x.ctx, http.MethodGet, "/admin/queues/"+command, "")
		if err != nil {
			t.Fatal(err)
		}
		queue, err := wire.ParseQueueFigures(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if set := queue.Settings.MaxAttempts == status; set != (status == 307) {
			t.Errorf("%d: the settings are %+v", status, queue.Settings)
		}
		if made := x.figures(fmt.Sprint("q", status)).Ready; (made == 1) != (status == 307) {
			t.Errorf("%d: %d tasks were made", status, made)
		}
	}
}

// What is wrong with TLS is said, and what was never sent is not in doubt.
func TestX04CommandsSayWhatIsWrongWithTLS(t *testing.T) {
	x := newSite(t)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plainAt := strings.Replace(x.server.URL(), "http", "https", 1)
	for address, want := range map[string]string{
		secure.URL: "the certificate of " + secure.URL + " is not trusted (x509: certificate signed by unknown authority)",
		strings.Replace(secure.URL, "https", "http", 1): "wants TLS: write https:// in the address (--url)",
		plainAt: plainAt + " does not speak TLS: write http:// in the address (--url)",
	} {
		for _, args := range [][]string{
			{"enqueue", command, "1"}, {"enqueue", command, "1", "--key", "k"}, {"enqueue", command, "--file", "/dev/null"},
			{"result", wire.TaskID{}.String(), "--wait", "5s"}, {"claim", command, "--wait", "5s"}, {"queues"},
			{"work", command, "--", "true"}, {"backup", t.TempDir() + "/backup"},
		} {
			r := x.begin(address, args...)
			r.ends(1)
			r.says(want, "may or may not", "no codeq server answers")
		}
	}
}
