package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"codeq/client"
	"codeq/wire"
)

// printAnswers counts and prints the answers as they come.
func (b *bulk) printAnswers() {
	if b.app.errIsTerminal && !b.app.JSON && !b.app.Quiet {
		b.bar = progressbar.NewOptions64(b.file.size,
			progressbar.OptionSetWriter(b.app.err),
			progressbar.OptionSetDescription("posting "+printable(b.file.name)),
			progressbar.OptionShowBytes(true),
			progressbar.OptionShowCount(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	for next := range b.answers {
		b.reword(&next)
		b.count(next)
		full := b.stopsAt(next)
		switch {
		case b.app.JSON:
			b.answer(next, answerJSON(next))
		case next.err == nil && b.app.Quiet:
			b.answer(next, next.enqueued.TaskID.AppendTo(nil))
		case next.err != nil && !full: // the run ends with the sentence about the first line without space
			b.step(func() { b.app.complain("line %d: %s", next.number, sentence(next.err)) })
		}
		b.progress(next.size)
		<-b.room // only now is the place free for the next line
	}
	b.step(func() {})
}

// answer prints an answer for programs. If that fails, no more lines are posted, and standard
// error names the task.
func (b *bulk) answer(next answer, line []byte) {
	if err := b.app.writeLine(line); err != nil {
		b.cut(err)
		if next.err == nil {
			b.app.complain("line %d made task %s", next.number, next.enqueued.TaskID)
		}
	}
}

// reword puts an answer into the words of a run. A task that existed already is this
// command's own if no earlier run has its keys, or if it sent the line twice.
func (b *bulk) reword(next *answer) {
	var refusal *wire.Error
	switch {
	case next.err == nil:
		next.enqueued.Replayed = next.enqueued.Replayed && !b.drawn && !next.enqueued.Repeated
	case errors.As(next.err, &refusal) && refusal.Code == wire.CodeIdempotencyConflict:
		b.conflicts++
		next.err = wire.Refuse(refusal.Code, "this run has a task of this line with other values, such as another --priority or "+
			"--max-attempts: post it with the same flags, or without --run in a new run")
	default:
		next.err = ofQueue(&b.template, next.err)
	}
}

// stopsAt reports whether the server had no space for a line. Then no more lines are read: each would
// be refused, until somebody frees space.
func (b *bulk) stopsAt(next answer) bool {
	var refusal *wire.Error
	if !errors.As(next.err, &refusal) || refusal.Code != wire.CodeStorageFull {
		return false
	}
	if b.full == nil || next.number < b.fullAt {
		b.full, b.fullAt = next.err, next.number
	}
	b.stop(errDiskFull)
	return true
}

func (b *bulk) count(next answer) {
	switch {
	case errors.Is(next.err, client.ErrOutcomeUnknown):
		b.unknown++
		return
	case next.err != nil:
		b.failed++
		return
	case next.enqueued.Replayed:
		b.replayed++
	default:
		b.created++
	}
	b.ids = append(b.ids, next.enqueued.TaskID)
}

// step prints something where the progress bar is.
func (b *bulk) step(show func()) {
	if b.bar != nil {
		_ = b.bar.Clear() // a bar that can not be drawn is no reason to stop
	}
	show()
}

func (b *bulk) progress(size int) {
	if b.bar != nil {
		_ = b.bar.Add(size) // as above
	}
}

func answerJSON(next answer) []byte {
	line := fmt.Appendf(nil, `{"line":%d`, next.number)
	if next.err == nil {
		line = wire.AppendQuoted(append(line, `,"taskId":`...), next.enqueued.TaskID.String())
		return fmt.Appendf(line, `,"replayed":%t}`, next.enqueued.Replayed)
	}
	code := wire.CodeInvalidBody // this program found it
	var refusal *wire.Error
	said := next.err.Error()
	switch {
	case errors.As(next.err, &refusal):
		code, said = refusal.Code, refusal.Sentence
	case errors.Is(next.err, errTooLarge):
		code = wire.CodeTooLarge
	case errors.Is(next.err, client.ErrOutcomeUnknown):
		code = "outcome_unknown"
	case errors.Is(next.err, client.ErrClosed):
		code = "not_sent"
	}
	line = wire.AppendQuoted(append(line, `,"error":`...), said)
	return append(wire.AppendQuoted(append(line, `,"code":`...), string(code)), '}')
}

// summary prints the counts.
func (b *bulk) summary() error {
	if b.app.JSON {
		line := fmt.Appendf(nil, `{"created":%d,"replayed":%d,"failed":%d,"unknown":%d`, b.created, b.replayed, b.failed, b.unknown)
		if b.keys != nil {
			line = wire.AppendQuoted(append(line, `,"run":`...), b.keys.run)
		}
		return b.app.writeLine(append(line, '}'))
	}
	if b.app.Quiet {
		return nil
	}
	line := fmt.Appendf(nil, "%s: %s", printable(b.file.name), counted(b.created, "new task"))
	if b.replayed > 0 {
		line = fmt.Appendf(line, ", %s that had a task from this run", counted(b.replayed, "line"))
	}
	if b.failed > 0 {
		line = fmt.Appendf(line, ", %s failed", counted(b.failed, "line"))
	}
	if b.unknown > 0 {
		line = fmt.Appendf(line, ", %s", b.unanswered())
	}
	return b.app.writeLine(line)
}

func (b *bulk) unanswered() string {
	return counted(b.unknown, "line") + " without an answer (the server may or may not have accepted them)"
}

// counted is a number of things whose name has a plural in s.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// results waits for the results of all the tasks and prints each.
func (b *bulk) results(ctx context.Context, c *client.Client, waitFor time.Duration) error {
	until := time.Now().Add(waitFor)
	ids := make(chan wire.TaskID)
	var waiters sync.WaitGroup
	var mu sync.Mutex // held to print and to count
	worst := exitFine
	var broken error
	for range waitersAtOnce {
		waiters.Go(func() {
			for id := range ids {
				var body []byte
				answer, err := c.ResultWithin(client.CaptureAnswer(ctx, &body), id, max(0, time.Until(until)))
				mu.Lock()
				if err == nil {
					broken = errors.Join(broken, b.app.showResult(answer, body))
					err = completed(answer)
				}
				if err != nil && ctx.Err() == nil {
					worst = worseExit(worst, exitCode(err))
					b.app.complain("%s", about(id, err))
				}
				mu.Unlock()
			}
		})
	}
	for _, id := range b.ids {
		select {
		case ids <- id:
		case <-ctx.Done():
		}
	}
	close(ids)
	waiters.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case broken != nil:
		return broken
	case worst != exitFine:
		return saidBefore(worst)
	}
	return nil
}
