package blackbox

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	// Between is the network between the nodes, nil if they talk to each other without one.
	Between *Network
	// disks are where the directories of the nodes lie; nil is anywhere.
	disks []string
	// at are the addresses of the ports for nodes.
	at []string
	// down is the node that Kill has killed, nil if all live.
	down *Server
	next atomic.Uint64
}

// ServeCluster makes three nodes and waits until all of them vote. args are further flags of `codeq
// serve`.
func ServeCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	return serveCluster(&Cluster{t: t}, args)
}

// ServeOn is ServeCluster on three disks, each a directory.
func ServeOn(t testing.TB, disks []string, args ...string) *Cluster {
	t.Helper()
	return serveCluster(&Cluster{t: t, disks: disks}, args)
}

// ServeApart is ServeCluster with a network between the nodes. It needs /proc of Linux.
func ServeApart(t testing.TB, args ...string) *Cluster {
	t.Helper()
	return serveCluster(&Cluster{t: t, Between: newNetwork(t, nodesOfCluster)}, args)
}

func serveCluster(c *Cluster, args []string) *Cluster {
	t := c.t
	t.Helper()
	var tokens []string
	for i := range nodesOfCluster {
		disk := t.TempDir()
		if c.disks != nil {
			disk = c.disks[i]
		}
		s := &Server{t: t, Addr: Address(t), Dir: filepath.Join(disk, "data"), args: slices.Clone(args), under: ":", said: &tail{}}
		t.Cleanup(s.end)
		at := ""
		if c.Between == nil {
			at = Address(t)
		} else {
			at, s.seen = c.Between.at[i], &c.Between.pids[i]
			s.args = append(s.args, "--peer-listen", c.Between.behind[i])
		}
		c.at = append(c.at, at)
		if i == 0 {
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

// AwaitOther waits until another node than one leads.
func (c *Cluster) AwaitOther(than *Server) (lead *Server) {
	c.t.Helper()
	c.await("another node that leads", func() bool {
		for _, s := range c.Nodes {
			if s == than {
				continue
			}
			if s.Leads() {
				lead = s
			}
		}
		return lead != nil
	})
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
		if s.Leads() {
			return s
		}
	}
	return nil
}

// Index is the place of a node in Nodes.
func (c *Cluster) Index(s *Server) int { return slices.Index(c.Nodes, s) }

// Follower is a node that does not lead.
func (c *Cluster) Follower() *Server {
	c.t.Helper()
	return c.Others(c.Leader())[0]
}

// Others are the nodes but one.
func (c *Cluster) Others(than *Server) (others []*Server) {
	for _, s := range c.Nodes {
		if s != than {
			others = append(others, s)
		}
	}
	return others
}

// Remove takes a node out that does not run; of one that is out already it does nothing.
func (c *Cluster) Remove(s *Server) {
	c.t.Helper()
	c.await("a removal of the node", func() bool {
		status, _ := c.ask(http.MethodDelete, "/admin/cluster/nodes/"+c.at[c.Index(s)])
		return status == http.StatusOK || status == http.StatusNotFound
	})
}

// Replace takes a node out that does not run, as one that is lost for ever, and has an empty one
// join at its address.
func (c *Cluster) Replace(s *Server) {
	c.t.Helper()
	c.Remove(s)
	at := c.at[c.Index(s)]
	var token struct{ Token string }
	c.await("a token", func() bool {
		status, body := c.ask(http.MethodPost, "/admin/cluster/tokens")
		return status == http.StatusOK && json.Unmarshal(body, &token) == nil
	})
	if err := os.RemoveAll(s.Dir); err != nil {
		c.t.Fatal(err)
	}
	c.run("join", token.Token, "--address", at, "--data", s.Dir)
	s.Start()
}

// Transfer asks the leader to hand over to a node, which it may refuse. Any goroutine.
func (c *Cluster) Transfer(to *Server) {
	_, _ = c.ask(http.MethodPost, "/admin/cluster/transfer?node="+c.at[c.Index(to)]) // whoever calls sees who leads
}

// ask asks for a change of the cluster; the status is 0 if no answer came.
func (c *Cluster) ask(method, path string) (status int, body []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.Addr+"/v1/codeq"+path, nil)
	if err != nil {
		return 0, nil
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil
	}
	body, err = io.ReadAll(answer.Body)
	if _ = answer.Body.Close(); err != nil { // read to its end
		return 0, nil
	}
	return answer.StatusCode, body
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

// Leads reports whether the server is a node that leads.
func (s *Server) Leads() bool {
	_, leads := get(s.URL() + "/readyz?leader")
	return leads
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
