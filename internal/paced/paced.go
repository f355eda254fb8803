package paced

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
)

const (
	// LeastBytes must be taken in each Window.
	LeastBytes = 4 << 10
	// Window is the time in which LeastBytes must be taken.
	Window = 10 * time.Second
	// stuckFor is how long a write may take before the system is asked what the
	// other side has acknowledged.
	stuckFor = time.Second
	// lateFor is how late the end of a window may be looked at before this process
	// takes itself for the one that stood still.
	lateFor = time.Second
)

// ErrTooSlow is the end of a write whose other side took less than LeastBytes in a
// window.
var ErrTooSlow = errors.New("the other side takes too little, or nothing")

// Writer writes to one connection. Writes do not overlap; Written and Taken may be
// called from any goroutine.
type Writer struct {
	conn net.Conn
	// Goes is asked at the end of each window of a write that goes on, and ends it
	// by false; nil goes on. It is called by whoever writes.
	Goes func() bool
	// Window is the time in which LeastBytes must be taken.
	Window  time.Duration
	written atomic.Int64
}

// NewWriter makes the Writer of a connection that nobody else writes to. It sets
// the write deadline of that.
func NewWriter(conn net.Conn) *Writer {
	bufferLittle(conn)
	return &Writer{conn: conn, Window: Window}
}

// Write implements io.Writer. It returns the error of the connection, or
// ErrTooSlow, and may have written a part then.
func (w *Writer) Write(p []byte) (n int, err error) {
	// began is what had been taken when the window began that ends at until, less
	// than 0 before the first one.
	until, began := time.Now().Add(stuckFor), int64(-1)
	for {
		if err := w.conn.SetWriteDeadline(until); err != nil {
			return n, fmt.Errorf("set write deadline: %w", err)
		}
		m, err := w.conn.Write(p[n:])
		n += m
		w.written.Add(int64(m))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		taken := w.Taken()
		if began >= 0 && taken-began < LeastBytes && time.Since(until) < lateFor {
			return n, ErrTooSlow
		}
		if began >= 0 && w.Goes != nil && !w.Goes() {
			return n, err
		}
		until, began = time.Now().Add(w.Window), taken
	}
}

// Written is how many bytes the system has taken to send.
func (w *Writer) Written() int64 { return w.written.Load() }

// Taken is how many of them the other side has acknowledged, as far as the system
// says. It asks the system, and says too little while a write is under way.
func (w *Writer) Taken() int64 {
	written := w.written.Load()
	return written - min(written, unacknowledged(w.conn))
}
