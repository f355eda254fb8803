package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"codeq/client"
	"codeq/wire"
)

var errTooLarge = errors.New("the payload is too large")

// The name of a run needs no quotes in a command line.
const (
	runLetters  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	maxRunBytes = 100
)

type enqueueCmd struct {
	Command     string        `arg:"" help:"Queue to which the task is posted."`
	Payload     *string       `arg:"" optional:"" help:"JSON that the worker gets; - reads standard input, and so does a command without it and --file."`
	File        string        `type:"path" placeholder:"FILE" help:"Post one task for each line of this file of JSON values; - reads standard input."`
	Priority    int           `default:"0" help:"0 to 9; higher priorities are granted first."`
	Delay       time.Duration `whole:"" xor:"due" help:"Grant the task only after this time, in whole seconds."`
	RunAt       *string       `xor:"due" placeholder:"TIME" help:"Grant the task only from this time on, like 2030-01-02T15:04:05Z."`
	MaxAttempts int           `least:"1" most:"1000" help:"Number of attempts, 1 to 1000."`
	Timeout     time.Duration `whole:"" help:"Longest time of one delivery, in whole seconds. When it is over, the attempt has failed and the task is retried."`
	TTL         time.Duration `name:"ttl" whole:"" xor:"expiry" help:"End the task if it has not begun within this time, in whole seconds."`
	ExpiresAt   *string       `xor:"expiry" placeholder:"TIME" help:"End the task if it has not begun by this time, like 2030-01-02T15:04:05Z."`
	Key         *string       `placeholder:"KEY" help:"Idempotency key: a second post with the same key finds the first task."`
	Shares      *string       `name:"concurrency-key" placeholder:"KEY" help:"Concurrency key, for example the customer: the limits per key of the queue hold for tasks with the same key."`
	Label       []string      `sep:"none" placeholder:"NAME=VALUE" help:"Label by which the task is found, like customer=acme. It may be given eight times."`
	Webhook     string        `placeholder:"URL" help:"Post the outcome of the task to this http or https URL, signed, until it is taken."`
	RunName     *string       `name:"run" placeholder:"NAME" help:"Continue this run of --file: a line whose task the run has made gets no second one. Without it the run is new."`
	NoKey       bool          `help:"Give the lines of --file no keys. A run that ends early cannot be continued then."`
	Wait        time.Duration `help:"Wait this long for the result and print it; with --file, for all results together."`
	Once        bool          `help:"Fail at once if no server answers. Without it --file, --key and --wait wait for a server, up to a minute to post."`
	times
}

// Help is the longer text of "codeq enqueue --help".
func (e *enqueueCmd) Help() string {
	return `--file makes a task of every line, each time it is run. A run that ends early, or has lines that are not JSON, prints
its name. Correct the file and continue with --run and that name: lines whose task is still there keep it, wherever they stand
now, and only new and corrected lines are posted. A run stops at the first line that is refused because the disk of
the server is nearly full. A process that is killed prints nothing; name the run yourself where that may happen.

  codeq enqueue mail --file mails.ndjson --run mails-2026-11-28`
}

// Run posts the task or the tasks.
func (e *enqueueCmd) Run(a *app) error {
	template, err := e.template()
	if err != nil {
		return err
	}
	a.once = e.Once
	return a.ask(func(ctx context.Context, c *client.Client) error {
		if e.File != "" {
			return e.postFile(ctx, a, c, template)
		}
		if template.Payload, err = e.payload(ctx, a); err != nil {
			return err
		}
		if e.Key != nil {
			template.IdempotencyKey = *e.Key
		}
		return e.postOne(ctx, a, c, &template)
	})
}

// template is the request that the flags describe, without payload and key.
// What the server would refuse is refused here, in its words.
func (e *enqueueCmd) template() (wire.EnqueueRequest, error) {
	request := wire.EnqueueRequest{Command: e.Command, Priority: e.Priority, Payload: []byte("null")}
	if err := e.checkFlags(); err != nil {
		return request, err
	}
	request.MaxAttempts, request.DelaySeconds = e.MaxAttempts, int64(e.Delay/time.Second)
	request.TimeoutSeconds, request.TTLSeconds = int64(e.Timeout/time.Second), int64(e.TTL/time.Second)
	labels, refusal := wire.MakeLabels(e.Label)
	if refusal != nil {
		return request, wrong("--%s", refusal.Sentence)
	}
	request.Labels, request.Webhook = labels, e.Webhook
	// A program of "codeq work" that posts a task hands on the trace of its own.
	request.TraceParent, request.TraceState = wire.TraceContext(os.Getenv("CODEQ_TRACEPARENT"), os.Getenv("CODEQ_TRACESTATE"))
	if e.Shares != nil {
		if request.ConcurrencyKey = *e.Shares; request.ConcurrencyKey == "" {
			return request, wrong("--concurrency-key must not be empty")
		}
	}
	var err error
	if request.RunAtMs, err = momentOf("run-at", e.RunAt); err != nil {
		return request, err
	}
	if request.ExpiresAtMs, err = momentOf("expires-at", e.ExpiresAt); err != nil {
		return request, err
	}
	checked := request
	if e.Key != nil {
		checked.IdempotencyKey = *e.Key
	}
	if refusal := checked.Check(); refusal != nil {
		return request, &exitError{refusal, exitWrong}
	}
	return request, nil
}

// momentOf is the time that a flag names, 0 without it.
func momentOf(flag string, text *string) (ms int64, err error) {
	if text == nil {
		return 0, nil
	}
	ms, ok := wire.ParseTimeMs(*text)
	if !ok {
		return 0, wrong("--%s must be a time like 2030-01-02T15:04:05Z, got %.80q", flag, *text)
	}
	return ms, nil
}

// checkFlags refuses flags that contradict one another, and values that a request cannot
// hold.
func (e *enqueueCmd) checkFlags() error {
	switch {
	case e.File != "" && e.Payload != nil:
		return wrong("give either a payload or --file, not both")
	case e.File != "" && e.Key != nil:
		return wrong("--key is for one task: with --file each line gets its own key from --run and its content")
	case e.File == "" && e.NoKey:
		return wrong("--no-key needs --file: a single task has a key only with --key")
	case e.File == "" && e.RunName != nil:
		return wrong("--run needs --file: it tells which lines have tasks")
	case e.NoKey && e.RunName != nil:
		return wrong("give either --run or --no-key: without keys a run cannot tell which lines have tasks")
	case e.RunName != nil && !isRun(*e.RunName):
		return wrong("--run must have 1 to %d letters, digits and any of ._-, got %.120q", maxRunBytes, *e.RunName)
	case e.Key != nil && *e.Key == "":
		return wrong("--key must not be empty; leave it out for a task without a key")
	}
	return nil
}

func isRun(name string) bool {
	return name != "" && len(name) <= maxRunBytes && strings.Trim(name, runLetters) == ""
}

// payload is the argument, or all of standard input.
func (e *enqueueCmd) payload(ctx context.Context, a *app) ([]byte, error) {
	if e.Payload != nil && *e.Payload != "-" {
		payload, err := onePayload([]byte(*e.Payload))
		if err != nil {
			return nil, wrong("%w; write objects as '{\"file\":\"a.iso\"}' and text as '\"hello\"', with the single quotes", err)
		}
		return payload, nil
	}
	if a.inIsTerminal && e.Payload == nil {
		return nil, wrong("no payload: give it as an argument like '{\"file\":\"a.iso\"}', pipe it in, or name a file of lines with --file")
	}
	read, err := a.readAll(ctx, wire.MaxPayloadBytes)
	if err != nil {
		return nil, err
	}
	payload, err := onePayload(read)
	if err != nil {
		return nil, wrong("standard input: %w; it must be one JSON value, and --file - reads one on each line", err)
	}
	return payload, nil
}

// onePayload is the JSON value in text, without the white space around it and a
// byte order mark in front.
func onePayload(text []byte) ([]byte, error) {
	plain, err := wire.PlainText(text)
	if err != nil {
		return nil, err
	}
	payload := bytes.Trim(plain, " \t\r\n")
	switch {
	case len(payload) == 0:
		return nil, errors.New("the payload is empty")
	case len(payload) > wire.MaxPayloadBytes:
		return nil, fmt.Errorf("%w: it has %d bytes, the limit is %d", errTooLarge, len(payload), wire.MaxPayloadBytes)
	}
	if err := wire.CheckJSON(payload); err != nil {
		return nil, fmt.Errorf("payload %s: %w", excerpt(payload), err)
	}
	return payload, nil
}

// excerpt is the beginning of a payload for a sentence.
func excerpt(payload []byte) string {
	const cells = 40
	return cutTo(strings.Join(strings.Fields(strings.ToValidUTF8(string(payload[:min(len(payload), 4*cells)]), "\uFFFD")), " "), cells)
}

// ofQueue adds to the refusal of a task that would expire before it may begin that the
// ttl is the queue's, if the task has none.
func ofQueue(request *wire.EnqueueRequest, err error) error {
	var refusal *wire.Error
	if request.TTLSeconds+request.ExpiresAtMs != 0 || !errors.As(err, &refusal) || !strings.Contains(refusal.Sentence, "would expire") {
		return err
	}
	return wire.Refuse(refusal.Code, fmt.Sprintf("%s; its ttl is that of the queue, which \"codeq queue show %s\" shows",
		refusal.Sentence, request.Command))
}

func (e *enqueueCmd) postOne(ctx context.Context, a *app, c *client.Client, request *wire.EnqueueRequest) error {
	// A task with a key is posted again until an answer comes or this time is over.
	postFor := max(e.Wait, giveUpAfter)
	posting, stop := context.WithTimeoutCause(ctx, postFor, tryAgain("the server did not answer within %s", postFor))
	defer stop()
	enqueued, err := c.EnqueueRequest(posting, request)
	if errors.Is(err, client.ErrOutcomeUnknown) && request.IdempotencyKey != "" {
		return fmt.Errorf("%w; its key makes it safe to repeat this command", err)
	}
	if err != nil {
		return ofQueue(request, err)
	}
	if enqueued.Replayed {
		a.say("a task with this key existed already")
	}
	if e.Wait == 0 {
		line := enqueued.TaskID.AppendTo(nil)
		if a.JSON {
			line = a.answer
		}
		if err := a.writeLine(line); err != nil {
			return fmt.Errorf("task %s is made: %w", enqueued.TaskID, err)
		}
		return nil
	}
	answer, err := c.ResultWithin(ctx, enqueued.TaskID, e.Wait)
	var refusal *wire.Error
	if err = a.noResult(ctx, c, enqueued.TaskID, err); errors.As(err, &refusal) && strings.Contains(refusal.Sentence, enqueued.TaskID.String()) {
		return fmt.Errorf("it is posted: %w", err)
	}
	if err != nil {
		return fmt.Errorf("task %s is posted: %w", enqueued.TaskID, err)
	}
	if err := a.showResult(answer, a.answer); err != nil {
		return fmt.Errorf("task %s is made: %w", enqueued.TaskID, err)
	}
	return completed(answer)
}
