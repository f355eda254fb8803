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

// limitBody bounds the body in bytes and in time. It refuses a body whose declared length is
// too large before a byte is read.
func (c *call) limitBody() *wire.Error {
	if c.r.ContentLength > wire.MaxHTTPBodyBytes {
		return bodyTooLarge()
	}
	if c.r.ContentLength == 0 {
		return nil
	}
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, wire.MaxHTTPBodyBytes)
	// The deadline also bounds a body that no handler reads: net/http reads it to its end
	// before the next request.
	return c.setReadDeadline(time.Now().Add(bodyReadFor))
}

// readBody reads the body into memory that nobody reuses, because a shard keeps parts of
// it.
func (c *call) readBody() ([]byte, *wire.Error) {
	body := make([]byte, 0, min(max(c.r.ContentLength, 511), firstBodyBytes)+1)
	until, step := time.Now().Add(bodyReadFor), paced.LeastBytes
	for {
		n, err := c.r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, bodyError(err)
		}
		if len(body) >= step {
			if now := time.Now().Add(paced.Window); now.After(until) {
				until = now
			}
			step = len(body) + paced.LeastBytes
			if refusal := c.setReadDeadline(until); refusal != nil {
				return nil, refusal
			}
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
			"the body came too slowly: it has %v, and %v more for each %d KiB that have come", bodyReadFor, paced.Window, paced.LeastBytes>>10))
	}
	return wire.Refuse(wire.CodeInvalidBody, "the body ended before it was complete")
}

func bodyTooLarge() *wire.Error {
	return wire.Refuse(wire.CodeTooLarge, fmt.Sprintf("the body is larger than %d bytes", wire.MaxHTTPBodyBytes))
}
