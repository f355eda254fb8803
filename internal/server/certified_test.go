package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lxzan/gws"

	"codeq/test/blackbox"
	"codeq/wire"
)

// name adds an entry for the client certificates of a name.
func (f *tokenFile) name(san, subject, more string) {
	f.t.Helper()
	text, err := os.ReadFile(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	text = fmt.Appendf(text, "- {name: %q, certificate: %q, tenant: one, subject: %q, scopes: [worker, producer, \"codeq:admin\"], commands: [\"*\"]%s}\n",
		san, san, subject, more)
	if err := os.WriteFile(f.path, text, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// workerSAN is the name of a worker in a certificate, as SPIFFE writes it.
var workerSAN = url.URL{Scheme: "spiffe", Host: "example", Path: "/worker"}

// openCertified opens a server that knows tokens and the certificates of four names.
func openCertified(t *testing.T) (*secured, *tokenFile, string) {
	f := newTokenFile(t)
	token := f.addAll("one")
	f.name(workerSAN.String(), "worker", "")
	f.name("a.example", "a", "")
	f.name("b@example", "b", "")
	f.name("old.example", "old", ", expiresAt: 2020-01-01T00:00:00Z")
	return openSecured(t, f, tls.VersionTLS13), f, token
}

func dns(names ...string) *x509.Certificate { return &x509.Certificate{DNSNames: names} }

// A certificate of a known issuer stands for the entry with one of its names. Every other one is
// refused, by the handshake or as a credential, and a token counts before a certificate.
func TestAClientCertificateStandsForTheEntryOfItsName(t *testing.T) {
	x, _, token := openCertified(t)
	stranger := blackbox.NewAuthority(t)
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		by     *blackbox.Authority
		cert   *x509.Certificate
		bearer string
		want   string // of the answer, or of the error of the connection
	}{
		"a URI":                     {cert: &x509.Certificate{URIs: []*url.URL{&workerSAN}}, want: `"subject":"worker"`},
		"a name":                    {cert: dns("a.example"), want: `"subject":"a"`},
		"an address":                {cert: &x509.Certificate{EmailAddresses: []string{"b@example"}}, want: `"subject":"b"`},
		"a name twice":              {cert: dns("a.example", "a.example"), want: `"subject":"a"`},
		"a known and another name":  {cert: dns("x.example", "a.example"), want: `"subject":"a"`},
		"the names of two entries":  {cert: &x509.Certificate{DNSNames: []string{"a.example"}, EmailAddresses: []string{"b@example"}}, want: "has the names of two entries"},
		"an unknown name":           {cert: dns("x.example"), want: "has no name (SAN) that is the certificate of an entry"},
		"a name in other letters":   {cert: dns("A.example"), want: "has no name (SAN) that is the certificate of an entry"},
		"a name that begins so":     {cert: dns("a.example.evil"), want: "has no name (SAN) that is the certificate of an entry"},
		"no name":                   {cert: &x509.Certificate{}, want: "has no name (SAN) that is the certificate of an entry"},
		"an entry that has expired": {cert: dns("old.example"), want: "expired at 2020-01-01T00:00:00Z"},
		"an unknown name, a token":  {cert: dns("x.example"), bearer: token, want: `"subject":"s"`},
		"a known name, a token":     {cert: dns("a.example"), bearer: token, want: `"subject":"s"`},
		"a known name, a bad token": {cert: dns("a.example"), bearer: "cq_x", want: "does not know the token"},
		"no certificate":            {want: "this server requires a token"},
		"no certificate, a token":   {bearer: token, want: `"subject":"s"`},
		"another issuer":            {by: stranger, cert: dns("a.example"), want: "unknown certificate authority"},
		"an expired certificate": {cert: &x509.Certificate{DNSNames: []string{"a.example"}, NotBefore: time.Now().Add(-2 * day), NotAfter: time.Now().Add(-day)},
			want: "expired certificate"},
		"a certificate of tomorrow": {cert: &x509.Certificate{DNSNames: []string{"a.example"}, NotBefore: time.Now().Add(day), NotAfter: time.Now().Add(2 * day)},
			want: "expired certificate"},
	} {
		config := x.authority.Client("", "")
		if c.cert != nil {
			by := x.authority
			if c.by != nil {
				by = c.by
			}
			cert, key := by.Issue("client", c.cert)
			config.Certificates = x.authority.Client(cert, key).Certificates
			// It shows the certificate also to a server that asks for those of other issuers.
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &config.Certificates[0], nil }
		}
		x.speak(config)
		header := []string{}
		if c.bearer != "" {
			header = []string{"Authorization", "Bearer " + c.bearer}
		}
		_, body, err := x.over("GET", "/v1/codeq/login", "", header...)
		for range 20 {
			if err == nil || strings.Contains(err.Error(), "tls: ") {
				break
			}
			// The client noticed that the connection ended before it read the alert.
			_, body, err = x.over("GET", "/v1/codeq/login", "", header...)
		}
		if said := fmt.Sprint(body, err); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s, want %s", name, said, c.want)
		}
	}
	if said := x.log.text(); !strings.Contains(said, "TLS handshake error from 127.0.0.1") || !strings.Contains(said, "refused: the client certificate has no name") {
		t.Errorf("the log: %s", said)
	}
}

// certified is a client with the certificate of a name, until it ends.
func (x *secured) certified(san string, ends time.Time) *tls.Config {
	cert, key := x.authority.Issue("client", &x509.Certificate{DNSNames: []string{san}, NotBefore: time.Now().Add(-time.Hour), NotAfter: ends})
	return x.authority.Client(cert, key)
}

// enter opens a session over TLS with a hello.
func (x *secured) enter(config *tls.Config, hello string, origin string) (*socket, error) {
	x.t.Helper()
	k := &socket{t: x.t, frames: make(chan wire.ServerFrame, 1000), closed: make(chan struct{})}
	o := &gws.ClientOption{Addr: "wss://" + x.server.Addr() + "/v1/codeq/session", TlsConfig: config, RequestHeader: http.Header{}}
	if origin != "" {
		o.RequestHeader.Set("Origin", origin)
	}
	var err error
	if k.conn, _, err = gws.NewClient(k, o); err != nil {
		return nil, err
	}
	go k.conn.ReadLoop()
	x.t.Cleanup(k.hangUp)
	k.say(hello)
	return k, nil
}

// A session by certificate ends when its entry is withdrawn or changed; others go on. Its end is
// that of the certificate.
func TestASessionByCertificateEndsWithItsEntry(t *testing.T) {
	x, f, token := openCertified(t)
	open := func(config *tls.Config, hello string) *socket {
		t.Helper()
		k, err := x.enter(config, hello, "")
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	hour := time.Now().Add(time.Hour)
	known, byToken := open(x.certified("a.example", hour), `{"type":"hello"}`), open(x.certified("a.example", hour), `{"type":"hello","token":"`+token+`"}`)
	hear[*wire.Welcome](known)
	hear[*wire.Welcome](byToken)
	unknown := open(x.certified("x.example", hour), `{"type":"hello"}`)
	if e, ok := unknown.next().(*wire.ErrorFrame); !ok || e.Err.Code != wire.CodeUnauthenticated {
		t.Errorf("an unknown name: %+v", e)
	}
	unknown = open(x.certified("x.example", hour), `{"type":"hello","token":"`+token+`"}`)
	hear[*wire.Welcome](unknown)
	f.keep(token)
	if code := known.closeCode(); code != 4401 {
		t.Errorf("the session is closed with %d", code)
	}
	for _, k := range []*socket{byToken, unknown} {
		k.say(`{"type":"enqueue","ref":7,"command":"c","payload":1}`)
		hear[*wire.OK](k)
	}
	x.speak(x.certified("a.example", hour))
	if response, body, err := x.over("GET", "/v1/codeq/admin/queues", ""); err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the end of its entry: %+v %s %v", response, body, err)
	}
	if end := f.endOf(x, "b.example", hour); end != hour.UnixMilli()/1000*1000 {
		t.Errorf("it ends at %d, want %v", end, hour)
	}
}

// endOf is when the principal of a certificate ends, in Unix milliseconds.
func (f *tokenFile) endOf(x *secured, san string, ends time.Time) int64 {
	f.name(san, "late", "")
	x.server.ReloadTokens()
	x.speak(x.certified(san, ends))
	_, body, err := x.over("GET", "/v1/codeq/login", "")
	if err != nil {
		x.t.Fatal(err)
	}
	_, after, _ := strings.Cut(body, `"expiresAt":"`)
	text, _, _ := strings.Cut(after, `"`)
	ms, _ := wire.ParseTimeMs(text)
	return ms
}

// A browser shows a certificate by itself, so no page of another origin may use it, one of
// --allow-origin neither; and it is not turned into a cookie, which would be good without it.
func TestNoPageOfAnotherOriginUsesACertificate(t *testing.T) {
	x, _, token := openCertified(t)
	config := x.certified("a.example", time.Now().Add(time.Hour))
	x.speak(config)
	own := "https://" + x.server.Addr()
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{nil, http.StatusAccepted},
		{[]string{"Origin", own}, http.StatusAccepted},
		{[]string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, http.StatusAccepted},
		{[]string{"Origin", "https://app.example"}, http.StatusForbidden},
		{[]string{"Origin", "http://" + x.server.Addr()}, http.StatusForbidden},
		{[]string{"Origin", "null"}, http.StatusForbidden},
		{[]string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{[]string{"Origin", "https://app.example", "Authorization", "Bearer " + token}, http.StatusAccepted},
		{[]string{"Origin", "https://app.example", "Authorization", "Basic YTpi"}, http.StatusUnauthorized},
	} {
		if response, body, err := x.over("POST", "/v1/codeq/tasks", okTask, c.headers...); err != nil || response.StatusCode != c.status {
			t.Errorf("%v: %+v %s %v", c.headers, response, body, err)
		}
	}
	if _, err := x.enter(config, `{"type":"hello"}`, "https://app.example"); err == nil {
		t.Error("a page of another origin has a session")
	}
	if response, _, err := x.over("POST", "/v1/codeq/login", ""); err != nil || response.StatusCode != http.StatusUnauthorized || response.Header.Get("Set-Cookie") != "" {
		t.Errorf("a login: %+v %v", response, err)
	}
}
