package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codeq/internal/peer"
	"codeq/wire"
)

// says is a handler that says who it is.
func says(who string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Who", who) })
}

// A request to the API waits while nobody leads, for so long; then it is for the node that leads, be
// that another one or this one. Health is answered at once.
func TestRequestsWaitForTheNextLeader(t *testing.T) {
	lead := says("leader")
	leaves := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}) // a leader that leads no more
	for name, c := range map[string]struct {
		path, want string
		after      time.Duration
		happens    func(d *door, known *atomic.Bool, changed chan struct{})
		not        http.Handler
	}{
		"nobody is elected":    {"/v1/codeq/tasks", "follower", waitsForLeader, nil, nil},
		"another one leads":    {"/v1/codeq/tasks", "follower", time.Second, func(_ *door, known *atomic.Bool, changed chan struct{}) { known.Store(true); close(changed) }, nil},
		"this node leads":      {"/v1/codeq/tasks", "leader", time.Second, func(d *door, _ *atomic.Bool, _ chan struct{}) { d.front.set(&leaderOf{lead}) }, nil},
		"health does not wait": {"/healthz", "follower", 0, nil, nil},
		"it led, and follows": {"/v1/codeq/tasks", "follower", time.Second, func(d *door, known *atomic.Bool, _ chan struct{}) {
			known.Store(true)
			d.front.set(d)
		}, &leaderOf{leaves}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var known atomic.Bool
			changed := make(chan struct{})
			f := newFront(says("starting"))
			d := &door{front: f, follower: says("follower"), known: func() (bool, <-chan struct{}) { return known.Load(), changed }}
			if f.set(d); c.not != nil {
				f.set(c.not)
			}
			if c.happens != nil {
				time.AfterFunc(c.after, func() { c.happens(d, &known, changed) })
			}
			w, began := httptest.NewRecorder(), time.Now()
			d.admit(w, httptest.NewRequest(http.MethodGet, c.path, nil), c.not)
			if who, took := w.Header().Get("Who"), time.Since(began); who != c.want || took != c.after {
				t.Errorf("%s: answered by the %s after %v, want by the %s after %v", name, who, took, c.want, c.after)
			}
		})
	}
}

// leaderOf is a handler that can be compared.
type leaderOf struct{ http.Handler }

// A request that could not be sent goes to the next leader, be that another node or this one, and is
// refused after a while if there is none. What a leader has got is not sent again.
func TestWhatCouldNotBeSentGoesToTheNextLeader(t *testing.T) {
	unsent, sent := peer.Passage{Refusal: wire.Refuse(wire.CodeNotLeader, ""), Unsent: true}, peer.Passage{Status: http.StatusOK}
	lost := peer.Passage{Refusal: wire.Refuse(wire.CodeNotLeader, "")}
	lead := &leaderOf{says("leader")}
	for name, c := range map[string]struct {
		// tries are what becomes of one try after another; leads says that this node is elected after
		// them. Another leader is known after a second.
		tries []peer.Passage
		leads bool
		knows bool
		here  http.Handler
		after time.Duration
	}{
		"the next one takes it":     {[]peer.Passage{unsent, sent}, false, true, nil, time.Second},
		"nobody is elected":         {[]peer.Passage{unsent, unsent}, false, true, nil, nextFor},
		"this node is elected":      {[]peer.Passage{unsent, unsent}, true, true, lead, 1500 * time.Millisecond},
		"a leader has got it":       {[]peer.Passage{lost}, false, true, nil, 0},
		"the door has waited":       {[]peer.Passage{unsent}, false, false, nil, 0},
		"the next one has got it":   {[]peer.Passage{unsent, lost}, false, true, nil, time.Second},
		"the first one answered it": {[]peer.Passage{sent}, false, true, nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			changed, never, tries := make(chan struct{}), make(chan struct{}), 0
			f := newFront(says("starting"))
			d := &door{front: f, known: func() (bool, <-chan struct{}) {
				if tries > 0 {
					return c.knows, never
				}
				return c.knows, changed
			}}
			d.send = func(http.ResponseWriter, *http.Request) peer.Passage {
				tries++
				return c.tries[tries-1]
			}
			f.set(d)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(time.Second, func() { close(changed) })
			if c.leads {
				time.AfterFunc(1500*time.Millisecond, func() { f.set(lead) })
			}
			began := time.Now()
			got, here := d.pass(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/codeq/tasks", nil))
			if took := time.Since(began); got != c.tries[len(c.tries)-1] || tries != len(c.tries) || here != c.here || took != c.after {
				t.Errorf("%s: %+v by %v after %v and %d tries, want %+v by %v after %v", name, got, here, took, tries, c.tries, c.here, c.after)
			}
			time.Sleep(2 * time.Second) // the timers of the test run out, in no time
		})
	}
}
