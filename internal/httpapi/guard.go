package httpapi

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"codeq/wire"
)

const (
	sessionPath = base + "/session"
	localName   = "localhost"
)

// GuardOptions are the names of the server and the pages that may send requests.
type GuardOptions struct {
	// Tokens says that every request needs a token.
	Tokens bool
	// Listen is the address of the listener, host:port.
	Listen string
	// PublicHosts are further names of the server, without a port.
	PublicHosts []string
	// AllowOrigins are the origins of pages on other servers that may send requests.
	AllowOrigins []string
}

// Guard refuses requests that a browser sends for a page of another site. A browser reaches
// servers inside a network that strangers do not reach, and a page can make it send forms
// and simple requests to every address. If the name of the page points to this server (DNS
// rebinding), the page can send any request.
//
// Without tokens, Host must be an IP address, which a rebound page does not have, or a name of
// the server, and the request of a page must come from a page of this server or of
// AllowOrigins. With tokens a foreign page fails because it has none: a browser adds no
// bearer token by itself, and asks the server before a page may add one. So only an upgrade
// is checked then, whose token comes later, and Host may be any.
//
// A browser does add a cookie by itself. So a request whose credential is the cookie of a page is
// checked as without tokens, AllowOrigins name only the HTTPS origin of the same host, and a
// change needs the header X-Codeq-UI. A request whose credential may be a client certificate, which
// a browser shows by itself too, must come from a page of this server, if from a page.
//
// Guard does not read X-Forwarded-* headers of proxies, because a page can send them. It does
// not change. Any goroutine.
type Guard struct {
	tokens  bool
	names   map[string]bool
	origins map[wire.Origin]bool
}

// NewGuard makes a guard. The error is a sentence about a value that is no host or no origin.
func NewGuard(o *GuardOptions) (*Guard, error) {
	g := &Guard{tokens: o.Tokens, names: map[string]bool{localName: true}, origins: map[wire.Origin]bool{}}
	if host, _, err := net.SplitHostPort(o.Listen); err == nil {
		if h, ok := wire.ParseHost(host); ok {
			g.names[h.Name] = true
		}
	}
	for _, text := range o.PublicHosts {
		h, ok := wire.ParseHost(text)
		if !ok || h.Port != "" {
			return nil, fmt.Errorf("a public host must be a name without a port, got %.80q", text)
		}
		g.names[h.Name] = true
	}
	for _, text := range o.AllowOrigins {
		origin, ok := wire.ParseOrigin(text)
		if !ok {
			return nil, fmt.Errorf("an allowed origin must look like https://app.example, got %.80q", text)
		}
		g.origins[origin] = true
	}
	return g, nil
}

// check checks a request before it is routed; nil allows it. One that another node has passed was
// checked there.
func (g *Guard) check(r *http.Request) *wire.Error {
	if wasPassed(r) {
		return nil
	}
	paged := g.tokens && byPage(r)
	byItself := paged || g.tokens && byCertificate(r)
	if g.tokens && !byItself && r.URL.Path != sessionPath && r.URL.Path != eventsPath {
		return nil
	}
	host, ok := wire.ParseHost(r.Host)
	if (paged || !g.tokens) && !(ok && (host.IsIP || g.names[host.Name])) {
		return badHost(r.Host)
	}
	var own, secure wire.Origin // "" is no origin
	if ok {
		own, secure = host.Origin(r.TLS != nil), host.Origin(true)
	}
	err := g.checkPage(r.Header, own, func(o wire.Origin) bool { return g.origins[o] && (!byItself || o == secure) })
	if err == nil && paged && r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get(headerPage) == "" {
		err = errors.New("a change with the cookie of a page needs the header X-Codeq-UI, which only pages of this server can send")
	}
	if err != nil {
		return wire.Refuse(wire.CodeForbiddenOrigin, err.Error())
	}
	return nil
}

// checkPage checks the headers by which a browser names the page. A page can set neither of
// them. allowed are the origins that may send requests beside own.
func (g *Guard) checkPage(h http.Header, own wire.Origin, allowed func(wire.Origin) bool) error {
	foreign := false
	for _, site := range h.Values("Sec-Fetch-Site") {
		foreign = foreign || site != "same-origin" && site != "none"
	}
	origins := h.Values("Origin")
	if len(origins) == 0 && !foreign {
		return nil
	}
	if len(origins) != 1 {
		return errors.New("a page of another site sent this request without saying where it is from: " +
			"only pages of this server may, and those of --allow-origin that send their Origin")
	}
	origin, ok := wire.ParseOrigin(origins[0])
	if ok && (allowed(origin) || origin == own && !foreign) {
		return nil
	}
	if !ok {
		return fmt.Errorf("the Origin is %.80q, which names no page: only pages of this server may send requests, "+
			"and those of --allow-origin", origins[0])
	}
	return fmt.Errorf("a page of another origin, %.80s, sent this request: if it may, start the server with --allow-origin %.80s",
		origin, origins[0])
}

func badHost(host string) *wire.Error {
	if h, ok := wire.ParseHost(host); ok {
		return wire.Refuse(wire.CodeForbiddenHost, fmt.Sprintf("Host is %.80q, which is no name of this server: "+
			"ask for it by its IP address or as localhost, or start it with --public-host %.80s", host, h.Name))
	}
	return wire.Refuse(wire.CodeForbiddenHost, fmt.Sprintf("Host must be an IP address, localhost, the name that the "+
		"server listens on or one of --public-host, with or without a port, got %.80q", host))
}
