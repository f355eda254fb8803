package server

import (
	"net/http"
	"sync/atomic"
)

// front is the handler of the HTTP server: first the handler of a server that is starting,
// then the API. Any goroutine.
type front struct{ current atomic.Pointer[http.Handler] }

func newFront(first http.Handler) *front {
	f := &front{}
	f.set(first)
	return f
}

// set makes another handler serve the requests from now on.
func (f *front) set(h http.Handler) { f.current.Store(&h) }

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
		c.put(nil)
	}
	(*f.current.Load()).ServeHTTP(w, r)
}
