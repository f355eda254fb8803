package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"codeq/client"
	"codeq/wire"
)

const (
	// giveUpAfter is how long a file waits for a server that went away.
	giveUpAfter = time.Minute
	// answerBacklog is how many answers may wait to be printed. No more lines
	// are read while they do.
	answerBacklog = 4096
	// waitersAtOnce is how many results are waited for at a time.
	waitersAtOnce = 8
)

// answer is how one line of a file ended.
type answer struct {
	number   int
	enqueued *client.Enqueued
	err      error
}

// bulk posts the lines of one file: the caller's goroutine reads and posts, the
// session answers, and one more goroutine, tell, counts and prints.
type bulk struct {
	app      *app
	file     *lineFile
	template wire.EnqueueRequest
	noKey    bool
	answers  chan answer
	room     chan struct{} // one element for each answer that may still come

	// owned by tell
	bar      *progressbar.ProgressBar
	created  int
	replayed int
	failed   int
	ids      []wire.TaskID
}

// postFile posts one task for each line of the file.
func (e *enqueueCmd) postFile(ctx context.Context, a *app, c *client.Client, template wire.EnqueueRequest) error {
	file, err := openLines(e.File, &stoppable{ctx: ctx, source: a.in})
	if err != nil {
		return err
	}
	b := &bulk{
		app: a, file: file, template: template, noKey: e.NoKey,
		answers: make(chan answer, answerBacklog),
		room:    make(chan struct{}, answerBacklog),
	}
	err = b.run(ctx, c)
	if closeErr := file.close(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	if err == nil && e.Wait > 0 {
		err = b.results(ctx, c, e.Wait)
	}
	if err == nil && b.failed > 0 {
		return errSaid
	}
	return err
}

// run posts and tells, and returns what stopped it early.
func (b *bulk) run(ctx context.Context, c *client.Client) error {
	session, err := c.Dial(ctx, client.SessionOptions{GiveUpAfter: giveUpAfter})
	if err != nil {
		return err
	}
	var told sync.WaitGroup
	told.Go(b.tell)
	err = b.post(ctx, session)
	if err == nil {
		err = b.settle(ctx)
	}
	session.Close()
	close(b.answers)
	told.Wait()
	return errors.Join(b.summary(), err)
}

// post reads the lines and hands them to the session.
func (b *bulk) post(ctx context.Context, session *client.Session) error {
	lines := b.file.lines()
	for {
		next, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case b.room <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		request, err := b.request(next)
		if err != nil {
			b.answers <- answer{number: next.number, err: err}
			continue
		}
		err = session.Post(ctx, request, func(e *client.Enqueued, err error) {
			b.answers <- answer{number: next.number, enqueued: e, err: err}
		})
		if err != nil {
			<-b.room
			return err
		}
	}
}

// settle waits until every line has its answer.
func (b *bulk) settle(ctx context.Context) error {
	for range cap(b.room) {
		select {
		case b.room <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (b *bulk) request(next line) (*wire.EnqueueRequest, error) {
	if next.tooLong {
		return nil, fmt.Errorf("%w: the limit is %d bytes", errTooLarge, wire.MaxPayloadBytes)
	}
	payload, err := onePayload(next.data)
	if err != nil {
		return nil, err
	}
	request := b.template
	request.Payload = payload
	if !b.noKey {
		request.IdempotencyKey = b.file.key(next.number)
	}
	return &request, nil
}
