package client

import (
	"io"
	"time"

	"codeq/internal/paced"
)

// patience bounds a request by what comes of it, not by how long it takes. The
// connection and the first byte of the answer may take so long each; then each
// paced.LeastBytes of the answer, or its end, may take paced.Window. How long the
// request may be on its way is up to the paced.Writer of its connection. A nil
// patience never ends. Its methods may be called from any goroutine.
type patience struct {
	timer *time.Timer
	first time.Duration
}

// newPatience calls end when too little has come.
func newPatience(first time.Duration, end func()) *patience {
	return &patience{time.AfterFunc(first, end), first}
}

// awaits begins to wait for a connection, or for the first byte of an answer.
func (p *patience) awaits() {
	if p != nil {
		p.timer.Reset(p.first)
	}
}

// sends leaves the time to whoever writes the request.
func (p *patience) sends() {
	if p != nil {
		p.timer.Stop()
	}
}

// comes begins to wait for more of an answer.
func (p *patience) comes() {
	if p != nil {
		p.timer.Reset(paced.Window)
	}
}

// comingBody is the body of an answer that somebody waits for.
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
