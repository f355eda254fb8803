package loadtest

import (
	"context"
	"crypto/tls"
	"slices"

	"codeq/client"
)

// Remote is a server behind its public protocol, as a Target. One value
// serves one run.
type Remote struct {
	at         address
	producers  []*session
	workers    []*session
	http       *httpPoster
	watchers   *watchers
	durability string
}

// NewRemote is the server at that address, in the forms that client.New takes.
// An error says what is wrong with the address.
func NewRemote(url, token string, config *tls.Config) (*Remote, error) {
	c, err := client.New(url, client.WithoutWaiting())
	if err != nil {
		return nil, err
	}
	return &Remote{at: address{url: c.URL(), token: token, tls: config}}, nil
}

// Durability implements Target.
func (t *Remote) Durability() string { return t.durability }

// Open implements Target. A producer and a worker have a session each, as in a
// service: what one waits for does not hold up the other.
func (t *Remote) Open(ctx context.Context, w *Workload, newTally func() *Tally, fail func(error)) (lines []Poster, err error) {
	if w.Watchers > 0 {
		if t.watchers, err = openWatchers(ctx, &t.at, w.Watchers, fail); err != nil {
			return nil, err
		}
	}
	for range w.Sessions {
		if err := t.openSession(ctx, &t.workers, newSession(w, newTally()), fail); err != nil {
			return nil, err
		}
	}
	if w.OverHTTP {
		if t.http, err = newHTTPPoster(&t.at, w, newTally); err != nil {
			return nil, err
		}
		return slices.Repeat([]Poster{t.http}, w.Sessions), nil
	}
	for range w.Sessions {
		s := newSession(w, newTally())
		if err := t.openSession(ctx, &t.producers, s, fail); err != nil {
			return nil, err
		}
		lines = append(lines, s)
	}
	return lines, nil
}

func (t *Remote) openSession(ctx context.Context, list *[]*session, s *session, fail func(error)) error {
	socket, welcome, err := openSocket(ctx, &t.at, s.receive, fail)
	if err != nil {
		return err
	}
	t.durability, s.socket = welcome.Durability, socket
	*list = append(*list, s)
	return nil
}

// Work implements Target.
func (t *Remote) Work(ctx context.Context) error {
	for _, worker := range t.workers {
		worker.subscribe()
		select {
		case <-worker.subscribed:
		case <-ctx.Done():
			return cause(ctx)
		}
	}
	return nil
}

// Watched is what the watchers have been sent.
func (t *Remote) Watched() (messages, bytes int64) {
	if t.watchers == nil {
		return 0, 0
	}
	return t.watchers.messages.Load(), t.watchers.bytes.Load()
}

// Close implements Target.
func (t *Remote) Close() error {
	for _, s := range slices.Concat(t.producers, t.workers) {
		s.close()
	}
	if t.http != nil {
		t.http.close()
	}
	if t.watchers != nil {
		t.watchers.close()
	}
	return nil
}
