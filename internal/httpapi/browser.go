package httpapi

import (
	"net/http"

	"codeq/internal/auth"
	"codeq/wire"
)

// What browsers are told with every answer, and pages of other servers with those that they may
// read. Nobody changes the lists; a handler that says else sets another one.
var (
	always = map[string][]string{
		"Cache-Control":                {"no-store"},
		"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'"},
		"Cross-Origin-Resource-Policy": {"same-origin"},
		"Referrer-Policy":              {"no-referrer"},
		"X-Content-Type-Options":       {"nosniff"},
	}
	onlyTLS = []string{"max-age=31536000"}

	varyOrigin = []string{"Origin"}
	exposed    = []string{"Idempotent-Replayed, Location, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, " + headerLeader + ", " + headerReadAge + ", " + headerRequestID}
	mayBeAsked = []string{"Authorization, Content-Type, Last-Event-ID, Prefer, Traceparent, Tracestate, " + headerRead + ", " + auth.HeaderTenant + ", " + headerRequestID}
	askedFor   = []string{"600"} // seconds
)

// addAlways adds the headers of every answer. Over TLS a browser shall come back by TLS, but to a
// name of this server alone: localhost is also that of other servers.
func addAlways(h http.Header, r *http.Request) {
	for name, value := range always {
		h[name] = value
	}
	if r.TLS == nil {
		return
	}
	if host, ok := wire.ParseHost(r.Host); ok && !host.IsIP && host.Name != localName {
		h["Strict-Transport-Security"] = onlyTLS
	}
}

// isShared reports whether pages of AllowOrigins may use the verb and read its answer: it posts
// tasks, or reads.
func (v *verb) isShared(pattern string) bool {
	reads := v.method == http.MethodGet && (v.scope == auth.ScopeView || v.scope == "" && !v.public)
	return v.scope == auth.ScopeProduce || reads || pattern == eventsPath
}

// share lets the page that sent a request read the answer, if it is one of AllowOrigins. It never
// allows credentials that a browser adds by itself.
func (a *api) share(c *call) (shared bool) {
	if len(a.o.Guard.origins) == 0 {
		return false
	}
	h := c.w.Header()
	h["Vary"] = varyOrigin
	named := c.r.Header["Origin"]
	if len(named) != 1 {
		return false
	}
	origin, ok := wire.ParseOrigin(named[0])
	if !ok || !a.o.Guard.origins[origin] {
		return false
	}
	h["Access-Control-Allow-Origin"], h["Access-Control-Expose-Headers"] = named, exposed
	return true
}

// preflight answers a browser that asks whether a page of another server may send a request.
func (a *api) preflight(c *call, res *resource) (ans answer, isOne bool) {
	asked := c.r.Header.Get("Access-Control-Request-Method")
	if c.r.Method != http.MethodOptions || asked == "" {
		return answer{}, false
	}
	if v := res.find(asked); v == nil || !v.isShared(res.pattern) || !a.share(c) {
		return answer{}, false
	}
	h := c.w.Header()
	h["Access-Control-Allow-Methods"], h["Access-Control-Allow-Headers"] = []string{asked}, mayBeAsked
	h["Access-Control-Max-Age"] = askedFor
	return answer{status: http.StatusNoContent}, true
}
