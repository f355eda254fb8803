package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"codeq/client"
	"codeq/wire"
)

const (
	exitFine   = 0
	exitFailed = 1
	exitWrong  = 2
)

// app is what a command runs with: where it reads and writes, the signals that
// ask it to stop, and the global flags.
type app struct {
	program       string // as it was called
	in            io.Reader
	out, err      io.Writer
	inIsTerminal  bool
	errIsTerminal bool
	stops         <-chan os.Signal
	given         map[string]bool // flags that stand in the command line
	globals
}

// wrongError is a mistake in the command line.
type wrongError struct{ error }

// Unwrap is the mistake itself.
func (w *wrongError) Unwrap() error { return w.error }

func wrong(format string, args ...any) error {
	return &wrongError{fmt.Errorf(format, args...)}
}

// errSaid ends a command with exit code 1 when all has been said already.
var errSaid = errors.New("already said")

// end says how a command ended and returns the exit code.
func (a *app) end(err error) int {
	if err == nil {
		return exitFine
	}
	if !errors.Is(err, errSaid) {
		a.say("%s", sentence(err))
	}
	var mistake *wrongError
	if errors.As(err, &mistake) {
		return exitWrong
	}
	return exitFailed
}

// say writes one line for people about what goes on.
func (a *app) say(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	fmt.Fprintf(a.err, "codeq: %s\n", printable(text))
}

// sentence puts an error into words: a refusal of the server without its code
// in front.
func sentence(err error) string {
	var refusal *wire.Error
	if !errors.As(err, &refusal) {
		return err.Error()
	}
	said := fmt.Sprintf("%s (%s)", refusal.Sentence, refusal.Code)
	return strings.Replace(err.Error(), refusal.Error(), said, 1)
}

// client makes the client that the global flags describe.
func (a *app) client() (*client.Client, error) {
	c, err := client.New(a.URL, client.WithToken(a.Token), client.WithNotices(func(n string) { a.say("%s", n) }))
	if err != nil {
		return nil, wrong("%w; set it with --url or CODEQ_URL", err)
	}
	return c, nil
}

// untilStopped is a context that ends with the first signal. Call the returned
// function when done.
func (a *app) untilStopped() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	over := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case s := <-a.stops:
			cancel(fmt.Errorf("stopped by %s", s))
		case <-over:
		}
	}()
	return ctx, func() {
		close(over)
		<-watched
		cancel(nil)
	}
}

// connect makes the client that the global flags describe and a context that
// ends with the first signal. Call the returned function when done with both.
func (a *app) connect() (context.Context, *client.Client, func(), error) {
	c, err := a.client()
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, done := a.untilStopped()
	return ctx, c, func() {
		done()
		c.Close()
	}, nil
}

// stoppable is a reader that gives up when ctx ends, also while nothing comes.
// A read that was given up stays behind until the process ends.
type stoppable struct {
	ctx    context.Context
	source io.Reader
}

// Read implements io.Reader.
func (s *stoppable) Read(p []byte) (int, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		own := make([]byte, len(p)) // p is the caller's again after a stop
		n, err := s.source.Read(own)
		done <- read{own[:n], err}
	}()
	select {
	case r := <-done:
		return copy(p, r.data), r.err
	case <-s.ctx.Done():
		return 0, context.Cause(s.ctx)
	}
}

// printable makes text from outside safe for a terminal: what is not shown as
// it is, like control characters, which could move the cursor or worse, and
// marks that turn the direction of writing, is written as an escape.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// parseID reads the id of a task from the command line.
func parseID(text string) (wire.TaskID, error) {
	id, ok := wire.ParseTaskID(text)
	if !ok {
		return id, wrong("%q is not the id of a task: it looks like 01890a5d-ac96-774b-bcce-b302099a8057, as \"codeq enqueue\" prints it", text)
	}
	return id, nil
}
