package client

import (
	"io"
	"time"

	"codeq/internal/paced"
)

// patience bounds a request by its progress, not by its duration. The connection and the
// first byte of the answer may take the time first each; after that each paced.LeastBytes
// of the answer, or its end, may take paced.Window. The paced.Writer of the connection
// bounds the sending of the request. A nil patience never ends. Its methods may be called
// from any goroutine.
type patience struct {
	timer *time.Timer
	first time.Duration
}

// newPatience calls end if there is too little progress.
func newPatience(first time.Duration, end func()) *patience {
	return &patience{time.AfterFunc(first, end), first}
}

// awaits starts the wait for a connection, or for the first byte of an answer.
func (p *patience) awaits() {
	if p != nil {
		p.timer.Reset(p.first)
	}
}

// sends stops the clock while the request is written.
func (p *patience) sends() {
	if p != nil {
		p.timer.Stop()
	}
}

// comes starts the wait for more of an answer.
func (p *patience) comes() {
	if p != nil {
		p.timer.Reset(paced.Window)
	}
}

// comingBody is the body of an answer, and reports its progress.
type comingBody struct {
	io.ReadCloser
	patience *patience
	bytes    int
}

// Read implements io.Reader.
func (b *comingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.bytes += n; b.bytes >= paced.LeastBytes {
		b.bytes = 0
		b.patience.comes()
	}
	return n, err
}
