package main

type cancelCmd struct {
	ID string `arg:"" name:"id" help:"Id of the task."`
}

// Run cancels one task and shows what it is then.
func (t *cancelCmd) Run(a *app) error {
	id, err := parseID(t.ID)
	if err != nil {
		return err
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, done := a.untilStopped()
	defer done()
	answer, err := c.Cancel(ctx, id)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.writeLine(answer.Raw)
	}
	return taskFields(answer.Task).write(a.out)
}
