package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxHops is how many redirects one request follows.
const maxHops = 5

// sentOn is the address to which an answer redirects its request; nil if the answer is no
// redirect. Requests, and the requests that open sessions, follow 307 and 308 alone, which
// keep the method and the body, never from https to http, and at most maxHops times. The
// error of any other redirect names the new address: a client that followed it with a GET
// would report a change as done that it never asked for.
func (c *Client) sentOn(from *url.URL, response *http.Response, path string, hops int) (*url.URL, error) {
	status := response.StatusCode
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	to, err := from.Parse(response.Header.Get("Location"))
	if err == nil {
		to.Scheme, to.User, to.Fragment = plainScheme(to.Scheme), nil, ""
	}
	said := fmt.Sprintf("%s answered %d %s", baseOf(from, path), status, http.StatusText(status))
	switch {
	case err != nil, response.Header.Get("Location") == "", to.Scheme == "", to.Host == "":
		err = fmt.Errorf("%s without the address of a server", said)
	case status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect:
		err = fmt.Errorf("%s: the server has moved to %s: give that address (--url)", said, baseOf(to, path))
	case from.Scheme == "https" && to.Scheme == "http":
		err = fmt.Errorf("%s and names %s, which is not encrypted: the request was not sent there", said, baseOf(to, path))
	case hops == maxHops:
		err = fmt.Errorf("%s and names %s, after %d redirects: give the address of the server itself (--url)", said, baseOf(to, path), hops)
	default:
		return to, nil
	}
	return nil, &failed{error: err, how: moved}
}

// plainScheme is http or https for the scheme of an address, "" for any other.
func plainScheme(scheme string) string {
	switch scheme {
	case "http", "ws":
		return "http"
	case "https", "wss":
		return "https"
	}
	return ""
}

// baseOf is the address of the server in the address of a request.
func baseOf(at *url.URL, path string) string { return strings.TrimSuffix(at.String(), path) }

// mayKnowToken reports whether the token may be sent to an address: it has the
// host and the port of the server's, or of one of its nodes.
func (c *Client) mayKnowToken(at *url.URL) bool {
	return slices.ContainsFunc(c.nodes.all, func(one *url.URL) bool { return strings.EqualFold(hostPort(one), hostPort(at)) })
}

// authorize adds the token and the tenant to a request, if there are any and they may go there. The
// error is that of WithTokens.
func (c *Client) authorize(ctx context.Context, header http.Header, at *url.URL) error {
	if !c.mayKnowToken(at) {
		return nil
	}
	token := c.token
	if c.tokens != nil {
		said, err := c.tokens(ctx)
		if err != nil {
			return &failed{error: fmt.Errorf("nothing was sent to %s, because there is no token: %w", at.Host, err), how: unreached}
		}
		token = strings.TrimSpace(said)
	}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	if c.tenant != "" {
		header.Set("X-Codeq-Tenant", c.tenant)
	}
	return nil
}
