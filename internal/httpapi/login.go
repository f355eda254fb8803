package httpapi

import (
	"net/http"
	"strings"

	"codeq/internal/auth"
	"codeq/wire"
)

const (
	loginPath = base + "/login"
	// headerPage is what the pages of this server send with each change. A page of another
	// origin cannot send it without asking first, and the server permits none.
	headerPage = "X-Codeq-Ui"
)

// byPage reports whether the credential of a request is the cookie of a page. A request with the
// header Authorization has its credential there.
func byPage(r *http.Request) bool {
	if r.Header.Get("Authorization") != "" {
		return false
	}
	for _, line := range r.Header["Cookie"] {
		if strings.Contains(line, auth.PageCookie) {
			return true
		}
	}
	return false
}

// byCertificate reports whether the credential of a request may be the client certificate of its
// connection, which a browser shows by itself, like a cookie.
func byCertificate(r *http.Request) bool {
	return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && r.Header.Get("Authorization") == ""
}

// authenticate finds the principal of a request, by its bearer token, the cookie of a page, or the
// certificate of its connection.
func (a *api) authenticate(c *call) (who *auth.Principal, refusal *wire.Error) {
	credential, _ := bearerOf(c.r)
	who, refusal = a.pageOf(c.r)
	if who == nil && refusal == nil {
		ctx := c.r.Context()
		if byCertificate(c.r) {
			ctx = auth.WithCertificate(ctx, c.r.TLS.VerifiedChains[0][0])
		}
		who, refusal = a.o.Auth.Authenticate(ctx, credential)
	}
	if refusal != nil {
		if refusal.Code == wire.CodeUnauthenticated {
			c.w.Header().Set("WWW-Authenticate", "Bearer")
		}
		return nil, refusal
	}
	return acting(c, who)
}

// acting is a principal, nil for none yet, while it acts for the tenant that the request names.
func acting(c *call, who *auth.Principal) (*auth.Principal, *wire.Error) {
	tenant, refusal := auth.NamedTenant(c.r.Header)
	if refusal != nil {
		return nil, refusal
	}
	if who == nil || tenant == "" {
		return who, nil
	}
	c.own, c.who = who.Tenant, who
	return who.For(tenant)
}

// pageOf is the principal of the cookie of a page, nil if the request has none.
func (a *api) pageOf(r *http.Request) (*auth.Principal, *wire.Error) {
	if a.o.Logins == nil || !byPage(r) {
		return nil, nil
	}
	cookie, err := r.Cookie(a.o.Logins.Name)
	if err != nil {
		return nil, nil // it is that of another server on this host
	}
	return a.o.Logins.Authenticate(r.Context(), cookie.Value)
}

// getLogin says who asks.
func (a *api) getLogin(c *call) answer {
	return okay(a.appendLogin(c))
}

// postLogin gives a browser a cookie for the bearer token of the request.
func (a *api) postLogin(c *call, _ struct{}) answer {
	if a.o.Logins == nil {
		return refuse(wire.Refuse(wire.CodeInvalidArgument, "this server asks for no token: every page is logged in"))
	}
	if byPage(c.r) || byCertificate(c.r) {
		// A cookie would otherwise live for ever, or be good without its certificate.
		return refuse(wire.Refuse(wire.CodeUnauthenticated, "a login needs the token itself: send it as Authorization: Bearer TOKEN"))
	}
	credential, _ := bearerOf(c.r)
	value, goodFor, refusal := a.o.Logins.Cookie(c.who, strings.TrimSpace(credential))
	if refusal != nil {
		return refuse(refusal)
	}
	a.setCookie(c, value, int(goodFor.Seconds()))
	return a.getLogin(c)
}

// deleteLogin makes a browser forget its cookie.
func (a *api) deleteLogin(c *call, _ struct{}) answer {
	if a.o.Logins != nil {
		a.setCookie(c, "", -1)
	}
	return answer{status: http.StatusNoContent}
}

// setCookie sets the cookie of pages. It has no path, so the browser sends it to what lies beside
// the login, also behind a proxy that adds a prefix. A page that came over HTTPS, from a proxy
// then, has a cookie that is never sent over HTTP.
func (a *api) setCookie(c *call, value string, maxAge int) {
	http.SetCookie(c.w, &http.Cookie{
		Name: a.o.Logins.Name, Value: value, MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: c.r.TLS != nil || strings.HasPrefix(c.r.Header.Get("Origin"), "https://"),
	})
}

// appendLogin is who the client is, and what the client may do.
func (a *api) appendLogin(c *call) []byte {
	body := []byte(`{"authentication":`)
	scopes := c.who.Scopes
	if a.o.Logins == nil {
		body, scopes = append(body, `false`...), auth.Scopes()
	} else {
		body = append(body, `true`...)
	}
	body = wire.AppendQuoted(append(body, `,"tenantId":`...), c.who.Tenant)
	body = wire.AppendQuoted(append(body, `,"subject":`...), c.who.Subject)
	body = appendList(append(body, `,"scopes":[`...), len(scopes), func(dst []byte, i int) []byte {
		return wire.AppendQuoted(dst, scopes[i])
	})
	body = append(body, ']')
	if c.who.ExpiresAtMs != 0 {
		body = wire.AppendTimeMs(append(body, `,"expiresAt":`...), c.who.ExpiresAtMs)
	}
	return append(body, '}')
}
