package codeqtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"codeq/client"
	"codeq/client/codeqtest"
	"codeq/wire"
)

// hour bounds what a test waits for by the clock of the machine.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// claim takes the next task, which must be there or not.
func claim(t *testing.T, s *codeqtest.Server, want bool) *client.Claimed {
	t.Helper()
	claimed, err := s.Client.Claim(within(t), client.ClaimOptions{Commands: []string{"mail"}, Lease: 30 * time.Second})
	if err != nil || (len(claimed) == 1) != want {
		t.Fatalf("claimed %d tasks, error %v, want one: %t", len(claimed), err, want)
	}
	if !want {
		return nil
	}
	return claimed[0]
}

func TestDelayedTaskIsReadyAtItsTime(t *testing.T) {
	s := codeqtest.New(t)
	if _, err := s.Client.Enqueue(within(t), "mail", "hello", client.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Hour - time.Millisecond)
	claim(t, s, false)
	s.Advance(time.Millisecond)
	claim(t, s, true)
}

func TestTaskThatAlwaysFailsBecomesADeadLetter(t *testing.T) {
	s := codeqtest.New(t)
	task, err := s.Client.Enqueue(within(t), "mail", "hello", client.MaxAttempts(3))
	if err != nil {
		t.Fatal(err)
	}
	for attempt := range 3 {
		end, err := claim(t, s, true).End(within(t), client.Nack("busy"))
		if err != nil || end.DeadLetter != (attempt == 2) {
			t.Fatalf("attempt %d: %+v, error %v", attempt, end, err)
		}
		s.Advance(15 * time.Minute) // the longest pause of the default policy
	}
	now, err := s.Client.Task(within(t), task.TaskID)
	if err != nil || now.Location != wire.LocationDead || now.Attempts != 3 {
		t.Errorf("the task is %+v, error %v", now, err)
	}
	var failed *client.TaskError
	if _, err := s.Client.Result(within(t), task.TaskID); !errors.As(err, &failed) || failed.Result.Error != "busy" {
		t.Errorf("the result is %v, want the reason of the last attempt", err)
	}
}

func TestAWorkerThatLosesItsLeaseIsTold(t *testing.T) {
	s := codeqtest.New(t)
	began, told := make(chan struct{}), make(chan error, 1)
	handler := func(ctx context.Context, _ string) (map[string]bool, error) {
		close(began)
		<-ctx.Done()
		told <- context.Cause(ctx)
		return nil, ctx.Err()
	}
	ctx, stop := context.WithCancel(within(t))
	ended := make(chan error, 1)
	go func() { ended <- client.Work(ctx, s.Client, "mail", handler, client.Lease(30*time.Second)) }()
	if _, err := s.Client.Enqueue(ctx, "mail", "hello"); err != nil {
		t.Fatal(err)
	}
	<-began
	s.Advance(31 * time.Second) // no heartbeat can come in between
	if cause := <-told; !errors.Is(cause, client.ErrLeaseLost) {
		t.Errorf("the handler was told %v", cause)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// One advance works off what follows from what it made due: the leases end, the tasks wait for
// their retry, and are ready again.
func TestAdvanceStopsAtEachMoment(t *testing.T) {
	s := codeqtest.New(t)
	task, err := s.Client.Enqueue(within(t), "mail", "hello")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		claim(t, s, true)
		s.Advance(31*time.Second + 10*time.Second)
	}
	now, err := s.Client.Task(within(t), task.TaskID)
	if err != nil || now.Attempts != 2 || now.Location != wire.LocationPending {
		t.Errorf("the task is %+v, error %v", now, err)
	}
	again := codeqtest.New(t)
	same, err := again.Client.Enqueue(within(t), "mail", "hello")
	if err != nil || same.TaskID != task.TaskID {
		t.Errorf("the first task of another server is %v, error %v, want %v", same.TaskID, err, task.TaskID)
	}
	s.Advance(25 * time.Hour)
	claim(t, s, true)
}

func TestWhatHasEndedIsRemovedADayLater(t *testing.T) {
	s := codeqtest.New(t)
	task, err := s.Client.Enqueue(within(t), "mail", "hello")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claim(t, s, true).End(within(t), client.Complete([]byte(`{}`))); err != nil {
		t.Fatal(err)
	}
	s.Advance(24*time.Hour - time.Second)
	if _, err := s.Client.Task(within(t), task.TaskID); err != nil {
		t.Errorf("a second before: %v", err)
	}
	s.Advance(2 * time.Second)
	var refusal *wire.Error
	if _, err := s.Client.Task(within(t), task.TaskID); !errors.As(err, &refusal) || refusal.Code != wire.CodeTaskNotFound {
		t.Errorf("a day later: %v", err)
	}
}

// A watch is on the clock of the machine: it tells what happens while the clock of the server stands still,
// and outlives a long advance.
func TestAWatchGoesOnWhileTheClockStandsStill(t *testing.T) {
	s := codeqtest.New(t)
	posted := int64(0)
	for news, err := range s.Client.Watch(within(t), client.QueueWatch{}) {
		if err != nil {
			t.Fatalf("after %d tasks: %v", posted, err)
		}
		ready := int64(0)
		if len(news.Queues) == 1 {
			ready = news.Queues[0].Figures[wire.FigureReady]
		}
		if ready < posted {
			continue
		}
		if posted++; posted > 3 {
			return
		}
		if _, err := s.Client.Enqueue(within(t), "mail", "hello"); err != nil {
			t.Fatal(err)
		}
		if posted == 2 {
			s.Advance(24 * time.Hour)
		}
	}
}
