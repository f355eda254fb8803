package blackbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeq/internal/chaos"
)

// Network is the network between the nodes of a Cluster: each connection goes through a proxy of the
// two nodes, so that one way between them can be held without the others. Whose connection it is the
// system says, by the port that it comes from.
type Network struct {
	t testing.TB
	// at are the addresses of the nodes as others know them, behind where they listen.
	at, behind []string
	// ways are the proxies from one node to another, from a node to itself that of strangers.
	ways [][]*chaos.Proxy
	// pids are the processes of the nodes, 0 for one that does not run.
	pids []atomic.Int64
}

// newNetwork makes a network for so many nodes.
func newNetwork(t testing.TB, nodes int) *Network {
	t.Helper()
	n := &Network{t: t, pids: make([]atomic.Int64, nodes), ways: make([][]*chaos.Proxy, nodes)}
	for range nodes {
		n.behind = append(n.behind, Address(t))
	}
	for from := range nodes {
		for to := range nodes {
			p, err := chaos.Start(n.behind[to])
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			n.ways[from] = append(n.ways[from], p)
		}
	}
	for to := range nodes {
		n.listen(to)
	}
	return n
}

// listen opens the address of a node.
func (n *Network) listen(to int) {
	n.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	n.at = append(n.at, l.Addr().String())
	var links sync.WaitGroup
	links.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			links.Go(func() {
				way := n.ways[n.owner(conn.RemoteAddr().(*net.TCPAddr).Port, to)][to].Addr
				join(conn, way)
			})
		}
	})
	n.t.Cleanup(func() {
		_ = l.Close() // nobody listens any more
		n.Cut()
		links.Wait()
	})
}

// join carries a connection to an address until either end closes it.
func join(conn net.Conn, to string) {
	defer func() { _ = conn.Close() }() // it may have ended already
	next, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(conn, next) // how it ends is for its ends to see
		_ = conn.Close()           // and so is that
	})
	_, _ = io.Copy(next, conn) // how it ends is for its ends to see
	_ = next.Close()           // and so is that
	back.Wait()
}

// owner is the node whose process has the port of a connection; to itself for a stranger. The system
// may leave a connection out while others come and go, so it is asked more than once.
func (n *Network) owner(port, to int) int {
	local := fmt.Sprintf("0100007F:%04X", port)
	for range 20 {
		text, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			break
		}
		if node, is := n.has(local, string(text)); is {
			return node
		}
		time.Sleep(5 * time.Millisecond) // others come and go meanwhile
	}
	return to
}

// has is the node that has a local address in a list of connections.
func (n *Network) has(local, list string) (node int, is bool) {
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[1] != local {
			continue
		}
		for node := range n.pids {
			if pid := n.pids[node].Load(); pid != 0 && has(pid, "socket:["+fields[9]+"]") {
				return node, true
			}
		}
	}
	return 0, false
}

// has reports whether a process has a file open.
func has(pid int64, file string) bool {
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false
	}
	for _, fd := range all {
		if name, err := os.Readlink(fd); err == nil && name == file {
			return true
		}
	}
	return false
}

// Hold keeps what a node says to another, as a network does that has lost the way and will find it
// again: what was sent arrives after Heal.
func (n *Network) Hold(from, to int) {
	n.ways[from][to].Hold(chaos.Up)
	n.ways[to][from].Hold(chaos.Down)
}

// Isolate holds what a node says to the others, and they to it.
func (n *Network) Isolate(node int) {
	for other := range n.pids {
		if other != node {
			n.Hold(node, other)
			n.Hold(other, node)
		}
	}
}

// Heal ends every Hold.
func (n *Network) Heal() {
	for _, ways := range n.ways {
		for _, way := range ways {
			way.Heal()
		}
	}
}

// Cut breaks all connections between the nodes.
func (n *Network) Cut() {
	for _, ways := range n.ways {
		for _, way := range ways {
			way.Cut()
		}
	}
}
