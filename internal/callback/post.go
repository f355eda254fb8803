package callback

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"codeq/wire"
)

const (
	// answerFor bounds one call, with the connection and the answer.
	answerFor = 15 * time.Second
	// maxAnswerBytes is how much of the body of an answer is read that nobody sees.
	maxAnswerBytes = 64 << 10
	// maxIdle is how many connections are kept to be used again. All may be to one host, which
	// may have many endpoints and targets.
	maxIdle = 256
)

// PosterOptions configure a Poster. Guard and Secrets are required.
type PosterOptions struct {
	Guard   *Guard
	Secrets Secrets
	Version string
	// TLS is the configuration of https, nil for that of the machine.
	TLS *tls.Config
}

// Poster makes the requests, each in a goroutine of its own. Its methods may be called from any
// goroutine.
type Poster struct {
	o      PosterOptions
	by     *schemes
	ctx    context.Context
	cancel context.CancelFunc
	calls  sync.WaitGroup
}

// NewPoster makes a poster; Stop ends it.
func NewPoster(o PosterOptions) *Poster {
	p := &Poster{o: o}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.by = &schemes{http: p.transport(true), https: p.transport(false)}
	return p
}

// schemes sends a request by its scheme: http is for fewer addresses. It follows no redirect.
type schemes struct{ http, https *http.Transport }

func (s *schemes) send(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" {
		return s.https.RoundTrip(r)
	}
	return s.http.RoundTrip(r)
}

// transport has no proxy: the address that is dialled must be that of the endpoint.
func (p *Poster) transport(plain bool) *http.Transport {
	return &http.Transport{
		DialContext: p.o.Guard.dial(plain), TLSClientConfig: p.o.TLS, TLSHandshakeTimeout: dialFor, ForceAttemptHTTP2: true,
		MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: time.Minute,
		MaxResponseHeaderBytes: maxAnswerBytes, DisableCompression: true,
	}
}

// Send is Options.Send of a Worker.
func (p *Poster) Send(c *Call, done func(Answer)) {
	p.calls.Go(func() {
		begin := time.Now()
		a := p.post(c)
		a.Took = time.Since(begin)
		done(a)
	})
}

// Stop waits for the calls in flight until ctx ends, and then breaks them off. Nothing may be
// sent any more.
func (p *Poster) Stop(ctx context.Context) {
	stop := context.AfterFunc(ctx, p.cancel)
	defer stop()
	p.calls.Wait()
	p.by.http.CloseIdleConnections()
	p.by.https.CloseIdleConnections()
}

func (p *Poster) post(c *Call) Answer {
	within := cmp.Or(c.Within, answerFor)
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(c.Body))
	if err != nil {
		return Answer{Problem: "its URL cannot be called", Refused: true}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "codeq/"+p.o.Version)
	p.o.Secrets.sign(r.Header, c, time.Now().Unix())
	// Tasks of earlier builds may have any text.
	if parent, state := wire.TraceContext(c.TraceParent, c.TraceState); parent != "" {
		r.Header.Set("Traceparent", parent)
		if state != "" {
			r.Header.Set("Tracestate", state)
		}
	}
	answer, err := p.by.send(r)
	if err != nil {
		return p.noAnswer(c, err, within)
	}
	defer func() {
		// The body is read only so that the connection can be used again, and the answer is known.
		_, _ = io.CopyN(io.Discard, answer.Body, maxAnswerBytes)
		_ = answer.Body.Close()
	}()
	a := Answer{Status: answer.StatusCode, RetryAfter: retryAfter(answer.Header.Get("Retry-After"), time.Now())}
	if c.Keep == 0 {
		return a
	}
	a.Body, err = io.ReadAll(io.LimitReader(answer.Body, int64(c.Keep)+1))
	if err != nil {
		return p.noAnswer(c, err, within)
	}
	if a.Cut = len(a.Body) > c.Keep; a.Cut {
		a.Body = a.Body[:c.Keep]
	}
	return a
}

// noAnswer says why there is no answer in words that tell nothing about the network of the
// server.
func (p *Poster) noAnswer(c *Call, err error, within time.Duration) Answer {
	var refused refusal
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case p.ctx.Err() != nil:
		return Answer{Stopped: true}
	case errors.As(err, &refused):
		return Answer{Problem: "the " + c.to() + " may not be called: " + string(refused), Refused: true}
	case errors.As(err, &name):
		return Answer{Problem: "the name of the host cannot be resolved"}
	case errors.As(err, &certificate):
		return Answer{Problem: "the certificate of the " + c.to() + " is not valid: " + certificate.Err.Error()}
	case errors.As(err, &timeout) && timeout.Timeout():
		return Answer{Problem: "the " + c.to() + " gave no answer within " + within.Round(time.Second/10).String()}
	}
	return Answer{Problem: "the connection to the " + c.to() + " failed"}
}

// retryAfter reads the header of that name: seconds, or a time.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(seconds, 0), int(mostRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}
