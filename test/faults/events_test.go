package faults

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeq/test/blackbox"
	"codeq/wire"
)

// feed is a client of GET /v1/codeq/events as server-sent events.
type feed struct {
	t      *testing.T
	lines  *bufio.Scanner
	lastID string
	close  func()
	// came are frames of the last line that were not read yet.
	came []wire.ServerFrame
}

// follow opens a feed of events; after is the id of the last event that the client has.
func (x *site) follow(query, after, token string) *feed {
	x.t.Helper()
	return x.stream("events"+query, after, token)
}

// stream opens a feed of a kind, with the parameters behind it.
func (x *site) stream(kind, after, token string) *feed {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.ctx, patience)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, x.server.URL()+"/v1/codeq/events?kind="+kind, http.NoBody)
	if err != nil {
		x.t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	if after != "" {
		request.Header.Set("Last-Event-Id", after)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(request)
	if err != nil || answer.StatusCode != http.StatusOK {
		x.t.Fatalf("events: %v, %v", answer, err)
	}
	f := &feed{t: x.t, lines: bufio.NewScanner(answer.Body), lastID: after}
	f.lines.Buffer(nil, 1<<20)
	f.close = func() {
		cancel()
		_ = answer.Body.Close() // its request has ended
	}
	x.t.Cleanup(f.close)
	return f
}

// next is the next frame; nil at the end of the feed.
func (f *feed) next() wire.ServerFrame {
	f.t.Helper()
	for len(f.came) == 0 && f.lines.Scan() {
		line := f.lines.Text()
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			f.lastID = id
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		frames, err := wire.ParseWatchMessage([]byte("[" + data + "]"))
		if err != nil {
			f.t.Fatalf("%s: %v", data, err)
		}
		f.came = frames
	}
	if len(f.came) == 0 {
		return nil
	}
	frame := f.came[0]
	f.came = f.came[1:]
	return frame
}

// nextOf is the next frame of a type; others are passed over.
func nextOf[F wire.ServerFrame](f *feed) F {
	f.t.Helper()
	for {
		frame := f.next()
		if frame == nil {
			f.t.Fatalf("the feed ends before a %T: %v", *new(F), f.lines.Err())
		}
		if frame, ok := frame.(F); ok {
			return frame
		}
	}
}

// rawSocket upgrades a connection and reads nothing of what comes then.
func (x *site) rawSocket() net.Conn {
	x.t.Helper()
	conn, err := net.Dial("tcp", x.server.Addr)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = conn.Close() }) // it may be closed already
	_, err = fmt.Fprintf(conn, "GET /v1/codeq/events HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
		x.server.Addr, wire.WatchSubprotocol)
	if err != nil {
		x.t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		x.t.Fatalf("upgrade: %v, %v", answer, err)
	}
	_ = answer.Body.Close() // there is none
	return conn
}

// masked is a text message of a client, with a mask of zeros, which leaves it as it is.
func masked(text string) []byte {
	header := []byte{0x81, 0x80 | 126, byte(len(text) >> 8), byte(len(text)), 0, 0, 0, 0}
	return append(header, text...)
}

// socket opens a feed over a WebSocket, which begins with frames of the client.
func (x *site) socket(frames string) *feed {
	x.t.Helper()
	conn := x.rawSocket()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		x.t.Fatal(err)
	}
	if _, err := conn.Write(masked(`[{"type":"hello"},` + frames + `]`)); err != nil {
		x.t.Fatal(err)
	}
	f := &feed{t: x.t, lines: bufio.NewScanner(conn)}
	f.lines.Buffer(nil, 1<<20)
	f.lines.Split(messageLine)
	return f
}

// messageLine splits WebSocket messages of a server into lines of a stream. Each is an array, whose
// brackets it leaves out.
func messageLine(data []byte, atEOF bool) (advance int, line []byte, err error) {
	const small, middle, large = 2, 4, 10 // headers by their length
	if len(data) < large && !atEOF || len(data) < small {
		return 0, nil, nil
	}
	header, n := small, int(data[1])
	switch n {
	case 126:
		header, n = middle, int(binary.BigEndian.Uint16(data[small:]))
	case 127:
		header, n = large, int(binary.BigEndian.Uint64(data[small:]))
	}
	if len(data) < header+n {
		return 0, nil, nil
	}
	if data[0] != 0x81 { // not text
		return header + n, []byte{}, nil
	}
	return header + n, append([]byte("data: "), data[header+1:header+n-1]...), nil
}

// A subscriber that reads nothing and asks for more and more holds one message and one answer: the
// server does not grow, takes tasks as before, and tells the others what happens.
func TestE01ADeafSubscriberThatFloodsCostsNothing(t *testing.T) {
	x := newSite(t)
	x.post(command, 200, 0)
	before := x.server.ResidentBytes()
	ask := masked(`[` + strings.Repeat(`{"type":"subscribe","ref":1,"id":"q","kind":"queues"},{"type":"subscribe","ref":2,"id":"e","kind":"events","from":{"0":0,"1":0,"2":0,"3":0}},`, 300) +
		`{"type":"unsubscribe","id":"q"}]`)
	const deaf = 8
	for range deaf {
		conn := x.rawSocket()
		if _, err := conn.Write(masked(`{"type":"hello"}`)); err != nil {
			t.Fatal(err)
		}
		stop := x.inBackground(func(ctx context.Context) {
			for ctx.Err() == nil {
				if _, err := conn.Write(ask); err != nil {
					return // cut, or the end of the test
				}
			}
		})
		t.Cleanup(func() {
			_ = conn.Close() // ends its writes
			stop()
		})
	}
	f := x.follow("&maxPerSecond=1000", "", "")
	nextOf[*wire.WatchSnapshot](f)
	seen := map[wire.TaskID]bool{}
	ids := x.post("heard", 50, 0)
	for len(seen) < len(ids) {
		if e := nextOf[*wire.WatchEvent](f); e.Command == "heard" {
			seen[e.Task] = true
		}
	}
	if grown := x.server.ResidentBytes() - before; grown > 150<<20 {
		t.Errorf("the server grew by %d MiB", grown>>20)
	}
}

// A thousand subscribers that come and go leave no goroutine and no memory.
func TestE02AThousandSubscribersComeAndGo(t *testing.T) {
	x := newSite(t)
	x.post(command, 10, 0)
	goroutines := func() float64 { return blackbox.Figure(x.server.Metrics(), "go_goroutines") }
	before := goroutines()
	for i := range 1000 {
		conn := x.rawSocket()
		if _, err := conn.Write(masked(`[{"type":"hello"},{"type":"subscribe","id":"q","kind":"queues"},{"type":"subscribe","id":"e","kind":"events"}]`)); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			// Half of them leave before the first message.
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	x.eventually(patience, "the goroutines are gone", func() bool { return goroutines() <= before+5 })
}

// A subscriber that resumes after a kill -9 gets what came while it was away, or is told how much
// the server does not have any more; no event comes twice, and the numbers go on.
func TestE03ASubscriberOverAKill(t *testing.T) {
	x := newSite(t)
	f := x.follow("", "", "")
	nextOf[*wire.WatchSnapshot](f)
	last := map[int]uint64{}
	for range x.post(command, 3, 0) {
		e := nextOf[*wire.WatchEvent](f)
		last[e.Shard] = e.Number
	}
	x.post(command, 2, 0) // the subscriber does not see them
	f.close()
	x.server.Kill()
	x.server.Start()
	f = x.follow("", f.lastID, "")
	x.post(command, 2, 0)
	heard := uint64(0)
	for heard < 4 {
		switch frame := f.next().(type) {
		case *wire.WatchSnapshot:
			t.Fatal("the positions of the same database are not good any more")
		case *wire.WatchGap:
			if frame.Reason != wire.GapEvicted || frame.From != last[frame.Shard]+1 {
				t.Errorf("the gap is %+v after %d", frame, last[frame.Shard])
			}
			last[frame.Shard] = frame.To
			heard += frame.Missed
		case *wire.WatchEvent:
			if frame.Number != last[frame.Shard]+1 {
				t.Errorf("event %d of shard %d comes after %d", frame.Number, frame.Shard, last[frame.Shard])
			}
			last[frame.Shard] = frame.Number
			heard++
		case nil:
			t.Fatalf("the feed ends: %v", f.lines.Err())
		}
	}
}

// Behind another database the positions mean nothing: the subscriber is told where it begins.
func TestE04ASubscriberOverAnotherDatabase(t *testing.T) {
	x := newSite(t)
	x.post(command, 5, 0)
	f := x.follow("", "", "")
	nextOf[*wire.WatchSnapshot](f)
	x.post(command, 1, 0)
	nextOf[*wire.WatchEvent](f)
	f.close()
	x.server.Stop()
	if err := os.RemoveAll(filepath.Clean(x.server.Dir)); err != nil {
		t.Fatal(err)
	}
	x.server.Start()
	x.post("other", 1, 0)
	creation, _, _ := strings.Cut(f.lastID, "/")
	f = x.follow("", f.lastID, "")
	w, at := nextOf[*wire.WatchWelcome](f), nextOf[*wire.WatchSnapshot](f).At
	if w.CreationID == creation {
		t.Errorf("two databases are both called %s", creation)
	}
	for shard, n := range at {
		if n > 1 {
			t.Errorf("shard %d begins after %d", shard, n)
		}
	}
	x.post("new", 1, 0)
	if e := nextOf[*wire.WatchEvent](f); e.Command != "new" {
		t.Errorf("the first event is %+v", e)
	}
}

// Nobody sees an event of another tenant, also not after a resume from the beginning.
func TestE05NobodySeesAnotherTenant(t *testing.T) {
	x := newSite(t, "--tokens", tenantsFile(t, "acme", "other"))
	const tasks = 20
	tokens := []string{"token-of-0", "token-of-1"}
	for _, token := range tokens {
		for range tasks {
			if _, err := x.api.As(token).Post(x.ctx, `{"command":"`+token+`","payload":1}`); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, token := range tokens {
		begin := x.follow("", "", token)
		creation := nextOf[*wire.WatchWelcome](begin).CreationID
		f := x.follow("", creation+"/0,0,0,0", token)
		for range tasks {
			if e := nextOf[*wire.WatchEvent](f); e.Command != token || e.Tenant != "" {
				t.Fatalf("%s sees %+v", token, e)
			}
		}
	}
}
