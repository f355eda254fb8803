package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lxzan/gws"
	"github.com/rs/zerolog"

	"codeq/internal/auth"
	"codeq/internal/httpapi"
	"codeq/wire"
)

// openPaged is a server with tokens, and the names and origins of guardedOptions.
func openPaged(f *tokenFile, dir string) *site {
	f.t.Helper()
	tokens, err := auth.OpenTokens(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	o := guardedOptions()
	o.DataDir, o.FS, o.Tokens, o.Log = dir, nil, tokens, zerolog.Nop()
	o.AllowOrigins = append(o.AllowOrigins, "https://queue.example")
	s, err := Open(o)
	if err != nil {
		f.t.Fatal(err)
	}
	return newSite(f.t, s)
}

// page is a request as a browser sends it. Of headers "Host" is the host.
type page struct {
	method, path, body string
	headers            map[string]string
}

func (x *site) browse(p page) answer {
	x.t.Helper()
	r, err := http.NewRequest(p.method, "http://"+x.server.Addr()+p.path, strings.NewReader(p.body))
	if err != nil {
		x.t.Fatal(err)
	}
	for name, value := range p.headers {
		r.Header.Set(name, value)
	}
	r.Host = p.headers["Host"]
	response, err := x.http.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	data, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		x.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(data)}
}

const loginPath = "/v1/codeq/login"

// login is the cookie for a token, as a browser sends it.
func (x *site) login(token string) (cookie string) {
	x.t.Helper()
	a := x.browse(page{"POST", loginPath, "", map[string]string{"Authorization": "Bearer " + token, "X-Codeq-UI": "1"}})
	set, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if a.status != http.StatusOK || err != nil {
		x.t.Fatalf("login: %d %s, %v", a.status, a.body, err)
	}
	if !set.HttpOnly || set.SameSite != http.SameSiteStrictMode || set.Path != "" || set.Domain != "" || set.Secure || set.MaxAge != 12*3600 {
		x.t.Errorf("the cookie is %s", set.Raw)
	}
	for _, secret := range []string{token, token[3:20], auth.HashToken(token)[:16]} {
		if strings.Contains(a.header.Get("Set-Cookie")+a.body, secret) {
			x.t.Errorf("the answer tells %q", secret)
		}
	}
	return set.Name + "=" + set.Value
}

// pageAttacks are requests with the cookie of a page. TASK is the path of a task of the admin.
var pageAttacks = []struct {
	who, method, path string
	// more are headers with commas between them; OWN is the origin of the server.
	more string
	want wire.Code
}{
	{"admin", "GET", "TASK", "", ""},
	{"admin", "HEAD", "TASK", "", ""},
	{"admin", "GET", "TASK", "Origin: OWN,Sec-Fetch-Site: same-origin", ""},
	{"admin", "GET", "TASK", "Sec-Fetch-Site: none", ""},
	{"admin", "POST", "/v1/codeq/tasks", "X-Codeq-UI: 1", ""},
	{"admin", "POST", "/v1/codeq/tasks", "X-Codeq-UI: 1,Origin: OWN,Sec-Fetch-Site: same-origin", ""},
	{"admin", "POST", "/v1/codeq/tasks", "Host: queue.example,Origin: https://queue.example,X-Codeq-UI: 1", ""},
	// A form, a script and a frame of another site.
	{"admin", "POST", "/v1/codeq/tasks", "", badOrigin},
	{"admin", "POST", "/v1/codeq/tasks", "Content-Type: text/plain,Origin: https://evil.example,Sec-Fetch-Site: cross-site", badOrigin},
	{"admin", "POST", "/v1/codeq/tasks", "X-Codeq-UI: 1,Origin: https://evil.example", badOrigin},
	{"admin", "POST", "/v1/codeq/tasks", "X-Codeq-UI: 1,Origin: null", badOrigin},
	{"admin", "POST", "/v1/codeq/tasks", "X-Codeq-UI: 1,Origin: http://127.0.0.1:1", badOrigin},
	{"admin", "POST", "/v1/codeq/tasks", "X-Codeq-UI: 1,Sec-Fetch-Site: same-site", badOrigin},
	{"admin", "GET", "TASK", "Sec-Fetch-Site: cross-site", badOrigin},
	{"admin", "GET", "TASK", "Origin: https://evil.example", badOrigin},
	{"admin", "GET", "/healthz", "Sec-Fetch-Site: cross-site", badOrigin},
	// Origins that may send requests with a token of their own, without the cookie.
	{"admin", "GET", "TASK", "Origin: https://app.example", badOrigin},
	{"admin", "GET", "TASK", "Host: queue.example,Origin: https://queue.example,Sec-Fetch-Site: same-origin", ""},
	{"admin", "GET", "TASK", "Host: queue.example,Origin: https://app.example", badOrigin},
	// A name that was made to lead here.
	{"admin", "GET", "TASK", "Host: evil.example", badHost},
	{"admin", "POST", "/v1/codeq/tasks", "Host: evil.example:PORT,Origin: http://evil.example:PORT,X-Codeq-UI: 1", badHost},
	{"admin", "DELETE", loginPath, "Sec-Fetch-Site: cross-site,X-Codeq-UI: 1", badOrigin},
	{"admin", "DELETE", loginPath, "", badOrigin},
	// Rights.
	{"other", "GET", "TASK", "", wire.CodeTaskNotFound},
	{"viewer", "GET", "TASK", "", ""},
	{"viewer", "GET", "TASK/result", "", wire.CodeForbidden},
	{"viewer", "POST", "/v1/codeq/tasks", "X-Codeq-UI: 1", wire.CodeForbidden},
	{"admin", "POST", loginPath, "X-Codeq-UI: 1", wire.CodeUnauthenticated},
	{"admin", "GET", "TASK", "Authorization: Bearer cq_bad", wire.CodeUnauthenticated},
	{"admin", "GET", "TASK", "Authorization: Basic YTpi", wire.CodeUnauthenticated},
	{"bad", "GET", "TASK", "", wire.CodeUnauthenticated},
	{"altered", "GET", "TASK", "", wire.CodeUnauthenticated},
	{"renamed", "GET", "TASK", "", wire.CodeUnauthenticated},
	{"of another server", "GET", "TASK", "", wire.CodeUnauthenticated},
	{"with a value of another server", "GET", "TASK", "", wire.CodeUnauthenticated},
}

func TestThePageOfALoginDoesWhatItsTokenMay(t *testing.T) {
	f := newTokenFile(t)
	admin, viewer, other := f.addAll("one"), f.add("one", []string{auth.ScopeView}, []string{"*"}), f.addAll("two")
	x := openPaged(f, t.TempDir())
	task := "/v1/codeq/tasks/" + x.as(admin).post(okTask).ID.String()
	_, port, err := net.SplitHostPort(x.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	cookies := map[string]string{"admin": x.login(admin), "viewer": x.login(viewer), "other": x.login(other), "bad": x.login(admin) + "A"}
	name, value, _ := strings.Cut(cookies["admin"], "=")
	cookies["altered"] = name + "=" + value[:20] + string(value[20]^1) + value[21:]
	cookies["renamed"] = name + "x=" + value
	foreign := openPaged(f, t.TempDir())
	foreignName, foreignValue, _ := strings.Cut(foreign.login(admin), "=")
	cookies["of another server"], cookies["with a value of another server"] = foreignName+"="+foreignValue, name+"="+foreignValue
	for _, c := range pageAttacks {
		headers := map[string]string{"Cookie": "theme=dark; " + cookies[c.who]}
		own := strings.NewReplacer("OWN", "http://"+x.server.Addr(), "PORT", port)
		for line := range strings.SplitSeq(c.more, ",") {
			name, value, _ := strings.Cut(own.Replace(line), ": ")
			headers[name] = value
		}
		delete(headers, "")
		a := x.browse(page{c.method, strings.Replace(c.path, "TASK", task, 1), map[string]string{"/v1/codeq/tasks": okTask}[c.path], headers})
		if c.want == "" && a.status >= 400 || c.want != "" && a.code() != c.want {
			t.Errorf("%s: %s %s with %q is answered %d %s, want %q", c.who, c.method, c.path, c.more, a.status, a.body, c.want)
		}
	}
	for _, route := range httpapi.Routes() {
		method, pattern, _ := strings.Cut(route, " ")
		if method == "GET" {
			continue
		}
		if a := x.browse(page{method, pattern, "{}", map[string]string{"Cookie": cookies["admin"]}}); a.code() != badOrigin {
			t.Errorf("%s changes something without the header of a page: %d %s", route, a.status, a.body)
		}
	}
}

// upgrade opens a socket with headers, and returns the status that refuses it, or 101.
func (x *site) upgrade(path string, headers map[string]string) (conn *gws.Conn, closed chan uint16, status int) {
	x.t.Helper()
	k := &closeWatch{closed: make(chan uint16, 1)}
	h := http.Header{}
	for name, value := range headers {
		h.Set(name, value)
	}
	conn, response, err := gws.NewClient(k, &gws.ClientOption{Addr: "ws://" + x.server.Addr() + path, RequestHeader: h})
	if err != nil && response == nil {
		x.t.Fatal(err)
	}
	if err == nil {
		go conn.ReadLoop()
		x.t.Cleanup(func() { _ = conn.NetConn().Close() }) // it may be closed already
	}
	return conn, k.closed, response.StatusCode
}

// closeWatch tells the code with which its socket was closed.
type closeWatch struct {
	gws.BuiltinEventHandler
	closed chan uint16
}

// OnClose implements gws.Event.
func (k *closeWatch) OnClose(_ *gws.Conn, err error) {
	var end *gws.CloseError
	if errors.As(err, &end) {
		k.closed <- end.Code
	}
}

func TestALoginEndsWithItsTokenAndOutlivesARestart(t *testing.T) {
	f, dir := newTokenFile(t), t.TempDir()
	gone, kept := f.addAll("one"), f.addAll("one")
	x := openPaged(f, dir)
	cookie := x.login(gone)
	x.close()
	x = openPaged(f, dir)
	headers := map[string]string{"Cookie": cookie}
	who := page{"GET", loginPath, "", headers}
	if a := x.browse(who); a.status != http.StatusOK || !strings.Contains(a.body, `"authentication":true,"tenantId":"one","subject":"s","scopes":["codeq:abandon",`) {
		t.Fatalf("after a restart: %d %s", a.status, a.body)
	}
	var sockets []chan uint16
	for _, path := range []string{"/v1/codeq/session", "/v1/codeq/events"} {
		_, _, status := x.upgrade(path, map[string]string{"Cookie": cookie, "Origin": "https://evil.example"})
		if status != http.StatusForbidden {
			t.Errorf("%s for a page of another site: %d", path, status)
		}
		conn, closed, status := x.upgrade(path, map[string]string{"Cookie": cookie, "Origin": "http://" + x.server.Addr()})
		if status != http.StatusSwitchingProtocols {
			t.Fatalf("%s for the page: %d", path, status)
		}
		if err := conn.WriteMessage(gws.OpcodeText, []byte(`{"type":"hello"}`)); err != nil {
			t.Fatal(err)
		}
		sockets = append(sockets, closed)
	}
	f.keep(kept)
	late := time.After(patience)
	for _, closed := range sockets {
		select {
		case code := <-closed:
			if code != 4401 {
				t.Errorf("a socket of the page is closed with %d", code)
			}
		case <-late:
			t.Fatal("a socket of the page is open after its token was removed")
		}
	}
	if a := x.browse(who); a.code() != wire.CodeUnauthenticated {
		t.Errorf("the login outlives its token: %d %s", a.status, a.body)
	}
	a := x.browse(page{"DELETE", loginPath, "", map[string]string{"Cookie": cookie, "X-Codeq-UI": "1"}})
	name, _, _ := strings.Cut(cookie, "=")
	if set := a.header.Get("Set-Cookie"); a.status != http.StatusNoContent || !strings.HasPrefix(set, name+"=; Max-Age=0;") {
		t.Errorf("logging out: %d %q", a.status, set)
	}
}

func TestALoginBehindHTTPSHasACookieForHTTPSAlone(t *testing.T) {
	f := newTokenFile(t)
	token := f.addAll("one")
	x := openPaged(f, t.TempDir())
	a := x.browse(page{"POST", loginPath, "", map[string]string{
		"Authorization": "Bearer " + token, "Host": "queue.example", "Origin": "https://queue.example",
	}})
	if set := a.header.Get("Set-Cookie"); a.status != http.StatusOK || !strings.Contains(set, "; Secure") {
		t.Errorf("%d %q", a.status, set)
	}
}

func TestWithoutTokensEveryPageIsLoggedIn(t *testing.T) {
	x := openSite(t, t.TempDir())
	if a := x.ask("GET", loginPath, ""); !strings.HasPrefix(a.body, `{"authentication":false,"tenantId":"default","subject":"anonymous","scopes":["codeq:claim",`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := x.ask("POST", loginPath, ""); a.code() != wire.CodeInvalidArgument {
		t.Errorf("%d %s", a.status, a.body)
	}
}
