package server

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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
