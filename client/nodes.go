package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// maxNodes bounds the addresses of one server.
	maxNodes = 16
	// leaderHeader is how an answer names the node of a cluster that leads.
	leaderHeader = "Codeq-Leader"
	// nextAfter is how long one of several addresses may take to accept a connection.
	nextAfter = 3 * time.Second
	// answerSoon is how long one of several addresses may take to begin an answer to a request
	// that may be sent twice, while another one is not known to be lost.
	answerSoon = 5 * time.Second
	// lostFor is how long an address that was lost is not asked because an answer names it: other
	// nodes may reach it, and this client not.
	lostFor = 30 * time.Second
)

// nodes are the addresses of a server: one, or those of the nodes of a cluster, each of which
// takes any request. Any goroutine.
type nodes struct {
	all []*url.URL
	at  atomic.Int64 // the place of the one that is asked
	// lostAt is when each was lost last, in Unix milliseconds.
	lostAt []atomic.Int64
}

// parseNodes reads addresses with commas between.
func parseNodes(text string) (*nodes, error) {
	n := &nodes{}
	for part := range strings.SplitSeq(text, ",") {
		base, err := parseBase(part)
		if err != nil {
			return nil, err
		}
		n.all = append(n.all, base)
	}
	n.lostAt = make([]atomic.Int64, len(n.all))
	if len(n.all) > maxNodes {
		return nil, fmt.Errorf("a server has at most %d addresses, got %d", maxNodes, len(n.all))
	}
	return n, nil
}

// current is the address that is asked now.
func (n *nodes) current() *url.URL { return n.all[n.at.Load()] }

// lost moves on from an address at which a try ended so that another one may be better.
func (n *nodes) lost(from *url.URL, err error) {
	const elsewhere = unreached | away | internal | broken | cutShort | gateway
	if len(n.all) == 1 || fateOf(err)&elsewhere == 0 {
		return
	}
	at := slices.Index(n.all, from)
	n.lostAt[at].Store(time.Now().UnixMilli())
	n.at.CompareAndSwap(int64(at), int64((at+1)%len(n.all)))
}

// leads reports whether an answer names another of the addresses as the leader, which is asked
// from now on. An address that nobody gave is not asked: the token could be for others.
func (n *nodes) leads(from *url.URL, named string) bool {
	if named == "" || len(n.all) == 1 {
		return false
	}
	leader, err := parseBase(named)
	if err != nil {
		return false
	}
	at := slices.IndexFunc(n.all, func(one *url.URL) bool {
		return one.Scheme == leader.Scheme && strings.EqualFold(hostPort(one), hostPort(leader))
	})
	if at < 0 || n.all[at] == from || time.Now().UnixMilli()-n.lostAt[at].Load() < lostFor.Milliseconds() {
		return false
	}
	n.at.Store(int64(at))
	return true
}

// othersLeft reports whether another address than the one that is asked was not lost lately.
func (n *nodes) othersLeft() bool {
	at, now := int(n.at.Load()), time.Now().UnixMilli()
	for i := range n.all {
		if i != at && now-n.lostAt[i].Load() >= lostFor.Milliseconds() {
			return true
		}
	}
	return false
}

// notDone are the fates after which each asks the next address for any request: nothing was
// done at the one before. Those of unread are for a read.
const (
	notDone = unreached | away
	unread  = notDone | internal | broken | cutShort
)

// each tries the addresses until one ends with none of the fates in next. The error is that
// of the last one. try calls lost.
func (n *nodes) each(ctx context.Context, next fate, try func(base *url.URL) error) (err error) {
	for range n.all {
		if err = try(n.current()); fateOf(err)&next == 0 || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// reach makes a connection; one of several addresses must accept it soon.
func (c *Client) reach(ctx context.Context, network, address string) (net.Conn, error) {
	if len(c.nodes.all) > 1 {
		within, cancel := context.WithTimeoutCause(ctx, nextAfter, errSilent)
		defer cancel()
		ctx = within
	}
	return c.dial(ctx, network, address)
}

var errSilent = errors.New("no connection was accepted in time")
