package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// bareAnswer is as long as what a server says of one task.
const bareAnswer = `{"id":"01900000-0000-7000-8000-000000000000","command":"bench","priority":0,"status":"PENDING",` +
	`"location":"ready","attempts":0,"maxAttempts":25,"deliveries":0,"createdAt":"2026-01-01T00:00:00.000Z",` +
	`"updatedAt":"2026-01-01T00:00:00.000Z","tenantId":"default"}`

// BareHTTP measures the upper bound of this machine and this generator over HTTP: how
// many tasks a second the producers of w post to a net/http handler in this process
// that reads the request and stores nothing. HTTP is most of the work of a small
// request, so a figure of a server means little without this one. It takes
// measureFor; any goroutine.
func BareHTTP(ctx context.Context, w Workload, measureFor time.Duration) (tasksPerSecond float64, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("measure bare HTTP: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(answerBare), ReadHeaderTimeout: answersFor}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		closed := server.Close()
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			closed = errors.Join(closed, e)
		}
		err = errors.Join(err, closed)
	}()
	line, err := newHTTPPoster(&address{url: "http://" + listener.Addr().String()}, &w, func() *Tally { return nil })
	if err != nil {
		return 0, err
	}
	defer line.close()
	return line.postBare(ctx, measureFor)
}

func answerBare(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the client ended the connection, and reports that itself
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, bareAnswer) // as above
}

// postBare lets every producer post one request after another, at least one.
func (l *httpPoster) postBare(ctx context.Context, measureFor time.Duration) (tasksPerSecond float64, err error) {
	ctx, stop := context.WithTimeout(ctx, measureFor)
	defer stop()
	var posted atomic.Int64
	failures := make(chan error, l.workload.Producers)
	began := time.Now()
	var producers sync.WaitGroup
	for range l.workload.Producers {
		producers.Go(func() {
			c := <-l.idle
			for again := true; again; again = ctx.Err() == nil {
				path := c.compose(0, l.workload.Batch)
				status, _, err := c.ask(path)
				if err == nil && status != http.StatusCreated {
					err = fmt.Errorf("status %d", status)
				}
				if err != nil {
					failures <- err
					return
				}
				posted.Add(int64(l.workload.Batch))
			}
		})
	}
	producers.Wait()
	took := time.Since(began)
	select {
	case err := <-failures:
		return 0, fmt.Errorf("measure bare HTTP: %w", err)
	default:
		return float64(posted.Load()) / took.Seconds(), nil
	}
}
