package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"codeq/internal/paced"
	"codeq/wire"
)

// firstBodyBytes bounds the buffer that is made for a declared length before a byte of the
// body has arrived.
const firstBodyBytes = 64 << 10

// limitBody bounds the body in bytes, unless it streams, and in time. It refuses a body whose
// declared length is too large before a byte is read.
func (c *call) limitBody(streams bool) *wire.Error {
	if c.r.ContentLength > wire.MaxHTTPBodyBytes && !streams {
		return bodyTooLarge()
	}
	if c.r.ContentLength == 0 {
		return nil
	}
	if !streams {
		c.r.Body = http.MaxBytesReader(c.w, c.r.Body, wire.MaxHTTPBodyBytes)
	}
	// The deadline also bounds a body that no handler reads: net/http reads it to its end
	// before the next request.
	return c.setReadDeadline(time.Now().Add(bodyReadFor))
}

// readBody reads the body into memory that nobody reuses, because a shard keeps parts of
// it.
func (c *call) readBody() ([]byte, *wire.Error) {
	body := make([]byte, 0, min(max(c.r.ContentLength, 511), firstBodyBytes)+1)
	from := newPacedBody(c)
	for {
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, bodyError(err)
		}
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
	}
	// From here on net/http reads ahead to notice that the client leaves; an old deadline
	// would look the same.
	if refusal := c.setReadDeadline(time.Time{}); refusal != nil {
		return nil, refusal
	}
	c.bodyBytes = len(body)
	return body, nil
}

// pacedBody reads the body of a request for as long as enough of it comes.
type pacedBody struct {
	call  *call
	from  io.Reader
	until time.Time
	// bytes is how many have come, step at how many the client has more time.
	bytes, step int64
	// failed is the error of the last Read but io.EOF.
	failed error
}

func newPacedBody(c *call) *pacedBody {
	return &pacedBody{call: c, from: c.r.Body, until: time.Now().Add(bodyReadFor), step: paced.LeastBytes}
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if err != nil && err != io.EOF {
		b.failed = err
	}
	b.bytes += int64(n)
	if err != nil || b.bytes < b.step {
		return n, err
	}
	if now := time.Now().Add(paced.Window); now.After(b.until) {
		b.until = now
	}
	b.step = b.bytes + paced.LeastBytes
	if err := b.call.control.SetReadDeadline(b.until); err != nil && !errors.Is(err, http.ErrNotSupported) {
		b.failed = err
	}
	return n, b.failed
}

func (c *call) setReadDeadline(at time.Time) *wire.Error {
	err := c.control.SetReadDeadline(at)
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return wire.Refuse(wire.CodeInvalidBody, "the connection ended before the body did")
	}
	return nil
}

func bodyError(err error) *wire.Error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return bodyTooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return wire.Refuse(wire.CodeInvalidBody, fmt.Sprintf(
			"the body came too slowly: after %v each %d KiB must come within %v", bodyReadFor, paced.LeastBytes>>10, paced.Window))
	}
	return wire.Refuse(wire.CodeInvalidBody, "the body ended before it was complete")
}

func bodyTooLarge() *wire.Error {
	return wire.Refuse(wire.CodeTooLarge, fmt.Sprintf("the body is larger than %d bytes", wire.MaxHTTPBodyBytes))
}
