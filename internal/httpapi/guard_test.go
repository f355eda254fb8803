package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rs/zerolog"

	"codeq/wire"
)

// asked is the answer of a server that starts to somebody who asks for a host.
func asked(t *testing.T, listen, host string) got {
	t.Helper()
	guard, err := NewGuard(&GuardOptions{Listen: listen})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, api: NewStarting(zerolog.Nop(), "1.2.3", guard, nil).(*api)}
	r := httptest.NewRequest("GET", "/healthz", http.NoBody)
	r.Host = host
	return b.send(r)
}

// The name that is listened on is a name of the server, and of no other; the
// check also stands in front of a server that starts.
func TestN05TheNameThatIsListenedOnIsTheServers(t *testing.T) {
	for _, listen := range []string{"Codeq.Local:8080", "codeq.local.:0"} {
		if g := asked(t, listen, "CODEQ.local:1"); g.status != http.StatusOK {
			t.Errorf("listening on %s: %d %s", listen, g.status, g.body)
		}
	}
	for _, listen := range []string{":8080", "0.0.0.0:8080", "[::]:8080", "other.local:80", "local:80"} {
		asked(t, listen, "codeq.local").mustRefuse(t, wire.CodeForbiddenHost)
	}
}

func TestN05AGuardIsNotMadeOfWhatIsNoHostAndNoPage(t *testing.T) {
	for _, host := range []string{"", "http://a", "a:80", "a b", "*.a"} {
		if _, err := NewGuard(&GuardOptions{PublicHosts: []string{host}}); err == nil {
			t.Errorf("host %q is taken", host)
		}
	}
	for _, origin := range []string{"", "a", "null", "*", "https://a/"} {
		if _, err := NewGuard(&GuardOptions{AllowOrigins: []string{origin}}); err == nil {
			t.Errorf("origin %q is taken", origin)
		}
	}
}
