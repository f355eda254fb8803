package server

import (
	"net/http"
	"sync/atomic"
)

// front is the handler that the listener knows: first the one of a server that
// is starting, then the API. Any goroutine.
type front struct{ behind atomic.Pointer[http.Handler] }

func newFront(first http.Handler) *front {
	f := &front{}
	f.become(first)
	return f
}

// become puts another handler behind the front, for requests from now on.
func (f *front) become(h http.Handler) { f.behind.Store(&h) }

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g, ok := r.Context().Value(guestKey{}).(*guest); ok {
		g.work()
	}
	(*f.behind.Load()).ServeHTTP(w, r)
}
