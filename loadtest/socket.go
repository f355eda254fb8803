package loadtest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/lxzan/gws"

	"codeq/wire"
)

const (
	sessionPath = "/v1/codeq/session"
	// maxServerMessageBytes is the largest message that the generator accepts.
	maxServerMessageBytes = 4 << 20
	// messageBytes and messageFrames are the size of a message to the server at
	// which the next one begins; both are well below the limits of the server.
	messageBytes  = 256 << 10
	messageFrames = wire.MaxMessageFrames / 2
	// readBufferBytes is large enough for one read to take all answers of one commit.
	readBufferBytes = 64 << 10

	handshakeFor = 10 * time.Second
	writeFor     = 30 * time.Second
)

// address is where and as whom to open sessions.
type address struct {
	url   string // http or https
	token string
	tls   *tls.Config
}

// socket is the connection of a session: a reader that passes each message to receive,
// and a writer that sends all frames since its last message together.
type socket struct {
	// static
	conn    *gws.Conn
	receive func(data []byte) error
	fail    func(error)

	welcome chan *wire.Welcome // one, from the reader
	wake    chan struct{}
	closing chan struct{}
	ended   sync.WaitGroup

	mu sync.Mutex
	// gathered are messages without their closing bracket; frames counts the frames of
	// the last one.
	gathered [][]byte
	frames   int
	spare    []byte

	// owned by the reader
	welcomed bool
}

// openSocket connects, says hello and waits for the welcome. After that receive
// is called in the reader for each message, and fail when the session ends by
// itself.
func openSocket(ctx context.Context, at *address, receive func([]byte) error, fail func(error)) (*socket, *wire.Welcome, error) {
	s := &socket{
		receive: receive, fail: fail,
		welcome: make(chan *wire.Welcome, 1),
		wake:    make(chan struct{}, 1), closing: make(chan struct{}),
	}
	header := http.Header{}
	header.Set("Sec-Websocket-Protocol", wire.Subprotocol)
	if at.token != "" {
		header.Set("Authorization", "Bearer "+at.token)
	}
	conn, answer, err := gws.NewClient(s, &gws.ClientOption{
		Addr: "ws" + strings.TrimPrefix(at.url, "http") + sessionPath, RequestHeader: header,
		TlsConfig: at.tls, HandshakeTimeout: handshakeFor,
		ReadMaxPayloadSize: maxServerMessageBytes, ReadBufferSize: readBufferBytes,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("open session at %s: %w", at.url, cmp.Or(redirected(answer), err))
	}
	s.conn = conn
	s.ended.Go(s.read)
	s.ended.Go(s.write)
	s.send(wire.AppendClientFrame(nil, &wire.Hello{WorkerID: "bench", MaxMessageBytes: maxServerMessageBytes}), 1)
	timer := time.NewTimer(handshakeFor)
	defer timer.Stop()
	select {
	case w := <-s.welcome:
		return s, w, nil
	case <-ctx.Done():
		err = cause(ctx)
	case <-timer.C:
		err = fmt.Errorf("open session at %s: the server sent no welcome within %s", at.url, handshakeFor)
	}
	s.close()
	return nil, nil, err
}

// send gathers frames, joined by commas, for the next message.
func (s *socket) send(frames []byte, count int) {
	s.mu.Lock()
	last := len(s.gathered) - 1
	if last < 0 || len(s.gathered[last])+len(frames) > messageBytes || s.frames+count > messageFrames {
		s.gathered = append(s.gathered, append(s.spare, '['))
		s.spare, s.frames = nil, 0
		last++
	} else {
		s.gathered[last] = append(s.gathered[last], ',')
	}
	s.gathered[last] = append(s.gathered[last], frames...)
	s.frames += count
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

// take removes the gathered messages.
func (s *socket) take(into [][]byte) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	into = append(into, s.gathered...)
	clear(s.gathered)
	s.gathered, s.frames = s.gathered[:0], 0
	return into
}

func (s *socket) giveSpare(message []byte) {
	s.mu.Lock()
	s.spare = message[:0]
	s.mu.Unlock()
}

// write is the writer.
func (s *socket) write() {
	var messages [][]byte
	for {
		select {
		case <-s.wake:
		case <-s.closing:
			return
		}
		// The same tick, or the same message of the server, wakes several goroutines
		// that send. Let them add their frames first.
		runtime.Gosched()
		messages = s.take(messages[:0])
		for _, m := range messages {
			s.allowWrite()
			if err := s.conn.WriteMessage(gws.OpcodeText, append(m, ']')); err != nil {
				s.failed(fmt.Errorf("write to session: %w", err))
				return
			}
			s.giveSpare(m)
		}
	}
}

// allowWrite sets the deadline of the next write. The deadline of an earlier write
// would end a pong that comes long after it.
func (s *socket) allowWrite() {
	// It fails only on a closed connection, where the write does too.
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeFor))
}

// read is the reader. gws panics on a frame with a negative length.
func (s *socket) read() {
	defer func() {
		if p := recover(); p != nil {
			s.failed(fmt.Errorf("read session: %v", p))
		}
		s.cut()
	}()
	s.conn.ReadLoop()
}

func (s *socket) cut() {
	_ = s.conn.NetConn().Close() // closed twice is no harm
}

// failed reports an end that close did not cause.
func (s *socket) failed(err error) {
	select {
	case <-s.closing:
	default:
		s.fail(err)
	}
}

// close ends the session and waits for its goroutines. Call it once.
func (s *socket) close() {
	close(s.closing)
	s.cut()
	s.ended.Wait()
}

// OnOpen implements gws.Event.
func (s *socket) OnOpen(*gws.Conn) {}

// OnClose implements gws.Event.
func (s *socket) OnClose(_ *gws.Conn, err error) {
	s.failed(fmt.Errorf("the server ended a session: %w", err))
}

// OnPing implements gws.Event. It echoes what came.
func (s *socket) OnPing(conn *gws.Conn, payload []byte) {
	s.allowWrite()
	if err := conn.WritePong(payload); err != nil {
		s.failed(fmt.Errorf("answer ping: %w", err))
	}
}

// OnPong implements gws.Event. Nothing here sends a ping.
func (s *socket) OnPong(*gws.Conn, []byte) {}

// OnMessage implements gws.Event.
func (s *socket) OnMessage(_ *gws.Conn, message *gws.Message) {
	var err error
	if s.welcomed {
		err = s.receive(message.Bytes())
	} else {
		err = s.readWelcome(message.Bytes())
	}
	_ = message.Close() // gives a buffer back, never fails
	if err != nil {
		s.failed(err)
		s.cut()
	}
}

// readWelcome reads the first message.
func (s *socket) readWelcome(data []byte) error {
	frames, err := wire.ParseServerMessage(append([]byte(nil), data...))
	if err != nil {
		return err
	}
	if len(frames) == 0 {
		return errors.New("open session: the server sent an empty message in place of a welcome")
	}
	switch f := frames[0].(type) {
	case *wire.Welcome:
		s.welcomed = true
		s.welcome <- f
		return nil
	case *wire.ErrorFrame:
		return f.Err
	}
	return fmt.Errorf("open session: the server sent %T in place of a welcome", frames[0])
}
