package paced

import (
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// reads takes so many bytes every so often until stop.
func reads(conn net.Conn, bytes int, every time.Duration) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, bytes)
		for {
			select {
			case <-time.After(every):
			case <-ended:
				return
			}
			if _, err := io.ReadFull(conn, b); err != nil {
				return
			}
		}
	}()
	return func() {
		close(ended)
		_ = conn.Close() // ends a read
		<-done
	}
}

func TestN11WriteGoesOnWhileEnoughIsTaken(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes int
		every time.Duration
		err   error
	}{
		{"a little all the time", 500, time.Second, nil},
		{"some now and then", LeastBytes, Window - time.Second, nil},
		{"too little", 400, time.Second, ErrTooSlow},
		{"nothing", 1, time.Hour, ErrTooSlow},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer reads(far, c.bytes, c.every)()
				asked := 0
				w := NewWriter(near)
				w.Goes = func() bool { asked++; return true }
				n, err := w.Write(make([]byte, 10*LeastBytes))
				if !errors.Is(err, c.err) || (err == nil) != (n == 10*LeastBytes) {
					t.Errorf("%d bytes written, %v, want %v", n, err, c.err)
				}
				if c.err == nil && asked < 5 {
					t.Errorf("asked %d times whether to go on", asked)
				}
				if int64(n) != w.Written() || w.Taken() != w.Written() {
					t.Errorf("%d written, says %d and %d taken", n, w.Written(), w.Taken())
				}
			})
		})
	}
}

func TestN11WriteEndsWhenItShallNotGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer reads(far, LeastBytes, time.Second)()
		w := NewWriter(near)
		w.Goes = func() bool { return false }
		began := time.Now()
		if _, err := w.Write(make([]byte, 1000*LeastBytes)); err == nil || errors.Is(err, ErrTooSlow) {
			t.Errorf("it ended with %v", err)
		}
		if took := time.Since(began); took > 2*Window {
			t.Errorf("it ended after %v", took)
		}
	})
}

// What stands in the buffer of this side has not been taken.
func TestN11WhatStandsInBuffersIsNotTaken(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // runs where the system says it
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	// Nobody reads, so both buffers fill up.
	if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Write(make([]byte, 64<<20))
	if held := unacknowledged(conn); err == nil || held <= 0 || held >= int64(n) {
		t.Errorf("%d bytes written, %v, of which %d stand in the buffer of this side", n, err, held)
	}
	for _, c := range []io.Closer{conn, far, listener} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if held := unacknowledged(conn); held != 0 {
		t.Errorf("of a connection that is closed %d bytes are held", held)
	}
}
