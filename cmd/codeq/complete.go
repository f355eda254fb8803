package main

import (
	"bytes"

	"codeq/client"
	"codeq/wire"
)

type completeCmd struct {
	held
	Result *string `arg:"" optional:"" help:"The result, a JSON object; - reads standard input."`
	Error  *string `placeholder:"TEXT" help:"The task failed for good, for this reason. It is not retried."`
	exited
}

// Run completes a claimed task, or fails it for good.
func (c *completeCmd) Run(a *app) error {
	exit, err := c.exit()
	switch {
	case err != nil:
		return err
	case exit != (wire.Exit{}) && c.Error == nil:
		return wrong("--exit-code and --signal need --error: they say how the work failed")
	case (c.Result == nil) == (c.Error == nil):
		return wrong("give either a result, like '{}', or --error with the reason")
	case c.Error != nil && *c.Error == "":
		return wrong("--error must not be empty: it says why the task failed")
	case c.Error != nil:
		return c.end(a, client.Fail(*c.Error).Exited(exit))
	}
	result, err := c.result(a)
	if err != nil {
		return err
	}
	return c.end(a, client.Complete(result))
}

// end ends the task. If the task had ended before, the server answers with the result that
// it keeps, which may be another one.
func (c *completeCmd) end(a *app, out client.Outcome) error {
	answer, err := c.ask(a, out)
	if err != nil {
		return err
	}
	stands, err := wire.ParseResultRecord(a.answer)
	if err != nil {
		return err
	}
	if !bytes.Equal(stands.Result, out.Result) || stands.Error != out.Reason {
		a.complain("task %s had ended before: its first result is kept", c.ID)
	}
	return c.tell(a, answer)
}

// result is the argument, or all of standard input. A result that is no object is refused:
// as an outcome it would be a nack, which is another command.
func (c *completeCmd) result(a *app) ([]byte, error) {
	text := []byte(*c.Result)
	if *c.Result == "-" {
		ctx, done := a.untilStopped()
		defer done()
		var err error
		if text, err = a.readAll(ctx, wire.MaxResultBytes); err != nil {
			return nil, err
		}
	}
	plain, err := wire.PlainText(text)
	if err != nil {
		return nil, wrong("the result: %w", err)
	}
	text = bytes.Trim(plain, " \t\r\n")
	if out := client.Complete(text); out.Kind != client.Completed {
		return nil, wrong("%s; write it like '{\"sum\":12}', with the single quotes", out.Reason)
	}
	return text, nil
}
