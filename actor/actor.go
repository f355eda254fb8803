package actor

import (
	"math"
	"runtime"
	"time"

	"codeq/mailbox"
)

const (
	// Forever as an answer of handle means: until woken.
	Forever time.Duration = math.MaxInt64
	// MaxSleep is the longest time between two calls of handle, whatever it
	// asked for. A deadline that was computed wrong costs no more than this.
	MaxSleep = 10 * time.Second
)

// Actor is a running goroutine.
type Actor struct {
	closeBox func()
	done     chan struct{}
}

// Start runs the goroutine that owns box. It calls handle at once, so that it
// can say its first deadline, and from then on whenever messages came or the
// deadline did. batch holds all that waited, in order; it is empty when the
// deadline came first. It is used again after the call: handle keeps nothing
// of the slice, though it may keep the messages.
//
// handle returns how long it may sleep: 0 or less to be called again at once,
// Forever until woken; it never sleeps longer than MaxSleep.
//
// The goroutine ends when box is closed, by Stop or by its owner, and all that
// had been accepted was handled. After that handle is called on while it
// answers 0 or less, so that it can finish what it put off.
func Start[M any](box *mailbox.Mailbox[M], handle func(batch []M) (sleepFor time.Duration)) *Actor {
	a := &Actor{closeBox: box.Close, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		run(box, handle)
	}()
	return a
}

func run[M any](box *mailbox.Mailbox[M], handle func(batch []M) time.Duration) {
	timer := time.NewTimer(MaxSleep)
	defer timer.Stop()
	var batch []M
	for {
		batch = box.Drain(batch)
		sleepFor := handle(batch)
		if sleepFor <= 0 {
			continue
		}
		if box.Done() {
			return
		}
		timer.Reset(min(sleepFor, MaxSleep))
		select {
		case <-box.Wake():
			// Another goroutine that can run now may add a message to this batch.
			runtime.Gosched()
		case <-timer.C:
		}
	}
}

// Stop closes the mailbox, lets handle finish what was accepted and returns
// when the goroutine has ended. Safe when repeated and from any goroutine but
// the actor's own, which would wait for itself.
func (a *Actor) Stop() {
	a.closeBox()
	<-a.done
}

// Done is closed when the goroutine has ended. Any goroutine.
func (a *Actor) Done() <-chan struct{} { return a.done }
