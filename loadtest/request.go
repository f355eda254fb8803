package loadtest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// dialFor is how long a connection may take.
const dialFor = 10 * time.Second

// caller is one HTTP/1.1 connection for one goroutine at a time. The generator does not
// use http.Client, because its two goroutines and timer for each request take as much
// processor time as the server under test: on two cores a handler that stores nothing
// answers 24,500 requests a second from http.Client, and 39,000 from this.
type caller struct {
	at   *url.URL
	tls  *tls.Config
	head string // of every request, up to its length

	conn   net.Conn // nil before the first request and after a failed one
	reader *bufio.Reader
	out    []byte
	answer bytes.Buffer
}

func newCaller(at *address) (*caller, error) {
	parsed, err := url.Parse(at.url)
	if err != nil {
		return nil, fmt.Errorf("read address: %w", err)
	}
	c := &caller{at: parsed, tls: at.tls}
	c.head = "Host: " + parsed.Host + "\r\nUser-Agent: codeq-bench\r\nContent-Type: application/json\r\n"
	if at.token != "" {
		c.head += "Authorization: Bearer " + at.token + "\r\n"
	}
	return c, nil
}

// post sends one request and reads its answer, which is valid until the next call.
// prefer may be empty. After a failure the next call dials again.
func (c *caller) post(path, prefer string, body []byte) (status int, answer []byte, err error) {
	status, answer, again, err := c.exchange(path, prefer, body)
	if err != nil || !again {
		c.close()
	}
	return status, answer, err
}

func (c *caller) exchange(path, prefer string, body []byte) (status int, answer []byte, again bool, err error) {
	if err := c.connect(); err != nil {
		return 0, nil, false, err
	}
	if err := c.conn.SetDeadline(time.Now().Add(answersFor)); err != nil {
		return 0, nil, false, err
	}
	if _, err := c.conn.Write(c.compose(path, prefer, body)); err != nil {
		return 0, nil, false, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return 0, nil, false, err
	}
	c.answer.Reset()
	_, err = c.answer.ReadFrom(response.Body)
	_ = response.Body.Close() // it was read to its end, or the connection is closed
	if err == nil {
		err = redirected(response)
	}
	return response.StatusCode, c.answer.Bytes(), !response.Close, err
}

// redirected is the error of a redirect. None is followed, because the bench measures
// the server that was named.
func redirected(answer *http.Response) error {
	if answer == nil || answer.StatusCode/100 != 3 {
		return nil
	}
	return fmt.Errorf("the server answered %d and names %q: set --url to the server itself",
		answer.StatusCode, answer.Header.Get("Location"))
}

func (c *caller) compose(path, prefer string, body []byte) []byte {
	c.out = append(c.out[:0], "POST "...)
	c.out = append(append(append(c.out, c.at.EscapedPath()...), path...), " HTTP/1.1\r\n"...)
	c.out = append(c.out, c.head...)
	if prefer != "" {
		c.out = append(append(append(c.out, "Prefer: "...), prefer...), "\r\n"...)
	}
	c.out = strconv.AppendInt(append(c.out, "Content-Length: "...), int64(len(body)), 10)
	return append(append(c.out, "\r\n\r\n"...), body...)
}

func (c *caller) connect() error {
	if c.conn != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), dialFor)
	defer stop()
	dial := (&net.Dialer{}).DialContext
	if c.at.Scheme == "https" {
		dial = (&tls.Dialer{Config: c.tls}).DialContext
	}
	conn, err := dial(ctx, "tcp", hostPort(c.at))
	if err != nil {
		return err
	}
	c.conn, c.reader = conn, bufio.NewReader(conn)
	return nil
}

func hostPort(at *url.URL) string {
	if at.Port() != "" {
		return at.Host
	}
	return net.JoinHostPort(at.Hostname(), at.Scheme) // the scheme is also the name of the service
}

// close ends the connection, if there is one.
func (c *caller) close() {
	if c.conn != nil {
		_ = c.conn.Close() // no request is in flight
		c.conn = nil
	}
}
