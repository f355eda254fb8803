package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"codeq/wire"
)

// clusterNode is a node of a cluster: it answers every request, with the address of the leader.
type clusterNode struct {
	*httptest.Server
	leader atomic.Pointer[string]
	asked  atomic.Int64
	tokens atomic.Int64
	answer atomic.Pointer[string] // a refusal, with 503; nil is a task
}

func newNode(t *testing.T) *clusterNode {
	t.Helper()
	n := &clusterNode{}
	n.Server = httptest.NewServer(n)
	t.Cleanup(n.Close)
	return n
}

// ServeHTTP implements http.Handler.
func (n *clusterNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.asked.Add(1)
	if r.Header.Get("Authorization") != "" {
		n.tokens.Add(1)
	}
	if leader := n.leader.Load(); leader != nil {
		w.Header().Set(leaderHeader, *leader)
	}
	if answer := n.answer.Load(); answer != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, *answer) // the client sees it
		return
	}
	_, _ = io.WriteString(w, taskBody('a')) // the client sees it
}

func (n *clusterNode) says(text string)   { n.answer.Store(&text) }
func (n *clusterNode) follows(url string) { n.leader.Store(&url) }

// ask reads a task once.
func (n *clusterNode) took(t *testing.T, c *Client) bool {
	t.Helper()
	before := n.asked.Load()
	if _, err := c.Task(t.Context(), wire.TaskID{1}); err != nil {
		t.Fatal(err)
	}
	return n.asked.Load() > before
}

func newClient(t *testing.T, addresses ...string) *Client {
	t.Helper()
	c, err := New(strings.Join(addresses, ","), WithToken("secret"), WithNotices(func(string) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestARequestGoesToTheLeaderOnceItIsNamed(t *testing.T) {
	a, b := newNode(t), newNode(t)
	c := newClient(t, a.URL, b.URL)
	a.follows(b.URL)
	b.follows(b.URL)
	if !a.took(t, c) || !b.took(t, c) || !b.took(t, c) || a.asked.Load() != 1 {
		t.Errorf("asked %d times and %d times", a.asked.Load(), b.asked.Load())
	}
	if c.URL() != b.URL {
		t.Errorf("the address is %s", c.URL())
	}
}

// tookTwice is took of two requests: an answer may name the address of the next one.
func (n *clusterNode) tookTwice(t *testing.T, c *Client) bool {
	first := n.took(t, c)
	return n.took(t, c) && first
}

func TestNoTokenGoesToALeaderThatNobodyGave(t *testing.T) {
	a, b, other := newNode(t), newNode(t), newNode(t)
	for _, named := range []string{other.URL, "http://127.0.0.1", "", "?", "https" + strings.TrimPrefix(b.URL, "http"), a.URL} {
		c := newClient(t, a.URL, b.URL)
		a.follows(named)
		if !a.tookTwice(t, c) {
			t.Errorf("%q was followed", named)
		}
	}
	single := newClient(t, a.URL)
	a.follows(other.URL)
	if !a.tookTwice(t, single) || other.tokens.Load() != 0 {
		t.Error("a client of one address went elsewhere")
	}
}

func TestTheNextAddressIsAskedIfNothingWasSent(t *testing.T) {
	a, b := newNode(t), newNode(t)
	a.Close()
	c := newClient(t, a.URL, b.URL)
	// A post without a key is sent once: at the first address nothing was.
	if _, err := c.Enqueue(t.Context(), "c", 1); err != nil {
		t.Fatal(err)
	}
	if b.asked.Load() != 1 {
		t.Errorf("asked %d times", b.asked.Load())
	}
	// The leader that is named cannot be reached from here: no request waits for it again.
	b.follows(a.URL)
	if !b.tookTwice(t, c) || c.URL() != b.URL {
		t.Errorf("the address is %s", c.URL())
	}
	b.Close()
	c.Close() // a connection that is used again has sent something
	var nobody *UnreachableError
	if _, err := c.Task(t.Context(), wire.TaskID{1}); !errors.As(err, &nobody) {
		t.Errorf("without a node: %v", err)
	}
}

func TestANodeThatStopsOrHasNoLeaderIsLeft(t *testing.T) {
	a, b := newNode(t), newNode(t)
	c := newClient(t, a.URL, b.URL)
	a.says(`{"error":"it stops","code":"draining","retryable":true}`)
	if !b.took(t, c) {
		t.Error("the next node was not asked")
	}
	// Whether it was done is not known, so a post without a key is not sent again; the next
	// request goes to the other node.
	b.says(`{"error":"it was lost","code":"not_leader","retryable":true}`)
	a.answer.Store(nil)
	before := b.asked.Load()
	_, err := c.Enqueue(t.Context(), "c", 1)
	var refusal *wire.Error
	if !errors.As(err, &refusal) || refusal.Code != wire.CodeNotLeader || b.asked.Load() != before+1 {
		t.Errorf("got %v", err)
	}
	if !a.took(t, c) {
		t.Error("the node without a leader was asked again")
	}
	// With a key it is.
	a.says(`{"error":"it was lost","code":"not_leader","retryable":true}`)
	b.answer.Store(nil)
	if _, err := c.Enqueue(t.Context(), "c", 1, Key("k")); err != nil {
		t.Error(err)
	}
}

func TestAddressesAreReadOneByOne(t *testing.T) {
	c := newClient(t, "a:1", " http://b:2/v1/codeq ", "https://c/x")
	var got []string
	for _, base := range c.nodes.all {
		got = append(got, base.String())
	}
	if !slices.Equal(got, []string{"http://a:1", "http://b:2", "https://c/x"}) {
		t.Errorf("got %q", got)
	}
	for _, text := range []string{",", "a:1,", "a:1,,b:2", strings.Repeat("a:1,", maxNodes) + "a:1"} {
		if _, err := New(text); err == nil {
			t.Errorf("took %q", text)
		}
	}
}
