package callback

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// A receiver with a library of Standard Webhooks, and one of the original HTTP API, take what
// arrives, and nothing that was changed on the way.
func TestReceiversVerifyWhatArrives(t *testing.T) {
	secrets := Secrets("secret")
	hook, err := standardwebhooks.NewWebhook(secrets.Of("acme"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := standardwebhooks.NewWebhook(secrets.Of("beta"))
	if err != nil {
		t.Fatal(err)
	}
	arrived := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived++
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if err := hook.Verify(body, r.Header); err != nil {
			t.Errorf("%v: %v", r.Header, err)
		}
		if hook.Verify(append(body, ' '), r.Header) == nil || other.Verify(body, r.Header) == nil {
			t.Error("another body or another secret passes")
		}
		m := hmac.New(sha256.New, []byte(secrets.Of("acme")))
		_, _ = io.WriteString(m, r.Header.Get("X-CodeQ-Timestamp")+"."+string(body)) // a hash takes everything
		if r.Header.Get("X-CodeQ-Signature") != hex.EncodeToString(m.Sum(nil)) {
			t.Errorf("the original signature is %s", r.Header.Get("X-CodeQ-Signature"))
		}
		for name, want := range map[string]string{
			"Content-Type": "application/json", "User-Agent": "codeq/1", "Webhook-Id": "t.1", "X-CodeQ-Attempt": "2", "Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		w.Header().Set("Retry-After", "9")
		w.WriteHeader(503)
	}))
	defer server.Close()
	if a := ask(newPoster(t, server, "127.0.0.1"), server.URL); a.Status != 503 || a.RetryAfter != 9*time.Second || arrived != 1 {
		t.Errorf("%+v, %d arrived", a, arrived)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "x": 0, "-1": 0, "30": 30 * time.Second, "99999999999": mostRetryAfter, "99999999999999999999": 0,
		"Mon, 30 Nov 2026 00:01:00 GMT": time.Minute, "Mon, 30 Nov 2020 00:01:00 GMT": 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// Why there is no answer, in words that tell nothing about the network of the server.
func TestNoAnswerSaysWhy(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	url := server.URL
	stranger := newPoster(t, nil, "127.0.0.1") // it does not trust the server
	a := ask(stranger, url)
	if a.Status != 0 || a.Problem != "the certificate of the endpoint is not valid: x509: certificate signed by unknown authority" {
		t.Errorf("%+v", a)
	}
	server.Close()
	if a := ask(stranger, url); a.Problem != "the connection to the endpoint failed" {
		t.Errorf("%+v", a)
	}
	answer := make(chan Answer, 1)
	stranger.Send(&Call{Callback: callbackTo(url), Keep: 1}, func(a Answer) { answer <- a })
	if a := <-answer; a.Problem != "the connection to the target failed" {
		t.Errorf("a target: %+v", a)
	}
}

// A stop closes the connections that were kept for the next call.
func TestStopLeavesNoConnection(t *testing.T) {
	closed := make(chan struct{}, 9)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	defer server.Close()
	p := newPoster(t, nil, "127.0.0.1")
	ask(p, server.URL)
	p.Stop(t.Context())
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Error("the connection is kept")
	}
}

// A stop that has no time left breaks calls off, and says so.
func TestStopBreaksCallsOff(t *testing.T) {
	called, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(called)
		<-release
	}))
	defer server.Close()
	defer close(release)
	p := newPoster(t, server, "127.0.0.1")
	answer := make(chan Answer, 1)
	p.Send(&Call{Tenant: "acme", Callback: callbackTo(server.URL)}, func(a Answer) { answer <- a })
	<-called
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p.Stop(ctx)
	if a := <-answer; !a.Stopped {
		t.Errorf("%+v", a)
	}
}
