package deploy

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/traefik/traefik/v3/pkg/config/dynamic"
	"github.com/traefik/traefik/v3/pkg/middlewares/requestdecorator"
	muxer "github.com/traefik/traefik/v3/pkg/muxer/http"
	"github.com/traefik/traefik/v3/pkg/provider/file"
	"github.com/traefik/traefik/v3/pkg/safe"
)

const traefikFile = "../../deploy/proxy/traefik.yaml"

// readByTraefik gives a file to Traefik's provider of files.
func readByTraefik(t *testing.T, name string) (*dynamic.Configuration, error) {
	t.Helper()
	pool := safe.NewPool(t.Context())
	defer pool.Stop()
	read := make(chan dynamic.Message, 1)
	if err := (&file.Provider{Filename: name}).Provide(read, pool); err != nil {
		return nil, err
	}
	return (<-read).Configuration, nil
}

// Traefik's own provider reads the file, and its own matcher of rules sends to codeq what is below the path.
func TestTraefikReadsItsFile(t *testing.T) {
	c, err := readByTraefik(t, traefikFile)
	if err != nil {
		t.Fatal(err)
	}
	router := c.HTTP.Routers["codeq"]
	if router == nil || c.HTTP.Services[router.Service] == nil {
		t.Fatalf("the router is %+v, of services %v", router, c.HTTP.Services)
	}
	for _, name := range router.Middlewares {
		if m := c.HTTP.Middlewares[name]; m == nil || m.StripPrefix == nil || !slices.Equal(m.StripPrefix.Prefixes, []string{"/queue"}) {
			t.Errorf("the middleware %s is %+v", name, m)
		}
	}
	if len(router.Middlewares) != 1 {
		t.Errorf("the router has the middlewares %v", router.Middlewares)
	}
	parser, err := muxer.NewSyntaxParser()
	if err != nil {
		t.Fatal(err)
	}
	rules := muxer.NewMuxer(parser, nil)
	if err := rules.AddRoute(router.Rule, "v3", 0, "file", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})); err != nil {
		t.Fatal(err)
	}
	host := requestdecorator.New(nil) // finds the host that a rule compares
	for url, want := range map[string]int{
		"https://codeq.example.com/queue/v1/codeq/events": http.StatusOK,
		"https://codeq.example.com/queue/ui/":             http.StatusOK,
		"https://codeq.example.com/queues":                http.StatusNotFound,
		"https://codeq.example.com/v1/codeq/events":       http.StatusNotFound,
		"https://other.example.com/queue/v1/codeq/events": http.StatusNotFound,
	} {
		answer := httptest.NewRecorder()
		host.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, url, http.NoBody), rules.ServeHTTP)
		if answer.Code != want {
			t.Errorf("%s is answered %d, not %d", url, answer.Code, want)
		}
	}
}

// A member that Traefik does not have is refused, so each member of the file is one that it has.
func TestTraefikRefusesAMemberThatItDoesNotHave(t *testing.T) {
	text, err := os.ReadFile(traefikFile)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "traefik.yaml")
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), "flushInterval", "flushEvery", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := readByTraefik(t, name); err == nil {
		t.Errorf("a file with the member flushEvery is read as %+v", c.HTTP)
	}
}
