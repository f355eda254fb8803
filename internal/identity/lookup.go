package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"codeq/internal/auth"
	"codeq/internal/yamlfile"
	"codeq/wire"
)

const (
	// askFor is how long a provider may take for an answer about a token.
	askFor = 2 * time.Second
	// activeFor and inactiveFor are how long an answer counts.
	activeFor      = 60 * time.Second
	inactiveFor    = 5 * time.Second
	maxAnswerBytes = 64 << 10
	// askAtOnce bounds the requests to providers at a time, of all tokens.
	askAtOnce = 32
)

// lookup is a token about which a provider is asked, and the source of its principal.
type lookup struct {
	asked *provider

	mu sync.Mutex
	// token is there while it is active, to ask again about it.
	token string
	// asking is closed when the request that runs has ended; nil while none runs.
	asking chan struct{}
	// who is what the last answer said: nil, with a refusal, for a token that is not good.
	who     *auth.Principal
	refusal *wire.Error
	goodMs  int64 // until when that answer counts
	// held: a session has looked at it since the last round.
	held bool
}

// Current implements auth.Source.
func (l *lookup) Current() *auth.Principal {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked.gone.Load() {
		return nil
	}
	if !l.held {
		l.held = true
		l.asked.owner.hold(l)
	}
	return l.who
}

// lookUp finds the principal of an opaque token.
func (p *Providers) lookUp(ctx context.Context, by *provider, token string, d digest) (*auth.Principal, *wire.Error) {
	l := p.lookups.get(d)
	if l == nil || l.asked != by {
		p.mu.Lock()
		if l = p.lookups.get(d); l == nil || l.asked != by {
			l = &lookup{asked: by}
			p.lookups.put(d, l)
		}
		p.mu.Unlock()
	}
	if who, refusal, known := l.known(); known {
		return who, refusal
	}
	select {
	case <-l.askSoon(token):
	case <-ctx.Done():
		return nil, unavailable("the request ended before its token was checked")
	}
	if who, refusal, known := l.known(); known {
		return who, refusal
	}
	return nil, unavailable("the token can not be checked: the provider " + by.name + " gives no answer now")
}

// known is what the last answer said, if it still counts.
func (l *lookup) known() (*auth.Principal, *wire.Error, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	nowMs := l.asked.nowMs()
	if nowMs >= l.goodMs {
		return nil, nil, false
	}
	if l.who != nil && l.who.ExpiredAt(nowMs) {
		return nil, expired(l.who.ExpiresAtMs), true
	}
	return l.who, l.refusal, true
}

// askSoon begins a request unless one runs. The channel is closed at its end.
func (l *lookup) askSoon(token string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking == nil {
		done := make(chan struct{})
		l.asking = done
		l.asked.owner.running.Go(func() {
			who, refusal, err := l.asked.ask(token)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.answered(token, who, refusal, err)
			l.asking = nil
			close(done)
		})
	}
	return l.asking
}

// answered notes an answer. Without one, what was known stays for the sessions that hold it.
func (l *lookup) answered(token string, who *auth.Principal, refusal *wire.Error, err error) {
	p := l.asked
	nowMs := p.nowMs()
	p.told(err)
	switch {
	case err != nil:
		return
	case who != nil:
		who.Source, l.token = l, token
		l.goodMs = nowMs + activeFor.Milliseconds()
		if who.ExpiresAtMs != 0 {
			l.goodMs = min(l.goodMs, who.ExpiresAtMs)
		}
	default:
		l.token = ""
		l.goodMs = nowMs + inactiveFor.Milliseconds()
	}
	if who != nil && l.who != nil && who.SameRights(l.who) && who.ExpiresAtMs == l.who.ExpiresAtMs {
		return // nothing has changed for those who hold it
	}
	l.who, l.refusal = who, refusal
}

// ask asks the provider (RFC 7662). err says that there is no answer.
func (p *provider) ask(token string) (*auth.Principal, *wire.Error, error) {
	p.owner.asks <- struct{}{}
	defer func() { <-p.owner.asks }()
	secret, err := yamlfile.Read(p.secret)
	if err != nil {
		return nil, nil, errors.New("the file of its secret cannot be read")
	}
	ctx, cancel := context.WithTimeout(p.owner.ctx, askFor)
	defer cancel()
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.askURL, strings.NewReader(form))
	if err != nil {
		return nil, nil, fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	r.SetBasicAuth(url.QueryEscape(p.clientID), url.QueryEscape(string(bytes.TrimSpace(secret))))
	text, err := p.owner.answer(r, maxAnswerBytes)
	if err != nil {
		return nil, nil, err
	}
	all := claims{}
	if checkOnce(text) != nil || json.Unmarshal(text, &all) != nil {
		return nil, nil, errors.New("its answer is no JSON object, or has a name twice")
	}
	active, isBool := all["active"].(bool)
	if !isBool {
		return nil, nil, errors.New("its answer does not say whether the token is active")
	}
	if !active {
		return nil, refused("is not active: its provider does not know it, or it was revoked"), nil
	}
	who, refusal := p.active(all)
	return who, refusal, nil
}

// active is the principal of an active token.
func (p *provider) active(all claims) (*auth.Principal, *wire.Error) {
	if list, _ := words(all["aud"]); p.audience != nil && !p.isFor(list) {
		return nil, refused(wrongAudience)
	}
	if raw, there := all["exp"]; there {
		if end, isNumber := raw.(float64); !isNumber || end < 1 || int64(min(end, latestEnd))*1000 <= p.nowMs() {
			return nil, refused("has expired; ask for a new one")
		}
	}
	return p.principal(all)
}
