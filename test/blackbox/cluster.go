package blackbox

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// nodesOfCluster is how many nodes a Cluster has: it goes on without one of them.
const nodesOfCluster = 3

// Cluster is three nodes, each a process of its own, and a port in front of them. The methods are
// for the goroutine of the test.
type Cluster struct {
	t testing.TB
	// Addr is host:port of the port in front, which takes each connection to the next node that
	// listens.
	Addr  string
	Nodes []*Server
	// down is the node that Kill has killed, nil if all live.
	down *Server
	next atomic.Uint64
}

// ServeCluster makes three nodes and waits until all of them vote. args are further flags of `codeq
// serve`.
func ServeCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	var tokens []string
	for i := range nodesOfCluster {
		s := &Server{t: t, Addr: Address(t), Dir: filepath.Join(t.TempDir(), "data"), args: args, under: ":", said: &tail{}}
		t.Cleanup(s.end)
		if at := Address(t); i == 0 {
			tokens = c.run("init", "--address", at, "--data", s.Dir)
		} else {
			c.run("join", tokens[i-1], "--address", at, "--data", s.Dir)
		}
		s.Start()
		c.Nodes = append(c.Nodes, s)
	}
	c.listen()
	c.AwaitAll()
	return c
}

// run runs a command of `codeq cluster`, and returns the tokens that it prints.
func (c *Cluster) run(args ...string) []string {
	c.t.Helper()
	path, err := Program()
	if err != nil {
		c.t.Fatal(err)
	}
	var out, said bytes.Buffer
	cmd := exec.Command(path, append([]string{"cluster", "--json"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("codeq cluster %s: %v: %s", args[0], err, said.String())
	}
	var made struct{ Tokens []string }
	if err := json.Unmarshal(out.Bytes(), &made); err != nil {
		c.t.Fatalf("codeq cluster %s says %q: %v", args[0], out.String(), err)
	}
	return made.Tokens
}

// voters is how many nodes vote and answer the leader, 0 if nobody says it.
func (c *Cluster) voters() int {
	var status struct{ Reachable int }
	if body, ok := get("http://" + c.Addr + "/v1/codeq/admin/cluster"); !ok || json.Unmarshal(body, &status) != nil {
		return 0
	}
	return status.Reachable
}

// URLs are the addresses of all nodes, as clients take them.
func (c *Cluster) URLs() string {
	urls := make([]string, len(c.Nodes))
	for i, s := range c.Nodes {
		urls[i] = s.URL()
	}
	return strings.Join(urls, ",")
}

// Leader waits for the node that leads.
func (c *Cluster) Leader() (lead *Server) {
	c.t.Helper()
	c.await("a node that leads", func() bool { lead = c.leader(); return lead != nil })
	return lead
}

// AwaitAll waits until all nodes vote and answer the leader.
func (c *Cluster) AwaitAll() {
	c.t.Helper()
	c.await("all nodes", func() bool { return c.voters() == nodesOfCluster })
}

// leader is the node that leads, nil if none does.
func (c *Cluster) leader() *Server {
	for _, s := range c.Nodes {
		if s == c.down {
			continue
		}
		if _, ok := get(s.URL() + "/readyz?leader"); ok {
			return s
		}
	}
	return nil
}

// Kill ends the node that leads with -9.
func (c *Cluster) Kill() {
	c.t.Helper()
	c.down = c.Leader()
	c.down.Kill()
}

// Start waits until another node leads, which it says took so long, and begins another life of the
// node that was killed.
func (c *Cluster) Start() {
	c.t.Helper()
	began := time.Now()
	c.await("another node that leads", func() bool { return c.leader() != nil })
	c.t.Logf("another node leads after %v", time.Since(began).Round(time.Millisecond))
	c.down.Start()
	c.down = nil
	c.AwaitAll()
}

func (c *Cluster) await(what string, is func() bool) {
	c.t.Helper()
	for late := time.Now().Add(startFor); !is(); time.Sleep(10 * time.Millisecond) { // the processes tell nobody
		if time.Now().After(late) {
			c.t.Fatalf("no %s within %v", what, startFor)
		}
	}
}

// get reads a page; false if it is not there.
func get(url string) ([]byte, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, false
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, false
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // read to its end
	return body, err == nil && answer.StatusCode == http.StatusOK
}

// listen opens the port in front.
func (c *Cluster) listen() {
	c.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.Addr = l.Addr().String()
	var links sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	c.t.Cleanup(func() {
		_ = l.Close() // nobody listens any more
		mu.Lock()
		for conn := range open {
			_ = conn.Close() // the test is over
		}
		mu.Unlock()
		links.Wait()
	})
	links.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			links.Go(func() {
				c.link(conn)
				mu.Lock()
				delete(open, conn)
				mu.Unlock()
			})
		}
	})
}

// link carries a connection to a node until either end closes it.
func (c *Cluster) link(client net.Conn) {
	defer func() { _ = client.Close() }() // it may have ended already
	node := c.dial()
	if node == nil {
		return
	}
	defer func() { _ = node.Close() }() // it may have ended already
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, node) // how it ends is the client's to see
		_ = client.Close()           // and so is that
	})
	_, _ = io.Copy(node, client) // how it ends is the node's to see
	_ = node.Close()             // and so is that
	back.Wait()
}

// dial connects to the next node that listens, nil if none does.
func (c *Cluster) dial() net.Conn {
	first := c.next.Add(1)
	for i := range uint64(nodesOfCluster) {
		conn, err := net.DialTimeout("tcp", c.Nodes[(first+i)%nodesOfCluster].Addr, time.Second)
		if err == nil {
			return conn
		}
	}
	return nil
}
