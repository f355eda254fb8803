package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"codeq/test/blackbox"
)

// asCodeq makes the test binary be codeq itself, as a process of its own.
const asCodeq = "CODEQ_TEST_AS_CODEQ"

func TestMain(m *testing.M) {
	if os.Getenv(asCodeq) != "" {
		main()
	}
	blackbox.HearSignals()
	goleak.VerifyTestMain(m)
}

// safeBuffer may be written and read by several goroutines. It tells about
// each write.
type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
	wrote  chan struct{}
}

func newBuffer() *safeBuffer { return &safeBuffer{wrote: make(chan struct{}, 1)} }

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.wrote <- struct{}{}:
	default:
	}
	return b.buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// await waits until the text is in the buffer.
func (b *safeBuffer) await(t *testing.T, text string) {
	t.Helper()
	over := time.After(time.Minute)
	for !strings.Contains(b.String(), text) {
		select {
		case <-b.wrote:
		case <-over:
			t.Fatalf("%q did not come within a minute, there is %q", text, b.String())
		}
	}
}

// terminal is an app whose streams a test holds.
type terminal struct {
	app      *app
	out, err *safeBuffer
	stops    chan os.Signal
}

func newTerminal(input string) *terminal {
	tt := &terminal{out: newBuffer(), err: newBuffer(), stops: make(chan os.Signal, 2)}
	tt.app = &app{program: "codeq", in: strings.NewReader(input), out: tt.out, err: tt.err, stops: tt.stops}
	return tt
}

// codeq runs a command line and returns the exit code and what was printed.
func codeq(input string, args ...string) (code int, out, err string) {
	tt := newTerminal(input)
	code = run(args, tt.app)
	return code, tt.out.String(), tt.err.String()
}

// toServer is a command line that asks that server, if its command asks any.
func toServer(url string, args []string) []string {
	i := slices.IndexFunc(args, func(word string) bool { return !strings.HasPrefix(word, "-") })
	if i >= 0 && slices.Contains([]string{"serve", "doctor", "restore", "token", "completion", "help", "test-server", "conform", "docs"}, args[i]) {
		return args
	}
	if i >= 0 && args[i] == "cluster" && (args[i+1] == "init" || args[i+1] == "join") {
		return args
	}
	return append([]string{"--url", url}, args...)
}
