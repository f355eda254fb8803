package identity

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"codeq/internal/auth"
	"codeq/wire"
)

const (
	// maxTokenBytes is the most a token may have.
	maxTokenBytes = 16 << 10
	// leeway is how much the clocks of this server and of an issuer may differ.
	leeway = 30 * time.Second
)

// verified is a token whose signature was good, and the source of its principal.
type verified struct {
	issuer    *issuer
	sum       digest // of the key
	principal *auth.Principal
}

// Current implements auth.Source: nil once the issuer has withdrawn the key, or its provider has
// left the file.
func (v *verified) Current() *auth.Principal {
	if set := v.issuer.set.Load(); v.issuer.gone.Load() || set == nil || !set.has(v.sum) {
		return nil
	}
	return v.principal
}

// isJWT reports whether a token has the form of a JSON web token.
func isJWT(token string) bool {
	return strings.HasPrefix(token, "ey") && strings.Count(token, ".") == 2
}

// refused is unauthenticated with a sentence about the token.
func refused(sentence string) *wire.Error {
	return wire.Refuse(wire.CodeUnauthenticated, "the token "+sentence)
}

// unavailable says that a provider cannot be asked about a token.
func unavailable(sentence string) *wire.Error {
	e := wire.Refuse(wire.CodeAuthUnavailable, sentence+"; keep the token, and try again")
	e.RetryAfterSeconds = 2
	return e
}

// verify finds the principal of a JSON web token. What costs nothing comes first, so that a token
// that cannot be good causes no request to an issuer.
func (p *Providers) verify(ctx context.Context, token string, d digest) (*auth.Principal, *wire.Error) {
	all := jwt.MapClaims{}
	parsed, parts, err := looseParser.ParseUnverified(token, all)
	if err != nil {
		return nil, refused("is no JSON web token that can be read, or its algorithm is none that this server knows")
	}
	for _, part := range parts[:2] {
		if err := checkOnce(unBase64(part)); err != nil {
			return nil, refused("can not be good: its header or its claims are " + err.Error())
		}
	}
	name, _ := all["iss"].(string)
	i := p.table.Load().issuers[name]
	if i == nil {
		return nil, refused("is of an issuer that this server does not know")
	}
	if _, critical := parsed.Header["crit"]; critical || !slices.Contains(i.algs, parsed.Method.Alg()) {
		return nil, refused("is signed in a way that this server does not take from its issuer: algorithms are " + strings.Join(i.algs, ", "))
	}
	if refusal := i.checkTimes(all); refusal != nil {
		return nil, refusal
	}
	id, isText := parsed.Header["kid"].(string)
	if _, there := parsed.Header["kid"]; there && !isText {
		return nil, refused("has a kid that is no text")
	}
	k, err := i.keyFor(ctx, id, parsed.Method.Alg())
	switch {
	case errors.Is(err, errNoKeys):
		return nil, unavailable("the token can not be checked: " + err.Error())
	case err != nil:
		return nil, refused("can not be checked: " + err.Error())
	}
	// The library reads the token again, so no step of its own checks is left out.
	if _, err := i.parser.ParseWithClaims(token, jwt.MapClaims{}, func(*jwt.Token) (any, error) { return k.public, nil }); err != nil {
		return nil, refused("has a signature that is not that of its issuer")
	}
	who, refusal := i.principal(claims(all))
	if refusal != nil {
		return nil, refusal
	}
	v := &verified{issuer: i, sum: k.sum, principal: who}
	who.Source = v
	p.verified.put(d, v)
	return who, nil
}

// looseParser reads the parts of a token and checks nothing.
var looseParser = jwt.NewParser(jwt.WithStrictDecoding())

// newParser makes the parser of an issuer, which checks everything.
func (c *config) newParser(nowMs func() int64) *jwt.Parser {
	return jwt.NewParser(jwt.WithStrictDecoding(), jwt.WithValidMethods(c.algs), jwt.WithIssuer(c.issuer), jwt.WithAudience(c.audience...),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(leeway),
		jwt.WithTimeFunc(func() time.Time { return time.UnixMilli(nowMs()) }))
}

// checkTimes checks audience and times, whose types the library checks too.
func (i *issuer) checkTimes(all jwt.MapClaims) *wire.Error {
	for _, name := range []string{"exp", "nbf", "iat"} {
		raw, there := all[name]
		if seconds, isNumber := raw.(float64); there && (!isNumber || seconds < 0 || seconds > latestEnd) {
			return refused("has a claim " + name + " that is no time in seconds")
		}
	}
	audience, err := all.GetAudience()
	if err != nil || !i.isFor(audience) {
		return refused(wrongAudience)
	}
	nowMs := i.nowMs()
	latest := float64(nowMs+leeway.Milliseconds()) / 1000
	end, _ := all["exp"].(float64)
	from, _ := all["nbf"].(float64)
	made, _ := all["iat"].(float64)
	switch {
	case end == 0:
		return refused("never ends: it needs the claim exp")
	case int64(end)*1000 <= nowMs:
		return expired(int64(end) * 1000)
	case from > latest:
		return refused("is good only from " + clock(int64(from)*1000) + " on")
	case made > latest:
		return refused("was made in the future, at " + clock(int64(made)*1000))
	}
	return nil
}

const wrongAudience = "is not for this server: its audience is another one"

// isFor reports whether an audience has one of the provider.
func (c *config) isFor(audience []string) bool {
	return slices.ContainsFunc(audience, func(one string) bool { return slices.Contains(c.audience, one) })
}

func expired(endMs int64) *wire.Error {
	return refused("expired at " + clock(endMs) + "; ask for a new one")
}

func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
