package server

import (
	"net"
	"net/http"
	"sync"
)

// conns are the connections whose goroutines of net/http run; a connection that became a
// session is not one of them. net/http closes connections without waiting for their
// goroutines, and the store must be open while a request runs; so shutdown waits here. It
// also closes the connections that have not sent a byte, which browsers open in advance:
// net/http would wait five seconds for each. Any goroutine.
type conns struct {
	mu sync.Mutex
	// used says for each connection whether a byte has come.
	used    map[net.Conn]bool
	closing bool
	// ended is signalled when the goroutine of a connection ends.
	ended *sync.Cond
}

func newConns() *conns {
	c := &conns{used: make(map[net.Conn]bool)}
	c.ended = sync.NewCond(&c.mu)
	return c
}

// setState is the ConnState hook.
func (c *conns) setState(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.used[conn] = false
		if c.closing {
			_ = conn.Close() // nothing was sent on it
		}
	case http.StateActive, http.StateIdle:
		c.used[conn] = true
	case http.StateHijacked, http.StateClosed:
		delete(c.used, conn)
		c.ended.Broadcast()
	}
}

// closeUnused closes the connections that have not sent a byte, and from then on every new
// one.
func (c *conns) closeUnused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	for conn, used := range c.used {
		if !used {
			_ = conn.Close() // nothing was sent on it
		}
	}
}

// cut closes the connections below TLS, whose own end would wait for clients that do not read.
func (c *conns) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.used {
		if below := limited(conn); below != nil {
			_ = below.Close() // what was to be sent is given up
		}
	}
}

// wait returns when the goroutines of all connections have ended. Nothing may accept
// connections by then.
func (c *conns) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.used) > 0 {
		c.ended.Wait()
	}
}
