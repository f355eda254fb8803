package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

// Two answers that are none: the connection is refused, or ends.
const (
	refuses = "refuses"
	ends    = "ends"
)

// fates are the columns of the grid, each with an answer that has this fate.
var fates = []struct {
	fate fate
	name string
	said string
}{
	{late, "late", coded(404, wire.CodeResultNotFound)},
	{putOff, "put off", coded(503, wire.CodeOverloaded)},
	{away, "away", coded(503, wire.CodeDraining)},
	{internal, "internal", coded(500, wire.CodeInternal)},
	{refused, "refused", coded(403, wire.CodeForbidden)},
	{unreached, "unreached", refuses},
	{mistrusted, "mistrusted", plain(400, "Client sent an HTTP request to an HTTPS server.\n")},
	{broken, "broken", ends},
	{cutShort, "cut short", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"},
	{gateway, "gateway", plain(504, "<html>no answer</html>")},
	{foreign, "foreign", plain(404, "<html>not here</html>")},
	{garbled, "garbled", plain(200, "<html>sign in</html>")},
	{moved, "moved", "HTTP/1.1 302 Found\r\nLocation: http://new.test/v1/codeq/x\r\nContent-Length: 0\r\n\r\n"},
}

// grid is what becomes of each verb after each fate, in the order of fates: + is
// another try, - the error as it is, ? the error wrapped in ErrOutcomeUnknown.
var grid = map[verb]string{
	once:          "- - - - - - - ? ? ? - ? -",
	harmless:      "- - - - - - - - - - - - -",
	keyed:         "- - + + - + - + + + - ? -",
	keyedInDoubt:  "? + + + ? + ? + + + ? ? ?",
	waitResult:    "+ + + + - + - + + + - - -",
	waitReady:     "- + + + - + - + + + - - -",
	waitTask:      "+ + + + - + - + - + - - -",
	firstLink:     "- + + + - + - + + + - - -",
	producerLink:  "+ + + + - + + + + + + + +",
	workerLink:    "+ + + + + + + + + + + + +",
	sessionFrame:  "- + + - - - - - - - - - -",
	harmlessFrame: "- + + + - - - - - - - - -",
}

func coded(status int, code wire.Code) string {
	return plain(status, fmt.Sprintf(`{"error":"for the test","code":"%s","retryable":true}`, code))
}

func plain(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, http.StatusText(status), len(body), body)
}

// script is a server that gives each connection the next of its answers and ends
// it; behind the last it breaks the test.
type script struct {
	t     *testing.T
	said  []string
	heard []*http.Request
	tries int
}

func (s *script) dial(context.Context, string, string) (net.Conn, error) {
	s.tries++
	if len(s.said) == 0 {
		s.t.Error("tried once more than the test has answers")
		return nil, syscall.EPERM
	}
	said := s.said[0]
	s.said = s.said[1:]
	if said == refuses {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	go func() {
		defer func() { _ = far.Close() }() // the client may have closed it
		request, err := http.ReadRequest(bufio.NewReader(far))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, request.Body) // as far as it came
		s.heard = append(s.heard, request)
		if said != ends {
			_, _ = io.WriteString(far, said) // the client may not want all of it
		}
	}()
	return near, nil
}

func scripted(t *testing.T, said ...string) (*Client, *script) {
	s := &script{t: t, said: said}
	c, err := New("queue.test", WithDial(s.dial), WithToken("secret"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, s
}

// perform does what a verb stands for, and gives what the server says when all
// is well, and what it says before.
func perform(v verb) (do func(*Client) error, good string, before []string) {
	ctx := context.Background()
	switch v {
	case once:
		return func(c *Client) error { _, err := c.Enqueue(ctx, "c", 1); return err }, plain(202, taskBody('a')), nil
	case harmless:
		return func(c *Client) error { _, err := c.Task(ctx, taskID('a')); return err }, plain(200, taskBody('a')), nil
	case keyed:
		return func(c *Client) error { _, err := c.Enqueue(ctx, "c", 1, Key("k")); return err }, plain(202, taskBody('a')), nil
	case keyedInDoubt:
		do, good, _ = perform(keyed)
		return do, good, []string{plain(502, "")}
	case waitResult:
		return func(c *Client) error { _, err := c.ResultWithin(ctx, taskID('a'), time.Minute); return err }, plain(200, resultBody()), nil
	case waitReady:
		return func(c *Client) error { _, err := c.Ready(ctx, time.Minute); return err }, plain(200, `{"status":"ready"}`), nil
	case waitTask:
		return func(c *Client) error {
			got, err := c.Claim(ctx, ClaimOptions{Wait: time.Minute})
			if err == nil && len(got) != 1 {
				return errors.New("no task")
			}
			return err
		}, plain(200, claimedBody('a')), nil
	}
	return nil, "", nil
}

func TestN07EachVerbTriesAgainAfterWhatTheTableSays(t *testing.T) {
	if len(grid) != len(tries) {
		t.Fatalf("the grid has %d verbs, the table %d", len(grid), len(tries))
	}
	for v, row := range grid {
		for i, want := range strings.Fields(row) {
			f := fates[i]
			if got := v.again(&failed{error: errTest, how: f.fate}); got != (want == "+") {
				t.Errorf("verb %d, %s: tried again is %t", v, f.name, got)
			}
			do, good, before := perform(v)
			if do == nil {
				continue // a link or a frame, which the tests of sessions drive
			}
			t.Run(fmt.Sprintf("verb %d, %s", v, f.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					said := append(before, f.said)
					if want == "+" {
						said = append(said, good)
					}
					c, s := scripted(t, said...)
					err := do(c)
					var nobody *UnreachableError
					switch {
					case (err == nil) != (want == "+"), len(s.said) > 0, errors.Is(err, ErrOutcomeUnknown) != (want == "?"):
						t.Errorf("error %v after %d tries, %d answers were not asked for", err, s.tries, len(s.said))
					case err != nil && errors.As(err, &nobody) != (f.fate&(unreached|mistrusted) != 0):
						t.Errorf("%v: was nothing sent?", err)
					}
				})
			})
		}
	}
}

func TestN07TheFirstLinkWaitsForAServerThatIsNotThereOrStarts(t *testing.T) {
	for i, want := range strings.Fields(grid[firstLink]) {
		f := fates[i]
		if f.fate == cutShort {
			continue // what is no upgrade is foreign, however long it is
		}
		synctest.Test(t, func(t *testing.T) {
			said := []string{f.said}
			if want == "+" {
				said = append(said, coded(403, wire.CodeForbidden))
			}
			c, s := scripted(t, said...)
			if _, err := c.Dial(context.Background(), SessionOptions{}); err == nil || len(s.said) > 0 {
				t.Errorf("%s: error %v after %d tries", f.name, err, s.tries)
			}
		})
	}
}

// What happened last is the end of a wait, in words that are true.
func TestN07TheEndOfAWaitSaysWhatHappenedLast(t *testing.T) {
	for name, test := range map[string]struct{ last, want string }{
		"a proxy":       {plain(504, "<html>"), "the wait of 10s is over; what happened last: http://queue.test answered 504 Gateway Timeout"},
		"a cut":         {ends, "the wait of 10s is over; what happened last: the connection to http://queue.test ended before the answer came"},
		"a dead server": {refuses, "the wait of 10s is over; what happened last: no codeq server answers"},
		"a cut answer":  {"HTTP/1.1 200", "the wait of 10s is over; what happened last: the answer of http://queue.test broke off"},
		"a torn line":   {"HTTP/1.1 2", "the wait of 10s is over; what happened last: http://queue.test did not answer in HTTP"},
		"a busy one":    {coded(503, wire.CodeOverloaded), "the wait of 10s is over; what happened last: overloaded: for the test"},
		"nothing yet":   {coded(404, wire.CodeResultNotFound), "result_not_found: for the test"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				said := []string{plain(502, "")}
				for range 100 {
					said = append(said, test.last)
				}
				c, s := scripted(t, said...)
				began := time.Now()
				_, err := c.ResultWithin(context.Background(), taskID('a'), 10*time.Second)
				if err == nil || !strings.HasPrefix(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
				if took := time.Since(began); took != 10*time.Second || s.tries > 20 {
					t.Errorf("%d tries in %s, want few in 10 s", s.tries, took)
				}
			})
		})
	}
}

// A claim that may have been given a task says what becomes of it, whether the
// next one gets a task or not.
func TestN07AClaimThatBrokeOffIsNotRepeatedInSilence(t *testing.T) {
	const want = "if the server gave it a task, the task is ready again when its lease of 1h0m0s ends"
	for name, test := range map[string]struct {
		said []string
		wait time.Duration
		ok   bool
	}{
		"at once":           {[]string{ends}, 0, false},
		"with a next one":   {[]string{ends, plain(200, claimedBody('a'))}, 20 * time.Second, true},
		"in its answer":     {[]string{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"}, 20 * time.Second, false},
		"in its first line": {[]string{"HTTP/1.1 2"}, 20 * time.Second, false},
		"through a proxy":   {[]string{plain(504, ""), plain(200, claimedBody('a'))}, 20 * time.Second, true},
		"without a reader":  {[]string{plain(200, "<html>")}, 20 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := scripted(t, test.said...)
				var told []string
				c.notice = func(sentence string) { told = append(told, sentence) }
				got, err := c.Claim(context.Background(), ClaimOptions{Lease: time.Hour, Wait: test.wait})
				if err != nil {
					told = append(told, err.Error())
				}
				if (err == nil) != test.ok || test.ok && len(got) != 1 || !strings.Contains(strings.Join(told, "\n"), want) {
					t.Errorf("got %v, error %v, said %q", got, err, told)
				}
			})
		})
	}
}

// The pause that a server asks for is kept, within bounds; codeq says it in the
// body, proxies in a header.
func TestN07ThePauseThatAnAnswerAsksForIsKept(t *testing.T) {
	header := func(seconds string) string {
		return strings.Replace(plain(503, "busy"), "\r\n", "\r\nRetry-After: "+seconds+"\r\n", 1)
	}
	for said, want := range map[string][2]time.Duration{
		header("20"):                         {20 * time.Second, 20 * time.Second},
		header("99999999999999"):             {maxAdvice, maxAdvice},
		header("-1"):                         {0, time.Second},
		header("Mon, 01 Jan 2035 00:00 GMT"): {0, time.Second},
		plain(503, `{"error":"x","code":"draining","retryAfterSeconds":30}`): {30 * time.Second, 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := scripted(t, said, plain(200, resultBody()))
			began := time.Now()
			_, err := c.ResultWithin(context.Background(), taskID('a'), time.Hour)
			if took := time.Since(began); err != nil || took < want[0] || took > want[1] {
				t.Errorf("after %q it took %s (%v), want from %s to %s", said, took, err, want[0], want[1])
			}
		})
	}
}

// A pause counts from the start of a try, and one that the answer asks for from the answer.
func TestN07APauseThatASlowAnswerAsksForIsKept(t *testing.T) {
	for after, want := range map[int]time.Duration{0: 0, 2: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := scripted(t)
			var answered time.Time
			err := c.persist(context.Background(), firstLink, time.Hour, func(time.Duration) error {
				if !answered.IsZero() {
					return nil
				}
				time.Sleep(time.Second) // in a bubble
				answered = time.Now()
				return &wire.Error{Code: wire.CodeOverloaded, RetryAfterSeconds: after}
			})
			if rest := time.Since(answered); err != nil || rest != want {
				t.Errorf("asked for %d s, the next try came after %s (%v), want %s", after, rest, err, want)
			}
		})
	}
}
