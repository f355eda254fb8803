package server

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"codeq/wire"
)

// tamperedTime is the machine's time with steps of the wall clock and
// suspensions put in.
type tamperedTime struct{ stepNs, sleptNs atomic.Int64 }

func (c *tamperedTime) source() TimeSource {
	return TimeSource{
		WallNs:    func() int64 { return time.Now().UnixNano() + c.stepNs.Load() + c.sleptNs.Load() },
		ElapsedNs: func() int64 { return elapsedNs() + c.sleptNs.Load() },
	}
}

func (c *tamperedTime) step(d time.Duration)    { c.stepNs.Add(int64(d)) }
func (c *tamperedTime) suspend(d time.Duration) { c.sleptNs.Add(int64(d)) }

// outstanding is how many leases and how many delays are under way while the
// clock is tampered with.
const outstanding = 100

// pending is a server with leases and delays outstanding, and what came of them.
type pending struct {
	*site
	clock  *tamperedTime
	worker *socket
	leased map[wire.TaskID]wire.Token
	// leasedAt and delayedAt are when the last of each was known to be made.
	leasedAt, delayedAt time.Time
	lease, delay        time.Duration
}

func openTampered(t *testing.T, dir string, clock *tamperedTime) *site {
	t.Helper()
	s, err := Open(Options{
		DataDir: dir, Listen: "127.0.0.1:0", Log: zerolog.Nop(), Version: "test", Time: clock.source(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return newSite(t, s)
}

// makePending makes leases and delays of the given lengths, whole seconds. The
// moments are taken before the first of each, so nothing may happen earlier than
// they say.
func makePending(t *testing.T, dir string, lease, delay time.Duration) *pending {
	t.Helper()
	clock := &tamperedTime{}
	p := &pending{
		site: openTampered(t, dir, clock), clock: clock, lease: lease, delay: delay,
		leased: make(map[wire.TaskID]wire.Token),
	}
	p.worker = p.dial()
	p.worker.say(fmt.Sprintf(`{"type":"subscribe","commands":["held"],"window":%d,"leaseSeconds":%d}`, outstanding, lease/time.Second))
	p.leasedAt = time.Now()
	p.postMany("held", "")
	for len(p.leased) < outstanding {
		f := hear[*wire.TaskFrame](p.worker)
		p.leased[f.Task.ID] = f.Token
	}
	// A delivery that is not known to have arrived goes back as soon as its socket
	// ends, long before its lease does.
	p.worker.say(fmt.Sprintf(`{"type":"received","ref":1,"through":%d}`, outstanding))
	hear[*wire.OK](p.worker)
	p.delayedAt = time.Now()
	p.postMany("late", fmt.Sprintf(`,"delaySeconds":%d`, delay/time.Second))
	return p
}

func (p *pending) postMany(command, more string) {
	p.t.Helper()
	item := fmt.Sprintf(`{"command":%q,"payload":1,"maxAttempts":9%s}`, command, more)
	a := p.ask("POST", "/v1/codeq/tasks/batch", `{"tasks":[`+strings.Repeat(item+",", outstanding-1)+item+`]}`)
	if a.status != 200 || strings.Contains(a.body, `"code"`) {
		p.t.Fatalf("post: %d %.300s", a.status, a.body)
	}
}

// collect takes tasks of a command until all have come, and holds against each
// that it may not have come before its time.
func (p *pending) collect(command string, notBefore time.Time) {
	p.t.Helper()
	k := p.dial()
	k.say(fmt.Sprintf(`{"type":"subscribe","commands":[%q],"window":%d}`, command, 2*outstanding))
	seen := make(map[wire.TaskID]bool)
	for len(seen) < outstanding {
		f := hear[*wire.TaskFrame](k)
		if early := time.Until(notBefore); early > 0 {
			p.t.Fatalf("a task of %s came %v too early", command, early)
		}
		if seen[f.Task.ID] {
			p.t.Fatalf("task %v came twice", f.Task.ID)
		}
		seen[f.Task.ID] = true
	}
}

// untilDue bounds what the clock's own correction of 1 % may take off a time.
func (p *pending) untilDue(from time.Time, length time.Duration) time.Time {
	return from.Add(length - length/50)
}

func TestA33AStepOfTheWallClockExpiresNothingAndFiresNothing(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := makePending(t, t.TempDir(), 3*time.Second, 2*time.Second)
			p.clock.step(step)
			ready := p.ask("GET", "/readyz", "")
			if !strings.Contains(ready.body, `"clockDifferenceMs":`) || strings.Contains(ready.body, `"clockDifferenceMs":0}`) {
				t.Errorf("nobody is told of the step: %s", ready.body)
			}
			p.collect("late", p.untilDue(p.delayedAt, p.delay))
			p.collect("held", p.untilDue(p.leasedAt, p.lease))
		})
	}
}

func TestA33ARestartAfterAStepBackKeepsEveryTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := makePending(t, dir, 3*time.Second, 2*time.Second)
	p.worker.hangUp()
	p.close()
	p.clock.step(-time.Hour)
	p.site = openTampered(t, dir, p.clock)
	p.collect("late", p.untilDue(p.delayedAt, p.delay))
	p.collect("held", p.untilDue(p.leasedAt, p.lease))
}

func TestASuspensionLetsWorkersSpeakFirst(t *testing.T) {
	t.Parallel()
	p := makePending(t, t.TempDir(), 600*time.Second, 600*time.Second)
	p.clock.suspend(time.Hour)
	// Delays are over in real time, and lie no longer than the longest sleep.
	p.collect("late", time.Time{})
	p.worker.say(`{"type":"heartbeat","ref":1}`)
	for {
		ok := hear[*wire.OK](p.worker)
		if ok.Ref.Value != 1 {
			continue
		}
		if len(ok.Lost) > 0 {
			t.Errorf("%d leases were lost before the worker could speak", len(ok.Lost))
		}
		break
	}
	for id, token := range p.leased {
		p.worker.say(fmt.Sprintf(`{"type":"result","ref":2,"taskId":"%v","leaseToken":"%v","result":{}}`, id, token))
	}
	for range p.leased {
		hear[*wire.OK](p.worker)
	}
}

// The time that ended tasks stay is counted by the engine. A step of the wall
// clock frees no key before that time and keeps none beyond it; only a start
// takes the wall's word, and never backwards.
func TestA48KeysGoByTheClockOfTheEngine(t *testing.T) {
	const body = `{"command":"keyed","payload":1,"idempotencyKey":"k"}`
	for name, step := range map[string]time.Duration{"forward": 2 * time.Hour, "back": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, clock := t.TempDir(), &tamperedTime{}
			x := openTampered(t, dir, clock)
			if a := x.ask("PUT", "/v1/codeq/admin/queues/keyed", `{"retentionSeconds":3600}`); a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			first := x.post(body)
			if a := x.ask("POST", "/v1/codeq/tasks/"+first.ID.String()+"/cancel", ""); a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			clock.step(step)
			// Each post lets the shard of the key look at what is over, once it has been
			// answered.
			for range 3 {
				if again := x.post(body); again.ID != first.ID {
					t.Errorf("a step by %v freed the key", step)
				}
			}
			x.close()
			x = openTampered(t, dir, clock)
			if step < 0 {
				if again := x.post(body); again.ID != first.ID {
					t.Error("a start behind a step back freed the key")
				}
				return
			}
			for late := time.Now().Add(patience); x.post(body).ID == first.ID; time.Sleep(20 * time.Millisecond) { // nobody tells
				if time.Now().After(late) {
					t.Fatal("two hours later by the wall, the key of an hour is still taken")
				}
			}
			if a := x.ask("GET", "/v1/codeq/tasks/"+first.ID.String(), ""); a.status != 404 {
				t.Errorf("the key is free and its task is there: %d %s", a.status, a.body)
			}
		})
	}
}
