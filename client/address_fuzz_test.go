package client

import (
	"net"
	"strings"
	"testing"
)

// FuzzParseBase: an address that is taken can be dialled and read again, and
// means the same then.
func FuzzParseBase(f *testing.F) {
	for _, text := range []string{"", " ", "127.0.0.1:8080", ":8080", "https://codeq.example/queue/", "ws://[::1]:1", "wss://h",
		"http://", "ftp://h", "http://u:p@h", "http://h?a=b", "http://h#f", "h:port", "http://h:99999", "\x00", "http://h/v1/codeq//v1/codeq/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		base, err := parseBase(text)
		if err != nil {
			return
		}
		if base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || strings.HasSuffix(base.Path, "/") {
			t.Fatalf("%q is the address %#v", text, base)
		}
		if host, port, err := net.SplitHostPort(hostPort(base)); err != nil || host == "" || port == "" {
			t.Errorf("%q is dialled at %q (%v)", text, hostPort(base), err)
		}
		again, err := parseBase(base.String())
		if err != nil || again.String() != base.String() {
			t.Errorf("%q became %q and then %v (%v)", text, base, again, err)
		}
	})
}
