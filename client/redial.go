package client

import (
	"context"
	"math/rand/v2"
	"time"

	"codeq/wire"
)

// redialer makes the next link of a loop: one attempt at a time, on a goroutine of its
// own, after the backoff of its failures. Only the loop calls it.
type redialer struct {
	client  *Client
	dialect *dialect
	hello   *wire.Hello
	cancel  context.CancelFunc
	ctx     context.Context
	// dialled gets the outcome of the attempt under way.
	dialled  chan dialled
	underway bool
	failures int
	told     teller
	// goodbye: the server announced its end, so all its clients reconnect at once.
	goodbye bool
}

type dialled struct {
	link *link
	err  error
}

func (c *Client) newRedialer(d *dialect, workerID string) *redialer {
	ctx, cancel := context.WithCancel(context.Background())
	return &redialer{
		client:  c,
		dialect: d,
		hello:   &wire.Hello{WorkerID: workerID, MaxMessageBytes: maxServerMessageBytes},
		ctx:     ctx,
		cancel:  cancel,
		dialled: make(chan dialled, 1),
	}
}

// first makes the first link of a session or worker. It waits up to waitFor, or until ctx
// ends, for a server that is not there yet, or is starting.
func (r *redialer) first(ctx context.Context, waitFor time.Duration) (l *link, err error) {
	err = r.client.persist(ctx, firstLink, waitFor, func(time.Duration) (err error) {
		l, err = r.client.connect(ctx, r.dialect, r.hello)
		return err
	})
	return l, err
}

// resume makes the next links resume the session with this key; "" opens a new one. No
// attempt may be under way.
func (r *redialer) resume(key string) {
	hello := *r.hello
	hello.Resume = key
	r.hello = &hello
}

// again starts an attempt. The first one after a link was up comes soon.
func (r *redialer) again() {
	delay := backoff(r.failures)
	if r.goodbye {
		delay = rand.N(drainSpread)
	}
	r.goodbye = false
	r.failures++
	r.underway = true
	go func() {
		var next dialled
		if next.err = sleep(r.ctx, delay); next.err == nil {
			next.link, next.err = r.client.connect(r.ctx, r.dialect, r.hello)
		}
		r.dialled <- next
	}()
}

// took records that the loop has received from dialled.
func (r *redialer) took(next dialled) {
	r.underway = false
	if next.err == nil {
		r.failures, r.told = 0, teller{}
	}
}

// worthAnother reports whether another attempt may help after err, and tells people now
// and then that there is one.
func (r *redialer) worthAnother(v verb, err error) bool {
	if !v.again(err) {
		return false
	}
	r.told.say(r.client, err.Error()+"; it is tried again")
	return true
}

// stop ends the attempt under way and waits for its end.
func (r *redialer) stop() {
	r.cancel()
	if !r.underway {
		return
	}
	next := <-r.dialled
	r.took(next)
	if next.link != nil {
		next.link.close()
	}
}
