package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"codeq/client"
	"codeq/wire"
)

const (
	// giveUpAfter is how long the lines of a file wait for a server that is lost.
	giveUpAfter = time.Minute
	// answerBacklog is how many answers may wait to be printed. No more lines
	// are read while they do.
	answerBacklog = 4096
	// waitersAtOnce is how many goroutines wait for results.
	waitersAtOnce = 8
)

// errDiskFull ends the reading of lines when the server refused one for want of space.
var errDiskFull = errors.New("the disk of the server is full")

// answer is how one line of a file ended.
type answer struct {
	number   int
	size     int // as that of the line
	enqueued *client.Enqueued
	err      error
}

// bulk posts the lines of one file. The caller's goroutine reads and posts, the session
// answers, and the goroutine of printAnswers counts and prints.
type bulk struct {
	app      *app
	file     *lineFile
	template wire.EnqueueRequest
	keys     *lineKeys       // nil for lines without keys
	drawn    bool            // the name of the run was drawn here, so no earlier run has it
	posted   bool            // a line was sent
	reading  context.Context // of the file; its cause is errDiskFull once a line was refused for want of space
	stop     context.CancelCauseFunc
	cut      context.CancelCauseFunc
	answers  chan answer
	room     chan struct{} // one element for each answer that may still come

	// owned by printAnswers
	bar      *progressbar.ProgressBar
	created  int
	replayed int
	failed   int // refused, wrong or not sent
	unknown  int // sent, and not answered
	// conflicts are the lines among failed for which the run has a task with other content.
	conflicts int
	// full is the refusal of the first line for which the server had no space, which is line fullAt.
	full   error
	fullAt int
	ids    []wire.TaskID
}

// postFile posts one task for each line of the file.
func (e *enqueueCmd) postFile(ctx context.Context, a *app, c *client.Client, template wire.EnqueueRequest) error {
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	file, err := openLines(reading, e.File, a.in)
	if err != nil {
		return err
	}
	defer file.close()
	b := &bulk{
		app: a, file: file, template: template, reading: reading, stop: stop,
		answers: make(chan answer, answerBacklog),
		room:    make(chan struct{}, answerBacklog),
	}
	if !e.NoKey {
		b.drawn = e.RunName == nil
		b.keys = &lineKeys{run: strings.ToLower(rand.Text()), seen: make(map[uint64]uint32)}
		if e.RunName != nil {
			b.keys.run = *e.RunName
		}
	}
	err = b.run(ctx, c)
	if err == nil && e.Wait > 0 {
		err = b.results(ctx, c, e.Wait)
	}
	if b.keys != nil && b.posted && (b.failed > b.conflicts || b.unknown > 0 || err != nil && !errors.Is(err, errSaid)) {
		a.complain("continue with --run %s: it posts only lines whose tasks are not there, so do it before their retention is over", b.keys.run)
	}
	switch {
	case err != nil:
		return err
	case b.failed > 0:
		return saidBefore(exitFailed)
	case b.unknown > 0:
		return saidBefore(exitAgain)
	}
	return nil
}

// run posts the lines and prints the answers. It returns the error that stopped it early.
func (b *bulk) run(ctx context.Context, c *client.Client) error {
	session, err := c.Dial(ctx, client.SessionOptions{GiveUpAfter: giveUpAfter, NoWaitForSpace: true})
	if err != nil {
		return err
	}
	ctx, b.cut = context.WithCancelCause(ctx)
	defer b.cut(nil)
	var printing sync.WaitGroup
	printing.Go(b.printAnswers)
	err = b.post(ctx, session)
	if err == nil {
		err = b.awaitAnswers(ctx)
	}
	session.Close()
	close(b.answers)
	printing.Wait()
	if err == nil && b.full != nil {
		err = fmt.Errorf("stopped at line %d: %w", b.fullAt, b.full)
	}
	if err != nil && b.unknown > 0 {
		err = fmt.Errorf("%w; %s", err, b.unanswered())
	}
	return errors.Join(b.summary(), err)
}

// post reads the lines and posts them over the session, until the file ends or the server has no
// more space.
func (b *bulk) post(ctx context.Context, session *client.Session) error {
	for {
		next, err := b.file.next()
		if errors.Is(err, io.EOF) || errors.Is(context.Cause(b.reading), errDiskFull) {
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
			b.answers <- answer{number: next.number, size: next.size, err: err}
			continue
		}
		b.posted = true
		err = session.EnqueueAsync(ctx, request, func(e *client.Enqueued, err error) {
			b.answers <- answer{number: next.number, size: next.size, enqueued: e, err: err}
		})
		if err != nil {
			<-b.room
			return err
		}
	}
}

// awaitAnswers waits until every line has its answer.
func (b *bulk) awaitAnswers(ctx context.Context) error {
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
	if b.keys != nil {
		request.IdempotencyKey = b.keys.next(payload)
	}
	return &request, nil
}
