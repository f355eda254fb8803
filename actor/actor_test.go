package actor_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codeq/actor"
	"codeq/mailbox"
)

var roomy = mailbox.Limits{Messages: 1 << 20, Bytes: 1 << 30}

// call is one call of handle as a test saw it.
type call struct {
	at    time.Duration
	batch []int
}

// diary is a handle that writes its calls down and sleeps as it was told; once
// it runs out of answers it sleeps for ever.
type diary struct {
	start   time.Time
	answers []time.Duration
	calls   []call
}

func (d *diary) handle(batch []int) time.Duration {
	d.calls = append(d.calls, call{time.Since(d.start), slices.Clone(batch)})
	if len(d.answers) == 0 {
		return actor.Forever
	}
	next := d.answers[0]
	d.answers = d.answers[1:]
	return next
}

func (d *diary) want(t *testing.T, want ...call) {
	t.Helper()
	same := func(a, b call) bool { return a.at == b.at && slices.Equal(a.batch, b.batch) }
	if !slices.EqualFunc(d.calls, want, same) {
		t.Fatalf("calls %v, want %v", d.calls, want)
	}
}

func start(answers ...time.Duration) (*mailbox.Mailbox[int], *actor.Actor, *diary) {
	box := mailbox.New[int](roomy)
	d := &diary{start: time.Now(), answers: answers}
	return box, actor.Start(box, d.handle), d
}

// pass lets the time of a synctest bubble pass.
func pass(d time.Duration) { <-time.After(d) }

func push(t *testing.T, box *mailbox.Mailbox[int], batch ...int) {
	t.Helper()
	if v := box.Push(batch, 0, mailbox.ClassKeep); v != mailbox.Accepted {
		t.Fatalf("push was %v", v)
	}
}

func TestSleepsToTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, d := start(3*time.Second, 250*time.Millisecond, actor.Forever)
		pass(5 * time.Second)
		a.Stop()
		d.want(t, call{0, nil}, call{3 * time.Second, nil}, call{3250 * time.Millisecond, nil}, call{5 * time.Second, nil})
	})
}

func TestPushWakesBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, a, d := start(9*time.Second, 2*time.Second)
		pass(time.Second)
		push(t, box, 1, 2)
		synctest.Wait()
		pass(3 * time.Second)
		a.Stop()
		d.want(t, call{0, nil}, call{time.Second, []int{1, 2}}, call{3 * time.Second, nil}, call{4 * time.Second, nil})
	})
}

func TestNeverSleepsLongerThanMaxSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, d := start(actor.Forever, time.Hour, actor.Forever)
		pass(2*actor.MaxSleep + time.Second)
		a.Stop()
		d.want(t, call{0, nil}, call{actor.MaxSleep, nil}, call{2 * actor.MaxSleep, nil},
			call{2*actor.MaxSleep + time.Second, nil})
	})
}

func TestNoSleepWhileHandleWantsToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, d := start(0, -time.Second, 0, time.Second)
		pass(2 * time.Second)
		a.Stop()
		d.want(t, call{0, nil}, call{0, nil}, call{0, nil}, call{0, nil}, call{time.Second, nil}, call{2 * time.Second, nil})
	})
}

func TestBacklogComesAsOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := mailbox.New[int](roomy)
		var batches [][]int
		release := make(chan struct{})
		a := actor.Start(box, func(batch []int) time.Duration {
			batches = append(batches, slices.Clone(batch))
			<-release
			return actor.Forever
		})
		synctest.Wait()
		for i := range 5 {
			push(t, box, i)
		}
		close(release)
		a.Stop()
		if len(batches) < 2 || !slices.Equal(batches[1], []int{0, 1, 2, 3, 4}) {
			t.Fatalf("batches %v", batches)
		}
	})
}

func TestStopHandlesWhatWasAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, a, d := start()
		synctest.Wait()
		push(t, box, 1, 2, 3)
		a.Stop()
		var handled []int
		for _, c := range d.calls {
			handled = append(handled, c.batch...)
		}
		if !slices.Equal(handled, []int{1, 2, 3}) {
			t.Fatalf("handled %v", handled)
		}
		if v := box.Push([]int{4}, 0, mailbox.ClassKeep); v != mailbox.Closed {
			t.Fatalf("push after Stop was %v", v)
		}
	})
}

func TestStopLetsHandleFinishWhatItPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := mailbox.New[int](roomy)
		var waiting, done []int
		a := actor.Start(box, func(batch []int) time.Duration {
			waiting = append(waiting, batch...)
			if len(waiting) > 0 {
				done, waiting = append(done, waiting[0]), waiting[1:]
			}
			if len(waiting) > 0 {
				return 0
			}
			return actor.Forever
		})
		push(t, box, 1, 2, 3, 4)
		a.Stop()
		if !slices.Equal(done, []int{1, 2, 3, 4}) {
			t.Fatalf("done %v, waiting %v", done, waiting)
		}
	})
}

func TestStopBeforeTheFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, _ := start()
		a.Stop()
		a.Stop()
		<-a.Done()
	})
}

func TestEndsWhenItsMailboxIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, a, d := start()
		push(t, box, 7)
		box.Close()
		<-a.Done()
		if last := d.calls[len(d.calls)-1]; !slices.Equal(last.batch, []int{7}) {
			t.Fatalf("calls %v", d.calls)
		}
	})
}

func TestStartsOnAClosedMailbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := mailbox.New[int](roomy)
		push(t, box, 1)
		box.Close()
		d := &diary{start: time.Now()}
		<-actor.Start(box, d.handle).Done()
		d.want(t, call{0, []int{1}})
	})
}

// Each run starts an actor, lets several goroutines push and stop it at the
// same time, and counts: every accepted message is handled, once.
func TestStartAndStopUnderStress(t *testing.T) {
	sleeps := []time.Duration{actor.Forever, time.Microsecond, time.Millisecond}
	for run := range 300 {
		box := mailbox.New[int](mailbox.Limits{Messages: 32, Bytes: 1 << 20})
		handled := 0 // the actor's until Done
		a := actor.Start(box, func(batch []int) time.Duration {
			handled += len(batch)
			if handled%7 == 1 && len(batch) > 0 {
				return 0
			}
			return sleeps[run%len(sleeps)]
		})
		accepted := pushWhileStopping(a, box, 20*(run%5))
		if handled != accepted {
			t.Fatalf("run %d: handled %d of %d accepted", run, handled, accepted)
		}
	}
}

// pushWhileStopping has four goroutines push messages each and then stop the
// actor, and returns how many messages were accepted.
func pushWhileStopping(a *actor.Actor, box *mailbox.Mailbox[int], messages int) int {
	const producers = 4
	var wg sync.WaitGroup
	var accepted [producers]int
	for p := range producers {
		wg.Go(func() {
			for range messages {
				if box.Push([]int{1, 2}, 1, mailbox.ClassKeep) == mailbox.Accepted {
					accepted[p] += 2
				}
			}
			a.Stop()
			a.Stop()
		})
	}
	wg.Wait()
	total := 0
	for _, n := range accepted {
		total += n
	}
	return total
}
