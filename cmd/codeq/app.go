package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode"

	"codeq/client"
	"codeq/wire"
)

// app holds the streams of a command, the signals that stop it, and the global flags.
type app struct {
	program       string // as it was called
	in            io.Reader
	out, err      io.Writer
	outIsNull     bool // out is closed, or the null device
	inIsTerminal  bool
	outIsTerminal bool
	utc           bool // times are stamps, also on a terminal
	outWidth      int  // of the terminal that is out, in cells; 0 is no limit
	errIsTerminal bool
	stops         <-chan os.Signal
	given         map[string]bool   // flags of the command line
	detached      []*detachedWriter // out and err once they are detached
	helps         bool              // the output is help
	once          bool              // fail at once if no server answers
	answer        []byte            // the body of the last answer of the server
	globals
}

// errNoOutput refuses a command whose effect only its output records.
var errNoOutput = errors.New("standard output is closed or the null device, so the output of this command would be lost, " +
	"and it exists nowhere else; nothing is done: print to a terminal, a pipe or a file")

// checkedOutput is standard output. It keeps the first failure, so that a command whose
// answer was lost fails. One goroutine writes at a time.
type checkedOutput struct {
	to   io.Writer
	lost error
}

// Write implements io.Writer; after a failure nothing more is written.
func (o *checkedOutput) Write(p []byte) (int, error) {
	if o.lost != nil {
		return 0, o.lost
	}
	n, err := o.to.Write(p)
	if err != nil {
		o.lost = fmt.Errorf("standard output cannot be written: %w", err)
	}
	return n, o.lost
}

// end prints the error of a command, if any, and returns the exit code.
func (a *app) end(err error) int {
	o, checked := a.out.(*checkedOutput)
	if checked && a.helps && errors.Is(o.lost, syscall.EPIPE) {
		return exitFine // a reader of help, like head, has read enough
	}
	if checked && o.lost != nil && !errors.Is(err, o.lost) {
		a.complain("%s", o.lost)
		err = cmp.Or(err, errSaid)
	}
	if err == nil {
		return exitFine
	}
	if !errors.Is(err, errSaid) {
		a.complain("%s", sentence(err))
	}
	return exitCode(err)
}

// say writes one line about progress for people, but not with --quiet.
func (a *app) say(format string, args ...any) {
	if !a.Quiet {
		a.complain(format, args...)
	}
}

// complain writes one line about a failure for people.
func (a *app) complain(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	fmt.Fprintf(a.err, "codeq: %s\n", printable(text))
}

// flagWords replaces members of requests by the flags that set them.
var flagWords = strings.NewReplacer("delaySeconds", "--delay", "runAt", "--run-at", "ttlSeconds", "--ttl", "expiresAt", "--expires-at",
	"timeoutSeconds", "--timeout", "maxAttempts", "--max-attempts", "idempotencyKey", "--key", "workerId", "--name",
	"leaseSeconds", "--lease", "backoff.policy", "--backoff", "backoff.baseSeconds", "--backoff-base", "backoff.maxSeconds", "--backoff-max",
	"perKey.inProgress", "--per-key-in-progress", "perKey.startsPerSecond", "--per-key-starts-per-second", "concurrencyKey", "--concurrency-key",
	"target.url", "--target", "target.window", "--target-window", "maxInProgress", "--max-in-progress", "startsPerSecond", "--starts-per-second", "dlqRetentionSeconds", "--dlq-retention", "retentionSeconds", "--retention")

// sentence is the text of an error. A refusal of the server names flags in place of
// members, and its code comes last.
func sentence(err error) string {
	var refusal *wire.Error
	if !errors.As(err, &refusal) {
		return err.Error()
	}
	said := fmt.Sprintf("%s (%s)", flagWords.Replace(refusal.Sentence), refusal.Code)
	return strings.Replace(err.Error(), refusal.Error(), said, 1)
}

// client makes the client that the global flags describe.
func (a *app) client() (*client.Client, error) {
	if _, problem := wire.ParseCredential(a.Token); problem != "" {
		return nil, wrong("the token %s; set it with --token or CODEQ_TOKEN", problem)
	}
	secured, err := a.secured()
	if err != nil {
		return nil, err
	}
	options := []client.Option{
		client.WithToken(a.Token), client.WithTenant(a.Tenant), client.WithTLS(secured), client.WithNotices(func(n string) { a.say("%s", n) }),
	}
	if a.once {
		options = append(options, client.WithoutWaiting())
	}
	c, err := client.New(a.URL, options...)
	if err != nil {
		return nil, wrong("%w; set it with --url or CODEQ_URL", err)
	}
	return c, nil
}

// secured is the configuration of TLS that the global flags describe.
func (a *app) secured() (*tls.Config, error) {
	config := &tls.Config{}
	if a.CA != "" {
		text, err := os.ReadFile(a.CA)
		if err != nil {
			return nil, wrong("--ca: %w", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, wrong("--ca: %s has no certificate in PEM", a.CA)
		}
	}
	if a.ClientCert != "" {
		pair, err := tls.LoadX509KeyPair(a.ClientCert, a.ClientCert)
		if err != nil {
			return nil, wrong("--client-cert: %s must have a certificate and its private key in PEM: %w", a.ClientCert, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
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
			cancel(&exitError{fmt.Errorf("stopped by %s", s), exitFailed})
		case <-over:
		}
	}()
	return ctx, func() {
		close(over)
		<-watched
		cancel(nil)
	}
}

// ask calls do with the client that the global flags describe and a context that ends
// with the first signal.
func (a *app) ask(do func(context.Context, *client.Client) error) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, done := a.untilStopped()
	defer done()
	return do(client.CaptureAnswer(ctx, &a.answer), c)
}

// show is ask for a command with one answer. With --json it prints the answer as it
// came, else by print.
func show[T any](a *app, do func(context.Context, *client.Client) (T, error), print func(T) error) error {
	return a.ask(func(ctx context.Context, c *client.Client) error {
		answer, err := do(ctx, c)
		switch {
		case err != nil:
			return err
		case a.JSON:
			return a.writeLine(a.answer)
		}
		return print(answer)
	})
}

// showFields is show for an answer that people read as fields, and only if they want them.
func showFields[T any](a *app, wanted bool, do func(context.Context, *client.Client) (T, error), of func(T) *fields) error {
	return show(a, do, func(answer T) error {
		if !wanted {
			return nil
		}
		return of(answer).write(a)
	})
}

// readAll reads standard input: one JSON value of at most so many bytes, and as many of white
// space.
func (a *app) readAll(ctx context.Context, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(&stoppable{ctx: ctx, source: a.in}, 2*most))
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return text, nil
}

// refusedWith reports a refusal of the server with that code.
func refusedWith(err error, code wire.Code) bool {
	var refusal *wire.Error
	return errors.As(err, &refusal) && refusal.Code == code
}

// stoppable is a reader that returns when ctx ends, even while source blocks. A blocked
// read lasts until the process ends.
type stoppable struct {
	ctx    context.Context
	source io.Reader
}

// Read implements io.Reader.
func (s *stoppable) Read(p []byte) (int, error) {
	own, n, err := make([]byte, len(p)), 0, error(nil) // p is the caller's again after a stop
	done := make(chan struct{})
	go func() {
		defer close(done)
		n, err = s.source.Read(own)
	}()
	select {
	case <-done:
		return copy(p, own[:n]), err
	case <-s.ctx.Done():
		return 0, context.Cause(s.ctx)
	}
}

// printable makes text from outside safe for a terminal: it escapes every character that
// is not printable, such as control characters, which can move the cursor, and marks
// that change the direction of writing.
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
