package faults

import (
	"context"
	"time"

	"codeq/client"
	"codeq/wire"
)

// rollingWorker is one worker of the SDK whose tasks take as many milliseconds
// as they say. It takes so many that the tasks of a deployment wait for no
// others: those of the heavy form are under way for half a minute.
func rollingWorker(x *site, name string, grace time.Duration, note func(id wire.TaskID, done bool)) func(context.Context) {
	c := x.sdk(x.server.Addr)
	return func(ctx context.Context) {
		for ctx.Err() == nil {
			// It may find no server at its start; it is started again then.
			_ = client.Work(ctx, c, command, func(ctx context.Context, millis int) (struct{}, error) {
				id := client.TaskFrom(ctx).ID
				note(id, false)
				select {
				case <-time.After(time.Duration(millis) * time.Millisecond):
					note(id, true)
					return struct{}{}, nil
				case <-ctx.Done():
					return struct{}{}, context.Cause(ctx)
				}
			}, client.Window(scale(4, 100)), client.Grace(grace), client.WorkerID(name))
			pause(ctx, lookAgain)
		}
	}
}

// judgeRestart waits for the end of everything and says how long the longest
// took beyond its own work.
func (x *site) judgeRestart(posted map[wire.TaskID]time.Time,
	seen func() (map[wire.TaskID]int, map[wire.TaskID]time.Time)) {
	x.t.Helper()
	for id := range posted {
		if record := x.outcome(id); record.Status != wire.StatusCompleted {
			x.t.Errorf("task %v is %+v", id, record)
		}
		if task := x.read(id); task.Attempts != 0 {
			x.t.Errorf("a restart cost task %v %d attempts: %+v", id, task.Attempts, task.History)
		}
	}
	began, finished := seen()
	var longest time.Duration
	again := 0
	for id, at := range posted {
		longest = max(longest, finished[id].Sub(at))
		again += began[id] - 1
	}
	x.t.Logf("%d tasks, the longest took %v from its post to its end; %d were begun again", len(posted), longest, again)
	// A task that is stranded costs an attempt as well; this is for one that is
	// only forgotten.
	if bound := scale(time.Minute, 2*time.Minute); longest > bound {
		x.t.Errorf("a task took %v", longest)
	}
}
