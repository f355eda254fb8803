package blackbox

import (
	"testing"

	"codeq/internal/chaos"
)

// Proxy is a bad network between clients and a server; see package chaos.
type Proxy = chaos.Proxy

// The directions through a proxy.
const (
	Up   = chaos.Up
	Down = chaos.Down
)

// NewProxy starts a proxy to the server at host:port. It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := chaos.Start(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}
