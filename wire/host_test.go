package wire

import (
	"strings"
	"testing"
)

func TestN05HostsAreReadInEverySpelling(t *testing.T) {
	for text, want := range map[string]Host{
		"localhost":          {Name: "localhost"},
		"LocalHost":          {Name: "localhost"},
		"localhost.":         {Name: "localhost"},
		"localhost:8080":     {Name: "localhost", Port: "8080"},
		"localhost.:80":      {Name: "localhost", Port: "80"},
		"localhost:":         {Name: "localhost"},
		"queue_1.a-b.test":   {Name: "queue_1.a-b.test"},
		"xn--bcher-kva.test": {Name: "xn--bcher-kva.test"},
		"127.0.0.1":          {Name: "127.0.0.1", IsIP: true},
		"127.0.0.1:0":        {Name: "127.0.0.1", Port: "0", IsIP: true},
		"10.1.2.3:65535":     {Name: "10.1.2.3", Port: "65535", IsIP: true},
		"[::1]":              {Name: "::1", IsIP: true},
		"[::1]:8080":         {Name: "::1", Port: "8080", IsIP: true},
		"[0:0:0::0:1]:80":    {Name: "::1", Port: "80", IsIP: true},
		"[FE80::1]":          {Name: "fe80::1", IsIP: true},
		"[fe80::1%25eth0]":   {Name: "fe80::1%25eth0", IsIP: true},
		"[::ffff:127.0.0.1]": {Name: "::ffff:127.0.0.1", IsIP: true},
		// Spellings of an address that a browser makes plain before it asks.
		"127.1":      {Name: "127.1"},
		"2130706433": {Name: "2130706433"},
		"127.0.0.01": {Name: "127.0.0.01"},
	} {
		if got, ok := ParseHost(text); !ok || got != want {
			t.Errorf("%q is read as %+v, %t, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", ":", ":80", ".", "..", ".localhost", "local..host", "localhost..", "127.0.0.1.", " localhost", "localhost ", "local host", "localhost\r\n",
		"localhost\x00", "user@localhost", "localhost/", "localhost:80:80", "localhost:+80", "localhost:080", "localhost:65536",
		"localhost:http", "localhost: 80", "::1", "::1:80", "[::1", "::1]", "[]", "[]:80", "[localhost]", "[127.0.0.1]", "[::1]80", "[::1]x:80",
		"[::1].evil.example", "bücher.test", "localhoſt", "localhost,evil.example", "a%2eb", "\ufefflocalhost", strings.Repeat("a", maxHostBytes+1),
	} {
		if got, ok := ParseHost(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestN05OriginsAreReadInEverySpelling(t *testing.T) {
	for text, want := range map[string]Origin{
		"http://localhost":       "http://localhost:80",
		"HTTP://LOCALHOST":       "http://localhost:80",
		"https://App.Example":    "https://app.example:443",
		"https://app.example:80": "https://app.example:80",
		"http://[::1]:8080":      "http://[::1]:8080",
		"http://127.0.0.1":       "http://127.0.0.1:80",
	} {
		if got, ok := ParseOrigin(text); !ok || got != want {
			t.Errorf("%q is read as %q, %t, want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "null", "NULL", "localhost", "//localhost", "http:localhost", "http:/localhost", "http://", "http:///", "http://localhost/",
		"http://localhost/x", "http://localhost?", "http://localhost#", "http://user@localhost", "http://user:pass@localhost", "ws://localhost",
		"file://", "ftp://localhost", "chrome-extension://abc", " http://localhost", "http://localhost ", "http://a http://b", "http://a, http://b",
		"http://bücher.test", "https://evil.example:443.localhost", "http://localhost:8080:80", "https://*.example", "*",
	} {
		if got, ok := ParseOrigin(text); ok {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}

// What is read comes out in one spelling, which is read as the same again.
func FuzzParseHost(f *testing.F) {
	for _, seed := range []string{"localhost", "LOCALHOST.:80", "[::1%25x]:80", "127.0.0.1:", "a..b", "[", "http://a", "https://[::1]:443"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if h, ok := ParseHost(text); ok {
			own := h.Origin(true)
			if again, ok := ParseOrigin(string(own)); !ok || again != own {
				t.Fatalf("%q is read as %q, which is read as %q, %t", text, own, again, ok)
			}
		}
		if o, ok := ParseOrigin(text); ok {
			if again, ok := ParseOrigin(string(o)); !ok || again != o {
				t.Fatalf("%q is read as %q, and that as %q, %t", text, o, again, ok)
			}
		}
	})
}
