package client

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"codeq/wire"
)

const defaultHost = "127.0.0.1"

// parseBase reads the address of a server as people write it: the scheme, a slash at the
// end and the path of the API are optional; a proxy may need a path in front of that.
func parseBase(text string) (*url.URL, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || wire.TextProblem(trimmed) != "" {
		return nil, badAddress(text)
	}
	if !strings.Contains(trimmed, "://") {
		trimmed = "http://" + trimmed
	}
	base, err := url.Parse(trimmed)
	if err != nil || base.RawQuery != "" || base.Fragment != "" || base.User != nil {
		return nil, badAddress(text)
	}
	if base.Scheme = plainScheme(base.Scheme); base.Scheme == "" {
		return nil, badAddress(text)
	}
	if strings.ContainsAny(base.Hostname(), "[]") { // brackets that do not hold the whole host
		return nil, badAddress(text)
	}
	if base.Hostname() == "" {
		if base.Port() == "" {
			return nil, badAddress(text)
		}
		base.Host = defaultHost + ":" + base.Port()
	}
	// The routes begin with apiPath, so an address that ends with it is that of the API.
	for base.Path = strings.TrimRight(base.Path, "/"); strings.HasSuffix(base.Path, apiPath); {
		base.Path = strings.TrimRight(strings.TrimSuffix(base.Path, apiPath), "/")
	}
	// Requests are made of its text. net/url is stricter about the colons of a
	// host under http than under ws.
	if base, err = url.Parse(base.String()); err != nil {
		return nil, badAddress(text)
	}
	return base, nil
}

func badAddress(text string) error {
	return fmt.Errorf("the server's address must look like http://%s:8080, got %q", defaultHost, text)
}

// hostPort is the host and port to dial for an address.
func hostPort(base *url.URL) string {
	port := base.Port() // empty also behind a colon that nothing follows
	switch {
	case port != "":
	case base.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(base.Hostname(), port)
}

// socketURL is an address with the scheme of WebSockets.
func socketURL(at *url.URL) string {
	return "ws" + strings.TrimPrefix(at.String(), "http")
}
