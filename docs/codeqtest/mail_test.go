package mail

import (
	"context"
	"errors"
	"testing"
	"time"

	"codeq/client"
	"codeq/client/codeqtest"
)

// A reminder is sent an hour after it was posted, and no sooner.
func TestReminderIsSentAfterAnHour(t *testing.T) {
	s := codeqtest.New(t)
	sent := make(chan string, 1)
	work(t, s, "remind", func(_ context.Context, to string) (map[string]bool, error) {
		sent <- to
		return nil, nil
	})
	task, err := s.Client.Enqueue(t.Context(), "remind", "ada", client.Delay(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Hour - time.Second)
	if len(sent) > 0 {
		t.Error("the reminder was sent too early")
	}
	s.Advance(time.Second)
	if _, err := s.Client.Result(t.Context(), task.TaskID); err != nil || <-sent != "ada" {
		t.Error(err)
	}
}

// A mail that is refused three times is a dead letter.
func TestMailThatIsRefusedIsADeadLetter(t *testing.T) {
	s := codeqtest.New(t)
	ended := make(chan client.Ending, 3)
	work(t, s, "mail", func(context.Context, string) (map[string]bool, error) {
		return nil, errors.New("mailbox full")
	}, client.Ended(func(e client.Ending) { ended <- e }))
	task, err := s.Client.Enqueue(t.Context(), "mail", "ada", client.MaxAttempts(3))
	if err != nil {
		t.Fatal(err)
	}
	for attempt := 1; attempt <= 3; attempt++ {
		end := <-ended
		if end.Err != nil || end.DeadLetter != (attempt == 3) {
			t.Errorf("attempt %d: dead letter %t, error %v", attempt, end.DeadLetter, end.Err)
		}
		s.Advance(end.Wait) // the pause that the server has drawn
	}
	var failed *client.TaskError
	if _, err := s.Client.Result(t.Context(), task.TaskID); !errors.As(err, &failed) || failed.Result.Error != "mailbox full" {
		t.Errorf("the task ended with %v", err)
	}
}

// A worker that was away for longer than its lease stops its work.
func TestWorkStopsWhenTheLeaseIsLost(t *testing.T) {
	s := codeqtest.New(t)
	began, stopped := make(chan bool), make(chan error, 1)
	work(t, s, "film", func(ctx context.Context, _ string) (map[string]bool, error) {
		began <- true
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	if _, err := s.Client.Enqueue(t.Context(), "film", "owl"); err != nil {
		t.Fatal(err)
	}
	<-began
	s.Advance(time.Minute) // at one blow, so that no heartbeat comes in between
	if err := <-stopped; !errors.Is(err, client.ErrLeaseLost) {
		t.Errorf("the work was stopped by %v", err)
	}
}

// work runs a worker until the test ends.
func work(t *testing.T, s *codeqtest.Server, command string, handler func(context.Context, string) (map[string]bool, error), options ...client.WorkOption) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- client.Work(ctx, s.Client, command, handler, options...) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
