package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"codeq/internal/paced"
	"codeq/wire"
)

// slowly is a server that carries so many bytes at once and then rests.
type slowly struct {
	bytes int
	rest  time.Duration
}

// reader is what a request is read from.
func (s slowly) reader(conn net.Conn) io.Reader { return &restingReader{conn, s} }

type restingReader struct {
	net.Conn
	slowly
}

func (r *restingReader) Read(p []byte) (int, error) {
	time.Sleep(r.rest) // in a bubble
	return r.Conn.Read(p[:min(len(p), r.bytes)])
}

// write writes all of it and reports whether the client took it.
func (s slowly) write(conn net.Conn, all []byte) bool {
	for len(all) > 0 {
		time.Sleep(s.rest) // in a bubble
		n, err := conn.Write(all[:min(len(all), s.bytes)])
		if err != nil {
			return false
		}
		all = all[n:]
	}
	return true
}

// slowServer answers one request after think, and carries request and answer
// slowly.
func slowServer(t *testing.T, request, answer slowly, think time.Duration, body string) *Client {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		defer func() { _ = far.Close() }() // the end of the test
		asked, err := http.ReadRequest(bufio.NewReader(request.reader(far)))
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, asked.Body); err != nil {
			return
		}
		time.Sleep(think) // in a bubble
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", len(body))
		answer.write(far, append([]byte(head), body...))
	}()
	c, err := New("http://codeq.test", WithDial(func(context.Context, string, string) (net.Conn, error) { return near, nil }))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A request lasts as long as the server takes it and answers it steadily.
func TestN11RequestsLastAsLongAsSomethingComes(t *testing.T) {
	fast := slowly{1 << 20, 0}
	steady := slowly{paced.LeastBytes, paced.Window - time.Second}
	large := &wire.Task{ID: wire.TaskID{1}, Command: "c", Payload: []byte(`"` + string(bytes.Repeat([]byte("x"), 20*paced.LeastBytes)) + `"`)}
	answer := string(wire.AppendTask(nil, large, wire.PayloadAsString))
	for _, x := range []struct {
		name            string
		request, answer slowly
		think           time.Duration
		least, most     time.Duration
		err             error
	}{
		{"at once", fast, fast, 0, 0, time.Second, nil},
		{"a slow answer", fast, steady, 0, 3 * time.Minute, 4 * time.Minute, nil},
		{"a slow answer that comes late", fast, steady, answerTimeout - 10*time.Second, 3 * time.Minute, 4 * time.Minute, nil},
		{"a slow request", steady, fast, 0, 3 * time.Minute, 4 * time.Minute, nil},
		{"a slow request and a late answer", steady, fast, answerTimeout - time.Second, 3 * time.Minute, 4 * time.Minute, nil},
		{"no answer", fast, fast, time.Hour, answerTimeout, answerTimeout, errMute},
		{"an answer that stops", fast, slowly{5 * paced.LeastBytes, 12 * time.Second}, 0, 22 * time.Second, 22 * time.Second, errMute},
		{"too little of an answer", fast, slowly{100, time.Second}, 0, paced.Window, paced.Window + 2*time.Second, errMute},
		{"a request of which nothing is taken", slowly{1, time.Hour}, fast, 0, writeWindow, writeWindow + 2*time.Second, paced.ErrTooSlow},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := slowServer(t, x.request, x.answer, x.think, answer)
				defer time.Sleep(2 * time.Hour) // the server ends
				defer c.Close()
				began := time.Now()
				_, err := c.postOnce(t.Context(), &wire.EnqueueRequest{Command: "c", Payload: large.Payload})
				took := time.Since(began)
				if !errors.Is(err, x.err) || took < x.least || took > x.most {
					t.Errorf("it took %v and ended with %v, want %v to %v and %v", took, err, x.least, x.most, x.err)
				}
			})
		})
	}
}

// The time that a request asked the server to wait comes on top.
func TestN11AWaitOfARequestIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast := slowly{1 << 20, 0}
		c := slowServer(t, fast, fast, time.Minute+answerTimeout-time.Second, "{}")
		defer time.Sleep(2 * time.Hour) // the server ends
		defer c.Close()
		if _, err := c.do(t.Context(), call{method: http.MethodPost, path: "/", waitFor: time.Minute}); err != nil {
			t.Error(err)
		}
	})
}
