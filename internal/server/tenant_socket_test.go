package server

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lxzan/gws"

	"codeq/internal/auth"
	"codeq/wire"
)

// firstWords tells what a socket hears first, or the close code that ends it.
type firstWords struct {
	gws.BuiltinEventHandler
	heard chan string
}

// OnMessage implements gws.Event.
func (w *firstWords) OnMessage(_ *gws.Conn, m *gws.Message) { w.heard <- m.Data.String() }

// OnClose implements gws.Event.
func (w *firstWords) OnClose(_ *gws.Conn, err error) {
	if end := new(gws.CloseError); errors.As(err, &end) {
		w.heard <- end.Error()
	}
}

// A tenant that the upgrade names counts wherever the credential comes from, as in every other
// request: else a worker takes the tasks of a tenant that nobody meant.
func TestASocketActsForTheTenantThatItsUpgradeNames(t *testing.T) {
	f := newTokenFile(t)
	all, one := f.add("own", auth.Scopes(), []string{wire.AllCommands}), f.addAll("one")
	guarded, open := openPaged(f, t.TempDir()), openSite(t, t.TempDir())
	cookie := guarded.login(all)
	for _, c := range []struct {
		name    string
		x       *site
		headers map[string]string
		token   string
		tenants []string
		want    string
	}{
		{"token in the header", guarded, map[string]string{"Authorization": "Bearer " + all}, "", []string{"acme"}, `"tenantId":"acme"`},
		{"token in the hello", guarded, nil, all, []string{"acme"}, `"tenantId":"acme"`},
		{"token in both", guarded, map[string]string{"Authorization": "Bearer " + all}, all, []string{"acme"}, `"tenantId":"acme"`},
		{"cookie of a page", guarded, map[string]string{"Cookie": cookie}, "", []string{"acme"}, `"tenantId":"acme"`},
		{"no authentication", open, nil, "", []string{"acme"}, `"tenantId":"acme"`},
		{"no tenant named", guarded, nil, all, nil, `"tenantId":"own"`},
		{"its own tenant", guarded, nil, one, []string{"one"}, `"tenantId":"one"`},
		{"not allowed, by hello", guarded, nil, one, []string{"acme"}, `acts only for its own tenant`},
		{"not allowed, by header", guarded, map[string]string{"Authorization": "Bearer " + one}, "", []string{"acme"}, "403"},
		{"two tenants, by header", guarded, map[string]string{"Authorization": "Bearer " + all}, "", []string{"acme", "own"}, "400"},
		{"two tenants, by hello", guarded, nil, all, []string{"acme", "own"}, "400"},
		{"no name", guarded, nil, all, []string{" "}, "400"},
	} {
		for _, path := range []string{"/v1/codeq/session", "/v1/codeq/events"} {
			t.Run(c.name+path, func(t *testing.T) {
				h := http.Header{"X-Codeq-Tenant": c.tenants}
				for name, value := range c.headers {
					h.Set(name, value)
				}
				w := &firstWords{heard: make(chan string, 10)}
				conn, response, err := gws.NewClient(w, &gws.ClientOption{Addr: "ws://" + c.x.server.Addr() + path, RequestHeader: h})
				if err != nil {
					if response == nil || !strings.HasPrefix(response.Status, c.want) {
						t.Fatalf("got %v, %v, want %s", response, err, c.want)
					}
					return
				}
				defer func() { _ = conn.NetConn().Close() }() // it may be closed already
				go conn.ReadLoop()
				if err := conn.WriteString(`{"type":"hello","token":"` + c.token + `"}`); err != nil {
					t.Fatal(err)
				}
				select {
				case heard := <-w.heard:
					if !strings.Contains(heard, c.want) {
						t.Errorf("heard %s, want %s", heard, c.want)
					}
				case <-time.After(patience):
					t.Fatal("heard nothing")
				}
			})
		}
	}
}
