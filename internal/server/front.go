package server

import (
	"net/http"
	"sync/atomic"
)

// front is the handler of the HTTP server: first the handler of a server that is starting,
// then the API. Any goroutine.
type front struct{ current atomic.Pointer[scene] }

// scene is one handler; gone is closed when another one takes its place.
type scene struct {
	http.Handler
	gone chan struct{}
}

func newFront(first http.Handler) *front {
	f := &front{}
	f.set(first)
	return f
}

// set makes another handler serve the requests from now on.
func (f *front) set(h http.Handler) {
	if last := f.current.Swap(&scene{h, make(chan struct{})}); last != nil {
		close(last.gone)
	}
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
		c.put(nil)
	}
	f.current.Load().ServeHTTP(w, r)
}
