package loadtest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"codeq/wire"
)

const (
	// subscribeRef is the ref of the subscribe. A task has its number as ref, doubled
	// and made odd, and a result that of its slot, doubled: a session may post and work.
	subscribeRef = 1 << 61
	// repeatAfter is how long a result waits that was refused for now.
	repeatAfter = 5 * time.Millisecond
)

var emptyResult = []byte(`{}`)

// session posts tasks over one socket and completes every task that it gets at once.
type session struct {
	// static
	workload   *Workload
	socket     *socket
	subscribed chan struct{} // closed when the subscribe was answered
	encoders   sync.Pool     // of *encoder

	// owned by the reader
	tally   *Tally
	frame   frame
	result  wire.Result
	results []byte
	count   int // of results
	slots   []slot
	free    []int64

	mu sync.Mutex
	// repeats are results that are sent once more when timer fires.
	repeats     []byte
	repeatCount int
	timer       *time.Timer
	closed      bool
}

// slot is a result that has no answer yet. known is false for a task that is
// none of this run's; it is completed all the same.
type slot struct {
	number uint64
	known  bool
	ref    wire.TaskRef
}

// encoder is what a producer makes frames with.
type encoder struct {
	frame   wire.Enqueue
	frames  []byte
	payload []byte
}

func newSession(w *Workload, tally *Tally) *session {
	return &session{workload: w, tally: tally, subscribed: make(chan struct{})}
}

// Post implements Poster.
func (s *session) Post(first uint64, count int) error {
	e, _ := s.encoders.Get().(*encoder)
	if e == nil {
		e = &encoder{}
	}
	e.frames = e.frames[:0]
	inMessage := 0
	for n := first; n < first+uint64(count); n++ {
		if inMessage > 0 {
			e.frames = append(e.frames, ',')
		}
		e.payload = appendPayload(e.payload[:0], n, s.workload.PayloadBytes)
		e.frame.Command, e.frame.Payload = s.workload.CommandOf(n), e.payload
		e.frame.Ref = wire.Ref{Value: int64(n)<<1 | 1, Present: true}
		e.frames = wire.AppendClientFrame(e.frames, &e.frame)
		inMessage++
		if len(e.frames) >= messageBytes/2 {
			s.socket.send(e.frames, inMessage)
			e.frames, inMessage = e.frames[:0], 0
		}
	}
	if inMessage > 0 {
		s.socket.send(e.frames, inMessage)
	}
	s.encoders.Put(e)
	return nil
}

// subscribe asks for tasks. The answer closes subscribed.
func (s *session) subscribe() {
	s.socket.send(wire.AppendClientFrame(nil, &wire.Subscribe{
		Ref: wire.Ref{Value: subscribeRef, Present: true}, Commands: s.workload.Commands, Window: s.workload.Window,
	}), 1)
}

// receive is called by the reader for each message.
func (s *session) receive(data []byte) error {
	s.results, s.count = s.results[:0], 0
	s.tally.Begin()
	err := scanMessage(data, &s.frame, s.handle)
	s.tally.End()
	if s.count > 0 {
		s.socket.send(s.results, s.count)
	}
	return err
}

func (s *session) handle(f *frame) error {
	switch string(f.kind) {
	case "task":
		return s.complete(f)
	case "ok":
		return s.answered(f)
	case "error":
		return s.refused(f)
	case "revoked":
		return fmt.Errorf("the server took a task from its worker: %s", f.raw)
	case "draining":
		return errors.New("the server is shutting down")
	}
	return nil
}

// complete appends the result of a task.
func (s *session) complete(f *frame) error {
	id, idOK := readID(f.id)
	token, tokenOK := readToken(f.token)
	if !idOK || !tokenOK {
		return fmt.Errorf("a task came without its id or token: %q, %q", f.id, f.token)
	}
	n, known := s.tally.Delivered(id, f.payload)
	at := s.openSlot()
	s.slots[at] = slot{number: n, known: known, ref: wire.TaskRef{TaskID: id, Token: token}}
	s.results = s.appendResult(s.results, s.count, at)
	s.count++
	return nil
}

func (s *session) openSlot() int64 {
	if len(s.free) == 0 {
		s.slots = append(s.slots, slot{})
		return int64(len(s.slots) - 1)
	}
	at := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return at
}

func (s *session) appendResult(dst []byte, before int, at int64) []byte {
	if before > 0 {
		dst = append(dst, ',')
	}
	s.result.Ref = wire.Ref{Value: at << 1, Present: true}
	s.result.TaskRef = s.slots[at].ref
	s.result.ResultRequest.Result = emptyResult
	return wire.AppendClientFrame(dst, &s.result)
}

func (s *session) answered(f *frame) error {
	if f.ref == subscribeRef {
		close(s.subscribed)
		return nil
	}
	if f.ref&1 == 1 {
		id, ok := readID(f.taskID)
		if !ok {
			return fmt.Errorf("the answer to an enqueue names no task: %s", f.raw)
		}
		s.tally.Acked(uint64(f.ref>>1), id)
		return nil
	}
	at := f.ref >> 1
	if at < 0 || at >= int64(len(s.slots)) {
		return fmt.Errorf("an answer came to a result that was not sent: %s", f.raw)
	}
	if s.slots[at].known {
		s.tally.Completed(s.slots[at].number)
	}
	s.slots[at] = slot{}
	s.free = append(s.free, at)
	return nil
}

// refused counts the refusal of a task, and repeats a result that the server had no
// room for.
func (s *session) refused(f *frame) error {
	refusal, err := refusalIn(f)
	if err != nil {
		return err
	}
	if f.ref&1 == 1 {
		s.tally.Refused(uint64(f.ref>>1), refusal)
		return nil
	}
	at := f.ref >> 1
	if !refusal.Code.Retryable() || at < 0 || at >= int64(len(s.slots)) {
		return refusal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repeatCount == 0 && !s.closed {
		s.timer = time.AfterFunc(repeatAfter, s.repeat)
	}
	s.repeats = s.appendResult(s.repeats, s.repeatCount, at)
	s.repeatCount++
	return nil
}

// refusalIn reads the error of an error frame.
func refusalIn(f *frame) (*wire.Error, error) {
	frames, err := wire.ParseServerMessage(append([]byte(nil), f.raw...))
	if err != nil {
		return nil, err
	}
	if len(frames) == 1 {
		if e, ok := frames[0].(*wire.ErrorFrame); ok {
			return e.Err, nil
		}
	}
	return nil, errors.New("read server message: an error frame without an error")
}

// repeat sends the results again that were refused for now.
func (s *session) repeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repeatCount > 0 && !s.closed {
		s.socket.send(s.repeats, s.repeatCount)
	}
	s.repeats, s.repeatCount = s.repeats[:0], 0
}

func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.socket.close()
}
