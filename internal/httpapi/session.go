package httpapi

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"codeq/internal/auth"
	"codeq/wire"
)

// Names of the headers of an upgrade, as net/http writes them.
const (
	headerVersion = "Sec-Websocket-Version"
	// wsVersion is the only version of WebSocket.
	wsVersion = "13"
	// wsKeyBytes is the length of the random key of an upgrade, decoded.
	wsKeyBytes = 16
)

// openSession checks an upgrade and makes its connection a session. A request without a
// credential is upgraded; the credential then comes in the hello.
func (a *api) openSession(c *call) answer {
	if refusal := checkUpgrade(c.r, "a session", wire.Subprotocol); refusal != nil {
		c.w.Header().Set(headerVersion, wsVersion)
		return refuse(refusal)
	}
	who, refusal := a.principalOf(c)
	if refusal == nil {
		refusal = a.o.Sessions.Upgrade(c.w, c.r, who)
	}
	if refusal != nil {
		return refuse(refusal)
	}
	return answer{handedOver: true}
}

// principalOf is the principal of the headers of an upgrade, or of the certificate of its
// connection; nil without one: the credential then comes in the hello.
func (a *api) principalOf(c *call) (*auth.Principal, *wire.Error) {
	if byCertificate(c.r) && !byPage(c.r) {
		who, refusal := a.authenticate(c)
		if refusal != nil && refusal.Code == wire.CodeUnauthenticated {
			refused := refuse(refusal)
			a.report(c, &refused)
			return nil, nil
		}
		return who, refusal
	}
	if c.r.Header.Get("Authorization") == "" {
		who, refusal := a.pageOf(c.r)
		if refusal != nil {
			return nil, refusal
		}
		return acting(c, who)
	}
	if _, ok := bearerOf(c.r); !ok {
		c.w.Header().Set("WWW-Authenticate", "Bearer")
		return nil, wire.Refuse(wire.CodeUnauthenticated, "the Authorization header must be: Bearer, a space, a token")
	}
	return a.authenticate(c)
}

// checkUpgrade checks the headers of an upgrade by the rules of RFC 6455, and the subprotocol.
// what begins the sentences.
func checkUpgrade(r *http.Request, what, protocol string) *wire.Error {
	bad := func(sentence string) *wire.Error { return wire.Refuse(wire.CodeInvalidArgument, sentence) }
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 {
		return bad(what + " is a WebSocket over HTTP/1.1, got " + r.Proto)
	}
	if !hasToken(r.Header, "Connection", "Upgrade") || !hasToken(r.Header, "Upgrade", "websocket") {
		return bad(what + " is a WebSocket: send Connection: Upgrade and Upgrade: websocket")
	}
	if r.Header.Get(headerVersion) != wsVersion {
		return bad("Sec-WebSocket-Version must be " + wsVersion)
	}
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-Websocket-Key"))
	if err != nil || len(key) != wsKeyBytes {
		return bad("Sec-WebSocket-Key must be 16 random bytes in base64")
	}
	if offered := tokens(r.Header, "Sec-Websocket-Protocol"); len(offered) > 0 && !slices.Contains(offered, protocol) {
		return bad("the subprotocol must be " + protocol + " or left out")
	}
	return nil
}

// tokens are the values of a header that is a list, in one line or several.
func tokens(h http.Header, name string) []string {
	var all []string
	for _, line := range h.Values(name) {
		for token := range strings.SplitSeq(line, ",") {
			if token = strings.TrimSpace(token); token != "" {
				all = append(all, token)
			}
		}
	}
	return all
}

func hasToken(h http.Header, name, token string) bool {
	return slices.ContainsFunc(tokens(h, name), func(s string) bool { return strings.EqualFold(s, token) })
}
