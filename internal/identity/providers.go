package identity

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/rs/zerolog"

	"codeq/internal/auth"
	"codeq/internal/meter"
	"codeq/internal/yamlfile"
	"codeq/wire"
)

// Options are the options of Open.
type Options struct {
	// File is the file of providers.
	File string
	// Tokens are those of the token file; nil is none.
	Tokens *auth.Tokens
	Log    zerolog.Logger
	// NowMs is the system clock in Unix milliseconds; nil is that of the machine.
	NowMs func() int64
}

// Providers is the auth.Authenticator over a file of providers, and over the token file.
type Providers struct {
	o    Options
	http *http.Client
	// ctx ends with Stop. rounds is the goroutine of Start, running are those of requests.
	ctx     context.Context
	cancel  context.CancelFunc
	rounds  sync.WaitGroup
	running sync.WaitGroup
	asks    chan struct{}

	reload   sync.Mutex // held while the file is read
	table    atomic.Pointer[table]
	verified cache[verified]
	lookups  cache[lookup]

	mu   sync.Mutex
	held map[*lookup]bool
}

// table is one version of the file. It does not change.
type table struct {
	text    digest
	all     []*provider
	issuers map[string]*issuer
	askers  []*provider
}

// provider is one provider of the file.
type provider struct {
	config
	owner  *Providers
	parser *jwt.Parser
	issuer *issuer // nil for one that is asked
	// gone: it is in the file no more.
	gone atomic.Bool
	// reads and failures count the answers of the provider and their absence.
	reads, failures atomic.Int64
	mu              sync.Mutex
	failure         string // the last that was logged
}

func (p *provider) nowMs() int64 { return p.owner.o.NowMs() }

// Open reads a file of providers. The error names file and line.
func Open(o Options) (*Providers, error) {
	if o.NowMs == nil {
		o.NowMs = func() int64 { return time.Now().UnixMilli() }
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: fetchFor,
		ResponseHeaderTimeout: fetchFor, MaxResponseHeaderBytes: 64 << 10,
	}
	p := &Providers{o: o, asks: make(chan struct{}, askAtOnce), held: map[*lookup]bool{}}
	p.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.table.Store(&table{})
	if _, err := p.Reload(); err != nil {
		return nil, err
	}
	return p, nil
}

// File is the path of the file.
func (p *Providers) File() string { return p.o.File }

// Beside is none: keys and secrets are read whenever they are needed.
func (p *Providers) Beside() []string { return nil }

// Count is the number of providers.
func (p *Providers) Count() int { return len(p.table.Load().all) }

// Reload reads the file again and reports whether it has changed. After an error, which names file
// and line, the providers stay as they were. A provider that has not changed keeps its keys.
func (p *Providers) Reload() (changed bool, err error) {
	p.reload.Lock()
	defer p.reload.Unlock()
	text, err := yamlfile.Read(p.o.File)
	if err != nil {
		return false, fmt.Errorf("read providers: %w", err)
	}
	before := p.table.Load()
	next := &table{text: sha256.Sum256(text), issuers: map[string]*issuer{}}
	if next.text == before.text {
		return false, nil
	}
	configs, err := parse(p.o.File, text)
	if err != nil {
		return false, fmt.Errorf("read providers: %w", err)
	}
	for i := range configs {
		one := p.providerOf(&configs[i], before)
		next.all = append(next.all, one)
		if one.issuer != nil {
			next.issuers[one.config.issuer] = one.issuer
		} else {
			next.askers = append(next.askers, one)
		}
	}
	p.table.Store(next)
	for _, one := range before.all {
		if !slices.Contains(next.all, one) {
			one.gone.Store(true)
		}
	}
	return true, nil
}

// providerOf is the provider of before with the same configuration, or a new one.
func (p *Providers) providerOf(c *config, before *table) *provider {
	if c.algs == nil {
		c.algs = algorithms
	}
	for _, one := range before.all {
		if reflect.DeepEqual(one.config, *c) {
			return one
		}
	}
	one := &provider{config: *c, owner: p, parser: c.newParser(p.o.NowMs)}
	if c.askURL == "" {
		one.issuer = &issuer{provider: one}
	}
	return one
}

// Authenticate implements auth.Authenticator. The form of a token and its issuer decide who says
// whether it is good.
func (p *Providers) Authenticate(ctx context.Context, credential string) (*auth.Principal, *wire.Error) {
	token, problem := wire.ParseCredential(credential)
	t := p.table.Load()
	switch {
	case problem != "" || token == "" || strings.HasPrefix(token, auth.TokenPrefix):
		return p.ofFile(ctx, credential)
	case len(token) > maxTokenBytes:
		return nil, refused(fmt.Sprintf("has %d bytes, the limit is %d", len(token), maxTokenBytes))
	}
	d := sha256.Sum256([]byte(token))
	if isJWT(token) && len(t.issuers) > 0 {
		if v := p.verified.get(d); v != nil && v.Current() != nil && v.issuer.fresh() != nil {
			if v.principal.ExpiredAt(p.o.NowMs()) {
				return nil, expired(v.principal.ExpiresAtMs)
			}
			return v.principal, nil
		}
		return p.verify(ctx, token, d)
	}
	for _, one := range t.askers {
		if strings.HasPrefix(token, one.prefix) {
			return p.lookUp(ctx, one, token, d)
		}
	}
	return p.ofFile(ctx, credential)
}

// ofFile asks the token file.
func (p *Providers) ofFile(ctx context.Context, credential string) (*auth.Principal, *wire.Error) {
	if p.o.Tokens != nil {
		return p.o.Tokens.Authenticate(ctx, credential)
	}
	if credential == "" {
		return nil, wire.Refuse(wire.CodeUnauthenticated, auth.TokenRequired)
	}
	return nil, refused("is of no form that a provider of this server knows")
}

// Start reads the keys of all issuers in the background, and again and again. changed is called
// after that, when the principals of open sessions may have changed. Call it once, and Stop before
// what changed uses ends.
func (p *Providers) Start(changed func()) {
	p.rounds.Go(func() {
		p.Refresh(changed)
		tick := time.NewTicker(roundEvery)
		defer tick.Stop()
		for {
			select {
			case <-p.ctx.Done():
				return
			case <-tick.C:
				p.Refresh(changed)
			}
		}
	})
}

// roundEvery is a third of the time within which a withdrawn key or token ends its sessions.
const roundEvery = 20 * time.Second

// Refresh reads the keys again, asks again about the tokens that sessions hold, and calls changed
// then. It blocks until the providers have answered.
func (p *Providers) Refresh(changed func()) {
	var ends []<-chan struct{}
	for _, one := range p.table.Load().all {
		if one.issuer != nil {
			ends = append(ends, one.issuer.begin())
		}
	}
	waitAll(ends)
	changed() // which looks at every principal that a session holds
	p.mu.Lock()
	held := p.held
	p.held = map[*lookup]bool{}
	p.mu.Unlock()
	ends = nil
	for l := range held {
		l.mu.Lock()
		l.held = false
		token := l.token
		l.mu.Unlock()
		if token != "" {
			ends = append(ends, l.askSoon(token))
		}
	}
	waitAll(ends)
	if len(ends) > 0 {
		changed()
	}
}

func waitAll(ends []<-chan struct{}) {
	for _, end := range ends {
		<-end
	}
}

// hold notes a token that a session holds. l.mu is locked.
func (p *Providers) hold(l *lookup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[l] = true
}

// Stop ends the requests to providers, and waits for the goroutine of Start. From then on a token
// that is not known yet is auth_unavailable.
func (p *Providers) Stop() {
	p.cancel()
	p.rounds.Wait()
}

// Close stops, and waits for all goroutines. Nobody may authenticate any more.
func (p *Providers) Close() {
	p.Stop()
	p.running.Wait()
	p.http.CloseIdleConnections()
}

// told counts an answer of a provider, and logs that it gives no good one, once for each reason, and
// that it does again.
func (p *provider) told(err error) {
	failure := ""
	if err == nil {
		p.reads.Add(1)
	} else {
		failure = err.Error()
		p.failures.Add(1)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if failure == p.failure || p.owner.ctx.Err() != nil {
		return
	}
	p.failure = failure
	if err != nil {
		p.owner.o.Log.Error().Str("provider", p.name).Msg("a provider of identities gives no good answer: " + failure +
			"; what is known of its keys and tokens counts on")
		return
	}
	p.owner.o.Log.Info().Str("provider", p.name).Msg("a provider of identities answers again")
}

// WriteMetrics writes the figures of the providers.
func (p *Providers) WriteMetrics(page *meter.Page) {
	all := map[string]*provider{}
	for _, one := range p.table.Load().all {
		all[one.name] = one
	}
	each := func(name string, kind meter.Kind, help string, of func(*provider) float64) {
		page.Family(name, kind, help)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			page.Put(of(all[key]), meter.Label{Name: "provider", Value: key})
		}
	}
	each("codeq_identity_answers_total", meter.Total, "Good answers of a provider of identities: key sets read, tokens looked up.",
		func(one *provider) float64 { return float64(one.reads.Load()) })
	each("codeq_identity_failures_total", meter.Total, "Requests to a provider of identities without a good answer.",
		func(one *provider) float64 { return float64(one.failures.Load()) })
	each("codeq_identity_keys", meter.Gauge, "Keys of a provider that are good now; 0 refuses its tokens.", func(one *provider) float64 {
		if one.issuer == nil || one.issuer.fresh() == nil {
			return 0
		}
		return float64(len(one.issuer.fresh().keys))
	})
}
