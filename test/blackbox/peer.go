package blackbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lxzan/gws"

	"codeq/wire"
)

// ErrNoAnswer says that a connection ended, or that the patience of the caller
// did, before an answer came: what was asked may have been done or not.
var ErrNoAnswer = errors.New("no answer came")

const (
	// peerFrames is how many frames of one kind wait for the test.
	peerFrames = 100_000
	// handshakeFor bounds the upgrade of a connection.
	handshakeFor = 10 * time.Second
	// peerMessageBytes is the largest message a peer takes.
	peerMessageBytes = 16 << 20
)

// Peer is one session spoken by hand. It answers pings, does nothing else by
// itself, and never connects again.
type Peer struct {
	// Welcome is what the server said to the hello.
	Welcome *wire.Welcome
	// Tasks, Revoked and Draining get those frames as they come.
	Tasks    chan *wire.TaskFrame
	Revoked  chan *wire.Revoked
	Draining chan *wire.Draining

	conn   *gws.Conn
	events *peerEvents
	ref    atomic.Int64
}

// Dial opens a session at host:port with a hello. The error is a *wire.Error
// when the server refused the hello.
func Dial(ctx context.Context, addr string, hello *wire.Hello) (*Peer, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	p := &Peer{
		Tasks:    make(chan *wire.TaskFrame, peerFrames),
		Revoked:  make(chan *wire.Revoked, peerFrames),
		Draining: make(chan *wire.Draining, 1),
	}
	p.events = &peerEvents{peer: p, first: make(chan wire.ServerFrame, 1), gone: make(chan struct{}),
		asked: make(map[int64]chan wire.ServerFrame)}
	// The end of ctx ends the handshake too.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // it may have ended already
	defer stop()
	p.conn, _, err = gws.NewClientFromConn(p.events, &gws.ClientOption{
		Addr: "ws://" + addr + "/v1/codeq/session", HandshakeTimeout: handshakeFor, ReadMaxPayloadSize: peerMessageBytes,
	}, conn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a session: %w", err), closeConn(conn))
	}
	go p.conn.ReadLoop()
	if err := p.greet(ctx, hello); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// closeConn closes a connection that may be closed already.
func closeConn(conn net.Conn) error {
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (p *Peer) greet(ctx context.Context, hello *wire.Hello) error {
	if err := p.Say(hello); err != nil {
		return err
	}
	select {
	case f := <-p.events.first:
		switch f := f.(type) {
		case *wire.Welcome:
			p.Welcome = f
			return nil
		case *wire.ErrorFrame:
			return f.Err
		}
		return fmt.Errorf("the first frame of the server is %T", f)
	case <-p.events.gone:
		return fmt.Errorf("greet: the connection ended with %d: %w", p.CloseCode(), ErrNoAnswer)
	case <-ctx.Done():
		return fmt.Errorf("greet: %w: %w", ErrNoAnswer, context.Cause(ctx))
	}
}

// Say sends frames in one message. Answers to them are lost unless they carry
// no ref.
func (p *Peer) Say(frames ...wire.ClientFrame) error {
	message := []byte{'['}
	for i, f := range frames {
		if i > 0 {
			message = append(message, ',')
		}
		message = wire.AppendClientFrame(message, f)
	}
	return p.write(append(message, ']'))
}

func (p *Peer) write(message []byte) error {
	if err := p.conn.WriteMessage(gws.OpcodeText, message); err != nil {
		return fmt.Errorf("say: %w: %w", ErrNoAnswer, err)
	}
	return nil
}

// AskText is Ask for a frame of this type with members as they are written, each
// behind a comma: what no frame of package wire can say.
func (p *Peer) AskText(ctx context.Context, kind, members string) (*wire.OK, error) {
	ref := p.ref.Add(1)
	answer := p.events.expect(ref)
	if err := p.write(fmt.Appendf(nil, `{"type":%q,"ref":%d%s}`, kind, ref, members)); err != nil {
		return nil, err
	}
	return p.await(ctx, answer)
}

// Ask sends the frame that make builds around a new ref, and waits for its
// answer: a *wire.Error for a refusal, ErrNoAnswer when the connection or ctx
// ends first.
func (p *Peer) Ask(ctx context.Context, make func(ref wire.Ref) wire.ClientFrame) (*wire.OK, error) {
	ref := p.ref.Add(1)
	answer := p.events.expect(ref)
	if err := p.Say(make(wire.Ref{Value: ref, Present: true})); err != nil {
		return nil, err
	}
	return p.await(ctx, answer)
}

// AskTogether is Ask for n frames in one message. The first refusal, or answer
// that does not come, ends it.
func (p *Peer) AskTogether(ctx context.Context, n int, make func(ref wire.Ref) wire.ClientFrame) ([]*wire.OK, error) {
	var frames []wire.ClientFrame
	var answers []<-chan wire.ServerFrame
	for range n {
		ref := p.ref.Add(1)
		answers = append(answers, p.events.expect(ref))
		frames = append(frames, make(wire.Ref{Value: ref, Present: true}))
	}
	if err := p.Say(frames...); err != nil {
		return nil, err
	}
	var all []*wire.OK
	for _, answer := range answers {
		ok, err := p.await(ctx, answer)
		if err != nil {
			return nil, err
		}
		all = append(all, ok)
	}
	return all, nil
}

// await waits for one answer.
func (p *Peer) await(ctx context.Context, answer <-chan wire.ServerFrame) (*wire.OK, error) {
	select {
	case f := <-answer:
		return judge(f)
	case <-p.events.gone:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrNoAnswer, context.Cause(ctx))
	}
	select {
	case f := <-answer: // it came before the end
		return judge(f)
	default:
		return nil, fmt.Errorf("%w: the connection ended with %d", ErrNoAnswer, p.CloseCode())
	}
}

func judge(f wire.ServerFrame) (*wire.OK, error) {
	switch f := f.(type) {
	case *wire.OK:
		return f, nil
	case *wire.ErrorFrame:
		return nil, f.Err
	}
	panic(fmt.Sprintf("%T is no answer", f))
}

// Subscribe takes the tasks of one command.
func (p *Peer) Subscribe(ctx context.Context, command string, window, leaseSeconds int) error {
	_, err := p.Ask(ctx, func(ref wire.Ref) wire.ClientFrame {
		return &wire.Subscribe{Ref: ref, Commands: []string{command}, Window: window, LeaseSeconds: leaseSeconds}
	})
	return err
}

// Complete ends a delivery with a result.
func (p *Peer) Complete(ctx context.Context, task wire.TaskRef, result string) error {
	_, err := p.Ask(ctx, func(ref wire.Ref) wire.ClientFrame {
		return &wire.Result{Ref: ref, TaskRef: task,
			ResultRequest: wire.ResultRequest{Status: wire.StatusCompleted, Result: []byte(result)}}
	})
	return err
}

// RefOf names the delivery of a frame.
func RefOf(f *wire.TaskFrame) wire.TaskRef {
	return wire.TaskRef{TaskID: f.Task.ID, Token: f.Token}
}

// Mute says whether the peer leaves pings unanswered from now on.
func (p *Peer) Mute(mute bool) { p.events.mute.Store(mute) }

// Gone is closed when the connection has ended.
func (p *Peer) Gone() <-chan struct{} { return p.events.gone }

// CloseCode is what the server closed the session with; 0 while it is open, or
// when the connection just broke.
func (p *Peer) CloseCode() int { return int(p.events.code.Load()) }

// Close breaks the connection off, without a word, and returns when the reader
// has ended. Closing twice is harmless.
func (p *Peer) Close() {
	_ = p.conn.NetConn().Close() // it may be closed already
	<-p.events.gone
}

// peerEvents is the reader of a peer.
type peerEvents struct {
	gws.BuiltinEventHandler
	peer  *Peer
	first chan wire.ServerFrame
	gone  chan struct{}
	code  atomic.Int64
	mute  atomic.Bool

	greeted bool // of the reader alone

	mu    sync.Mutex
	asked map[int64]chan wire.ServerFrame
}

func (e *peerEvents) expect(ref int64) <-chan wire.ServerFrame {
	answer := make(chan wire.ServerFrame, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked[ref] = answer
	return answer
}

// answered hands an answer to whoever asked; one that nobody waits for, as to a
// frame that was only said, is dropped.
func (e *peerEvents) answered(ref wire.Ref, f wire.ServerFrame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if answer := e.asked[ref.Value]; ref.Present && answer != nil {
		delete(e.asked, ref.Value)
		answer <- f
	}
}

// OnPing implements gws.Event.
func (e *peerEvents) OnPing(conn *gws.Conn, payload []byte) {
	if !e.mute.Load() {
		_ = conn.WritePong(payload) // a socket that fails is told of by OnClose
	}
}

// OnClose implements gws.Event.
func (e *peerEvents) OnClose(_ *gws.Conn, err error) {
	var end *gws.CloseError
	if errors.As(err, &end) {
		e.code.Store(int64(end.Code))
	}
	close(e.gone)
}

// OnMessage implements gws.Event.
func (e *peerEvents) OnMessage(conn *gws.Conn, message *gws.Message) {
	frames, err := wire.ParseServerMessage(append([]byte(nil), message.Bytes()...))
	if err := errors.Join(err, message.Close()); err != nil {
		// A server that speaks another language is a broken connection.
		_ = conn.NetConn().Close() // it may be closed already
		return
	}
	for _, f := range frames {
		e.frame(f)
	}
}

func (e *peerEvents) frame(f wire.ServerFrame) {
	if !e.greeted {
		e.greeted = true
		e.first <- f
		return
	}
	switch f := f.(type) {
	case *wire.TaskFrame:
		e.peer.Tasks <- f
	case *wire.Revoked:
		e.peer.Revoked <- f
	case *wire.Draining:
		select {
		case e.peer.Draining <- f:
		default: // one is enough
		}
	case *wire.OK:
		e.answered(f.Ref, f)
	case *wire.ErrorFrame:
		e.answered(f.Ref, f)
	}
}
