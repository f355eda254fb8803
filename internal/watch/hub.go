package watch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"codeq/actor"
	"codeq/internal/auth"
	"codeq/mailbox"
	"codeq/wire"
)

const (
	// refreshForMs is the time between two looks at the log while somebody watches.
	refreshForMs = wire.MinWatchEveryMs
	// maxAnswers is how many answers may wait until a client is read again.
	maxAnswers = 64
	// missedPings ends a socket: pings without a byte of the client after them.
	missedPings = 2
	// expiryLeewayMs is how long a socket lives after the end of its credential.
	expiryLeewayMs = 30_000
	// closeGrace is how long clients may take to close their sockets.
	closeGrace = 2 * time.Second
	// maxReading is how many pages are read at a time.
	maxReading = 4
	// helloForMs is how long a socket may be open without a hello.
	helloForMs = 5000
)

// Options are the options of a Hub. All but MaxSockets, PingSeconds and Refused are required.
type Options struct {
	Facts
	// Refresh brings the board up to date.
	Refresh func(b *Board, nowMs int64)
	// ReadTasks and ReadPage read tasks, and wait until what they read is on disk: those of ids
	// that are there, and what a page shows first, as Tasks, Scanned and Cursor.
	ReadTasks func(ctx context.Context, who *auth.Principal, ids []wire.TaskID) ([]*wire.Task, *wire.Error)
	ReadPage  func(ctx context.Context, who *auth.Principal, f *wire.WatchSubscribe) (*wire.WatchSnapshot, *wire.Error)
	Auth      auth.Authenticator
	// NowMs is the clock of sockets, Unix milliseconds.
	NowMs func() int64
	Log   zerolog.Logger
	// MaxSockets bounds the sockets and streams that are open; 0 is no bound.
	MaxSockets int
	// PingSeconds is the time between two pings of a socket; 0 is wire.PingSeconds.
	PingSeconds int
	// Refused is called for each hello that is refused because of its client; nil is no report.
	Refused func(auth.Attempt)
}

// Hub has the clients that watch. One goroutine owns the board and all subscribers: it looks at
// the log every 250 ms while there is a client, and sleeps otherwise. Its exported methods may be
// called from any goroutine.
type Hub struct {
	o          Options
	box        *mailbox.Mailbox[func()]
	actor      *actor.Actor
	goroutines sync.WaitGroup

	mu       sync.Mutex
	open     int
	draining bool

	// Owned by the goroutine of the hub.
	board       *Board
	clients     []*client
	refreshedAt int64
	stopped     bool
	// reading counts the pages that are read now.
	reading int
}

const restarts = "the server restarts; connect again"

// NewHub makes a hub without clients and starts its goroutine, which Shutdown ends.
func NewHub(o Options) *Hub {
	if o.PingSeconds == 0 {
		o.PingSeconds = wire.PingSeconds
	}
	h := &Hub{o: o, board: NewBoard(o.Facts), box: mailbox.New[func()](mailbox.Limits{Messages: 1 << 20, Bytes: 1 << 20})}
	h.actor = actor.Start(h.box, h.round)
	return h
}

// Count is the number of open sockets and streams.
func (h *Hub) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// reserve counts one more client, or says why it is refused.
func (h *Hub) reserve() *wire.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return wire.Refuse(wire.CodeDraining, "the server is shutting down; try again when it is back")
	}
	if h.o.MaxSockets > 0 && h.open >= h.o.MaxSockets {
		return wire.Refuse(wire.CodeOverloaded, "too many clients watch this server; try again when others have left")
	}
	h.open++
	h.goroutines.Add(1)
	return nil
}

// release takes back what reserve counted.
func (h *Hub) release() {
	h.mu.Lock()
	h.open--
	h.mu.Unlock()
	h.goroutines.Done()
}

// do runs f on the goroutine of the hub. It does not wait. After the end of the hub f does not
// run; then no client is left.
func (h *Hub) do(f func()) {
	// Full or closed: each client has at most a few functions here, so it is closed.
	_ = h.box.Push([]func(){f}, 0, mailbox.ClassKeep)
}

// round runs what was asked, and every 250 ms looks at the log and feeds all clients.
func (h *Hub) round(batch []func()) time.Duration {
	for _, f := range batch {
		f()
	}
	if len(h.clients) == 0 {
		return actor.Forever
	}
	nowMs := h.o.NowMs()
	if wait := h.refreshedAt + refreshForMs - nowMs; wait > 0 && wait <= refreshForMs {
		return time.Duration(wait) * time.Millisecond
	}
	h.refresh(nowMs)
	for _, c := range slices.Clone(h.clients) {
		h.look(c, nowMs)
		h.feed(c)
	}
	h.readPages()
	return refreshForMs * time.Millisecond
}

func (h *Hub) refresh(nowMs int64) {
	h.refreshedAt = nowMs
	h.o.Refresh(h.board, nowMs)
}

// readPages begins to read the pages that have changed, of each client one at a time. A client that
// was read for comes last next time.
func (h *Hub) readPages() {
	for _, c := range slices.Clone(h.clients) {
		if h.reading >= maxReading {
			return
		}
		if c.sub == nil || c.reads {
			continue
		}
		f, rows := c.sub.Wants(h.o.NowMs())
		if f == nil {
			continue
		}
		h.reading++
		c.reads = true
		h.clients = append(slices.DeleteFunc(h.clients, func(other *client) bool { return other == c }), c)
		h.goroutines.Add(1)
		go h.readPage(c, c.who, f, rows)
	}
}

// readPage is a goroutine that reads a page again.
func (h *Hub) readPage(c *client, who *auth.Principal, f *wire.WatchSubscribe, rows []wire.TaskID) {
	defer h.goroutines.Done()
	shows := &Shows{At: h.o.Events.Positions()}
	if f.Filter == nil {
		shows.Page, shows.Err = h.o.ReadPage(c.ctx, who, f)
	}
	if shows.Err == nil {
		shows.Rows, shows.Err = h.o.ReadTasks(c.ctx, who, rows)
	}
	h.do(func() {
		h.reading--
		if c.reads = false; !c.left && !c.closes {
			c.sub.Show(h.o.NowMs(), f, shows)
			h.feed(c)
		}
		h.readPages()
	})
}

// join makes a client a subscriber. Its first answers see the log of now.
func (h *Hub) join(c *client, who *auth.Principal, format framing) *wire.Error {
	h.refresh(h.o.NowMs())
	sub, refusal := NewSubscriber(h.board, who, h.o.NowMs())
	if refusal == nil {
		c.sub, c.who = sub, who
		sub.format = format
		c.pingAtMs = h.o.NowMs() + int64(h.o.PingSeconds)*1000
	}
	return refusal
}

// admit makes a client one of those that are fed.
func (h *Hub) admit(c *client) {
	h.do(func() {
		c.helloBy = h.o.NowMs() + helloForMs
		h.clients = append(h.clients, c)
		if h.stopped {
			h.end(c, closeRestart, restarts)
		}
	})
}

// leave drops a client. A second call does nothing.
func (h *Hub) leave(c *client) {
	if c.left {
		return
	}
	c.left = true
	h.clients = slices.DeleteFunc(h.clients, func(other *client) bool { return other == c })
	close(c.out)
	close(c.ended)
}

// feed gives the writer of a client the next message, if it has sent the last one.
func (h *Hub) feed(c *client) {
	if c.busy || c.left {
		return
	}
	o := outgoing{pong: c.pong, ping: c.ping}
	c.pong, c.ping = nil, false
	if c.sub != nil {
		o.message = c.sub.Next(h.o.NowMs())
	}
	if o.message == nil && c.closing != nil {
		o.closing, c.closing = c.closing, nil
	}
	if o.message == nil && o.pong == nil && !o.ping && o.closing == nil {
		return
	}
	c.busy = true
	c.out <- o
	if c.mayRead != nil && c.sub.Answers() < maxAnswers {
		close(c.mayRead)
		c.mayRead = nil
	}
}

// end closes a client once its answers have left.
func (h *Hub) end(c *client, code uint16, reason string) {
	if !c.closes {
		c.closes, c.closing = true, &closing{code: code, reason: reason}
		if c.sub != nil {
			c.sub.list = nil
		}
		if c.mayRead != nil {
			close(c.mayRead)
			c.mayRead = nil
		}
	}
	h.feed(c)
}

// look does what is due for a client: its ping, the end of its credential.
func (h *Hub) look(c *client, nowMs int64) {
	if c.who == nil {
		if nowMs >= c.helloBy {
			h.end(c, closeIdle, "no hello within 5 seconds")
		}
		return
	}
	if c.who.ExpiredAt(nowMs - expiryLeewayMs) {
		h.end(c, closeCredential, "the credential has expired")
	}
	if c.isStream || nowMs < c.pingAtMs {
		return
	}
	c.pingAtMs = nowMs + int64(h.o.PingSeconds)*1000
	if c.missed++; c.heard.Swap(false) {
		c.missed = 0
	}
	if c.missed >= missedPings {
		h.end(c, closeIdle, "no pong for two pings")
	}
	c.ping = true
}

// Recheck ends the clients whose credential was revoked or has other rights now. The caller
// calls it when the tokens have changed.
func (h *Hub) Recheck() {
	h.do(func() {
		for _, c := range slices.Clone(h.clients) {
			if c.who == nil {
				continue
			}
			switch now := c.who.Current(); {
			case now == nil:
				h.end(c, closeCredential, "the credential was revoked")
			case !now.SameRights(c.who):
				h.end(c, closeCredential, "the rights of the credential have changed; connect again")
			default:
				c.who = now
			}
		}
	})
}

// Shutdown refuses new clients, tells the others that the server stops, closes their sockets and
// returns when their goroutines have ended. A socket that stays open after closeGrace is cut.
func (h *Hub) Shutdown() {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	h.do(func() {
		h.stopped = true
		for _, c := range slices.Clone(h.clients) {
			if c.sub != nil {
				c.sub.Say(&wire.Draining{Reason: "shutdown"})
			}
			h.end(c, closeRestart, restarts)
		}
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.goroutines.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(closeGrace):
		h.do(func() {
			for _, c := range slices.Clone(h.clients) {
				c.cut()
			}
		})
		<-ended
	}
	h.actor.Stop()
}
