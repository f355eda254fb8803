package loadtest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"codeq/wire"
)

const (
	// subscribeRef is the ref of the subscribe; results have the number of
	// their slot, which is smaller.
	subscribeRef = 1 << 40
	// againAfter is how long a result waits that was refused for now.
	againAfter = 5 * time.Millisecond
)

var emptyResult = []byte(`{}`)

// workerSession completes every task it is given at once.
type workerSession struct {
	socket *socket
	fail   func(error)
	seated chan struct{} // closed when the subscribe was answered

	// owned by the reader
	tally   *Tally
	frame   frame
	result  wire.Result
	results []byte
	count   int
	slots   []slot
	free    []int64

	mu sync.Mutex
	// again are results that are said once more when timer fires.
	again      []byte
	againCount int
	timer      *time.Timer
	closed     bool
}

// slot is a result that has no answer yet. known is false for a task that is
// none of this run's; it is completed all the same.
type slot struct {
	number uint64
	known  bool
	ref    wire.TaskRef
}

// hear runs in the reader.
func (w *workerSession) hear(data []byte) error {
	w.results, w.count = w.results[:0], 0
	w.tally.Begin()
	err := scanMessage(data, &w.frame, w.take)
	w.tally.End()
	if w.count > 0 {
		w.socket.send(w.results, w.count)
	}
	return err
}

func (w *workerSession) take(f *frame) error {
	switch string(f.kind) {
	case "task":
		return w.work(f)
	case "ok":
		return w.answered(f)
	case "error":
		return w.refused(f)
	case "revoked":
		return fmt.Errorf("a task was taken from its worker: %s", f.raw)
	case "draining":
		return errors.New("the server is shutting down")
	}
	return nil
}

func (w *workerSession) work(f *frame) error {
	id, idOK := readID(f.id)
	token, tokenOK := readToken(f.token)
	if !idOK || !tokenOK {
		return fmt.Errorf("a task came without its id or token: %q, %q", f.id, f.token)
	}
	n, known := w.tally.Given(id, f.payload)
	at := w.takeSlot()
	w.slots[at] = slot{number: n, known: known, ref: wire.TaskRef{TaskID: id, Token: token}}
	w.results = w.appendResult(w.results, w.count, at)
	w.count++
	return nil
}

func (w *workerSession) takeSlot() int64 {
	if len(w.free) == 0 {
		w.slots = append(w.slots, slot{})
		return int64(len(w.slots) - 1)
	}
	at := w.free[len(w.free)-1]
	w.free = w.free[:len(w.free)-1]
	return at
}

func (w *workerSession) appendResult(dst []byte, before int, at int64) []byte {
	if before > 0 {
		dst = append(dst, ',')
	}
	w.result.Ref = wire.Ref{Value: at, Present: true}
	w.result.TaskRef = w.slots[at].ref
	w.result.ResultRequest.Result = emptyResult
	return wire.AppendClientFrame(dst, &w.result)
}

func (w *workerSession) answered(f *frame) error {
	if f.ref == subscribeRef {
		close(w.seated)
		return nil
	}
	if f.ref < 0 || f.ref >= int64(len(w.slots)) {
		return fmt.Errorf("an answer came to a result that was not sent: %s", f.raw)
	}
	if w.slots[f.ref].known {
		w.tally.Completed(w.slots[f.ref].number)
	}
	w.slots[f.ref] = slot{}
	w.free = append(w.free, f.ref)
	return nil
}

// refused says a result again that the server had no room for.
func (w *workerSession) refused(f *frame) error {
	refusal, err := refusalIn(f)
	if err != nil {
		return err
	}
	if !refusal.Code.Retryable() || f.ref < 0 || f.ref >= int64(len(w.slots)) {
		return refusal
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.againCount == 0 && !w.closed {
		w.timer = time.AfterFunc(againAfter, w.sayAgain)
	}
	w.again = w.appendResult(w.again, w.againCount, f.ref)
	w.againCount++
	return nil
}

func (w *workerSession) sayAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.againCount > 0 && !w.closed {
		w.socket.send(w.again, w.againCount)
	}
	w.again, w.againCount = w.again[:0], 0
}

func (w *workerSession) close() {
	w.mu.Lock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.socket.close()
}
