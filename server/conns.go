package server

import (
	"net"
	"net/http"
	"sync"
)

// conns are the connections of the listener whose goroutines run; one that
// became a session has left. net/http closes connections without waiting for
// their goroutines, and a store must not be closed under a request; it also
// waits five seconds for each connection that has not sent a byte, of which
// browsers open some in advance. Any goroutine.
type conns struct {
	mu sync.Mutex
	// used tells, for each connection, whether a byte has come.
	used    map[net.Conn]bool
	closing bool
	// left is signalled when a connection is gone.
	left *sync.Cond
}

func newConns() *conns {
	c := &conns{used: make(map[net.Conn]bool)}
	c.left = sync.NewCond(&c.mu)
	return c
}

// note is the ConnState hook.
func (c *conns) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.used[conn] = false
		if c.closing {
			_ = conn.Close() // nothing was said on it
		}
	case http.StateActive, http.StateIdle:
		c.used[conn] = true
	case http.StateHijacked, http.StateClosed:
		delete(c.used, conn)
		c.left.Broadcast()
	}
}

// closeUnused closes the connections that have not sent a byte, and those that
// still come.
func (c *conns) closeUnused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	for conn, used := range c.used {
		if !used {
			_ = conn.Close() // nothing was said on it
		}
	}
}

// wait returns when all connections are gone. It is called once nobody accepts
// any more.
func (c *conns) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.used) > 0 {
		c.left.Wait()
	}
}
