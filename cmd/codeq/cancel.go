package main

type cancelCmd struct {
	ID string `arg:"" name:"id" help:"Id of the task."`
	times
}

// Run cancels one task and shows what it is then.
func (t *cancelCmd) Run(a *app) error {
	id, err := parseID(t.ID)
	if err != nil {
		return err
	}
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	return a.showTask(c.Cancel(ctx, id))
}
