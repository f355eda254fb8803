package chaos

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Way is one direction through a proxy.
type Way int

// The directions: from the client to the server, and back.
const (
	Up Way = iota
	Down
)

// Proxy is a bad network between clients and a server, connection by
// connection. It begins as a good one. What is set holds for the connections
// there are and for new ones; any goroutine.
type Proxy struct {
	// Addr is where clients connect.
	Addr string

	target   string
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	moved *sync.Cond // a condition has changed
	ways  [2]condition
	links map[*link]bool
	// taken counts the connections of clients, carried the bytes each way.
	taken   int
	carried [2]int64
	refuses bool
	closed  bool
	narrow  bool
	// idleFor is how long a connection may carry nothing; 0 is for ever.
	idleFor time.Duration
}

// condition is how one direction is.
type condition struct {
	silent bool
	held   bool
	delay  time.Duration
	// bytesPerSecond is how fast it is, 0 for no limit.
	bytesPerSecond int
	// leftBytes is how much still goes through before the direction turns
	// silent; less than 0 is no limit.
	leftBytes int64
}

// link is one connection through the proxy.
type link struct {
	proxy *Proxy
	ends  [2]*net.TCPConn // the client's, the server's
	cut   bool            // the proxy itself ended it
	// silent directions stay so: what was dropped would be missing.
	silent [2]bool
	idle   *time.Timer
}

// Start starts a proxy to the server at host:port, on a free port of the loopback address.
func Start(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	p := &Proxy{Addr: listener.Addr().String(), target: target, listener: listener, links: make(map[*link]bool)}
	p.moved = sync.NewCond(&p.mu)
	p.ways[Up].leftBytes, p.ways[Down].leftBytes = -1, -1
	p.wg.Go(p.accept)
	return p, nil
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.wg.Go(func() { p.carry(conn.(*net.TCPConn)) })
	}
}

// carry joins one connection of a client to the server until it ends.
func (p *Proxy) carry(client *net.TCPConn) {
	p.mu.Lock()
	p.taken++
	refuses := p.refuses || p.closed
	p.mu.Unlock()
	if refuses {
		reset(client)
		return
	}
	conn, err := net.Dial("tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	l := &link{proxy: p, ends: [2]*net.TCPConn{client, conn.(*net.TCPConn)}}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		l.reset()
		return
	}
	p.links[l] = true
	for _, end := range l.ends {
		if p.narrow {
			_ = end.SetReadBuffer(narrowBytes)  // it only gets faster
			_ = end.SetWriteBuffer(narrowBytes) // it only gets faster
		}
	}
	l.startIdle(p.idleFor)
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.pump(Up, l.ends[0], l.ends[1]) })
	l.pump(Down, l.ends[1], l.ends[0])
	both.Wait()
	p.mu.Lock()
	delete(p.links, l)
	if l.idle != nil {
		l.idle.Stop()
	}
	p.mu.Unlock()
	l.reset()
}

// pump carries bytes one way. The end of one side becomes the end of the other,
// unless the direction is silent: then nobody learns of it.
func (l *link) pump(way Way, from, to *net.TCPConn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer[:l.proxy.atATime(way, len(buffer))])
		n, open := l.proxy.pass(l, way, n)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				reset(from)
				return
			}
		}
		if err == nil {
			continue
		}
		if !open {
			l.proxy.awaitCut(l, way)
		}
		l.end(to, err)
		return
	}
}

// end tells the other side how this one ended: in order, or broken.
func (l *link) end(to *net.TCPConn, err error) {
	if errors.Is(err, io.EOF) {
		_ = to.CloseWrite() // it may have ended too
		return
	}
	reset(to)
}

// pass waits as long as the direction asks for and says how many of n bytes go
// through, and whether the direction is open.
func (p *Proxy) pass(l *link, way Way, n int) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &p.ways[way]
	if l.idle != nil && n > 0 {
		l.idle.Reset(p.idleFor)
	}
	delay := w.delay
	if w.bytesPerSecond > 0 {
		delay += time.Duration(n) * time.Second / time.Duration(w.bytesPerSecond)
	}
	if delay > 0 && n > 0 {
		p.mu.Unlock()
		time.Sleep(delay)
		p.mu.Lock()
	}
	for w.held && !l.cut && !p.closed {
		p.moved.Wait()
	}
	if w.leftBytes >= 0 {
		n = int(min(int64(n), w.leftBytes))
		w.leftBytes -= int64(n)
		if w.leftBytes == 0 && n > 0 {
			w.silent, l.silent[way] = true, true
			p.carried[way] += int64(n)
			return n, false
		}
	}
	if w.silent || l.silent[way] {
		l.silent[way] = true
		return 0, false
	}
	p.carried[way] += int64(n)
	return n, true
}

// awaitCut keeps the end of one side from the other while the direction is
// silent.
func (p *Proxy) awaitCut(l *link, way Way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l.silent[way] && !l.cut && !p.closed {
		p.moved.Wait()
	}
}

func (p *Proxy) change(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.moved.Broadcast()
}

// Silence drops everything that goes these ways, the end of a connection too:
// nobody is told, as when a cable is pulled or a firewall forgets. Both sides
// may go on writing.
func (p *Proxy) Silence(ways ...Way) {
	p.change(func() {
		for _, w := range ways {
			p.ways[w].silent = true
			for l := range p.links {
				l.silent[w] = true
			}
		}
	})
}

// SilenceAfter lets that many more bytes through one way and then drops the
// rest, in the middle of whatever is being said.
func (p *Proxy) SilenceAfter(way Way, more int64) {
	p.change(func() { p.ways[way].leftBytes = more })
}

// Hold keeps what goes these ways, in order, until Heal; the side that writes
// runs into full buffers.
func (p *Proxy) Hold(ways ...Way) {
	p.change(func() {
		for _, w := range ways {
			p.ways[w].held = true
		}
	})
}

// Delay has everything that goes these ways arrive later.
func (p *Proxy) Delay(delay time.Duration, ways ...Way) {
	p.change(func() {
		for _, w := range ways {
			p.ways[w].delay = delay
		}
	})
}

// Slow lets so many bytes a second through these ways, for each connection, and
// has no room for more than a few: whoever writes runs into full buffers, as over
// a thin line. The buffers of the system are made small for connections from now
// on.
func (p *Proxy) Slow(bytesPerSecond int, ways ...Way) {
	p.change(func() {
		p.narrow = true
		for _, w := range ways {
			p.ways[w].bytesPerSecond = bytesPerSecond
		}
	})
}

// narrowBytes is the room of a slow connection, in either direction. With less the
// system stops and goes on a line of this kind.
const narrowBytes = 32 << 10

// atATime is how much is carried in one piece: of a slow way what takes a tenth of
// a second.
func (p *Proxy) atATime(way Way, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes := p.ways[way].bytesPerSecond; bytes > 0 {
		return min(max(bytes/10, 1), most)
	}
	return most
}

// Heal makes the network good again, for new connections and for those that
// have lost nothing; the others stay silent.
func (p *Proxy) Heal() {
	p.change(func() {
		p.ways = [2]condition{{leftBytes: -1}, {leftBytes: -1}}
		p.refuses = false
	})
}

// CutIdle resets connections that carry nothing for so long, as proxies and
// firewalls do. It holds for new ones.
func (p *Proxy) CutIdle(idleFor time.Duration) { p.change(func() { p.idleFor = idleFor }) }

// startIdle begins to count; p.mu is held.
func (l *link) startIdle(idleFor time.Duration) {
	if idleFor > 0 {
		l.idle = time.AfterFunc(idleFor, func() {
			l.proxy.change(func() {
				l.cut = true
				l.reset()
			})
		})
	}
}

// Refuse resets new connections at once, until Heal.
func (p *Proxy) Refuse() { p.change(func() { p.refuses = true }) }

// Cut resets every connection on both sides.
func (p *Proxy) Cut() {
	p.change(func() {
		for l := range p.links {
			l.cut = true
			l.reset()
		}
	})
}

// HalfOpen resets the clients' side of every connection and leaves the server
// with sockets that nobody is behind.
func (p *Proxy) HalfOpen() {
	p.Silence(Up, Down)
	p.change(func() {
		for l := range p.links {
			reset(l.ends[0])
		}
	})
}

// Taken is how many connections clients have made.
func (p *Proxy) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// Links is how many connections go through the proxy now.
func (p *Proxy) Links() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// CarriedBytes is how much went through one way.
func (p *Proxy) CarriedBytes(way Way) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.carried[way]
}

// Close ends the proxy and every connection through it, and returns when nothing of it runs.
func (p *Proxy) Close() {
	_ = p.listener.Close() // a second call finds it closed
	p.change(func() {
		p.closed = true
		for l := range p.links {
			l.reset()
		}
	})
	p.wg.Wait()
}

func (l *link) reset() {
	reset(l.ends[0])
	reset(l.ends[1])
}

// reset breaks a connection off so that the other side is told at once, with
// what is on its way lost.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // a connection that has ended needs none
	_ = conn.Close()      // it may be closed already
}
