package loadtest

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codeq/wire"
)

func near(got, want, part float64) bool { return math.Abs(got-want) <= part*want }

func TestClosedLoopMeasuresWhatTheTargetTakes(t *testing.T) {
	for name, change := range map[string]func(*Workload){
		"canonical": func(*Workload) {},
		"pipeline":  func(w *Workload) { w.Producers, w.Pipeline = 4, 8 },
		"batch":     func(w *Workload) { w.Producers, w.Batch = 4, 8 },
		"sessions":  func(w *Workload) { w.Sessions = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := shortRun()
				change(&w)
				o, err := Run(context.Background(), Options{Workload: w, Target: &crooked{answerAfter: 4 * time.Millisecond}})
				if err != nil {
					t.Fatal(err)
				}
				// 32 under way, 4 ms each.
				if !near(o.CyclesPerSecond, 8000, 0.02) {
					t.Errorf("%.0f cycles/s, want 8000", o.CyclesPerSecond)
				}
				for _, q := range []Quantiles{o.Enqueue, o.Delivery, o.EndToEnd} {
					if !near(q.P50, 4, 0.01) || !near(q.P999, 4, 0.01) || !near(float64(q.Count), 3200, 0.02) {
						t.Errorf("quantiles %+v, want 4 ms of 3200", q)
					}
				}
			})
		})
	}
}

func TestRateIsKeptAndLateAnswersCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := shortRun()
		w.RatePerSecond = 1000
		o, err := Run(context.Background(), Options{Workload: w, Target: &crooked{answerAfter: 3 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		if !near(o.CyclesPerSecond, 1000, 0.03) || !near(o.Enqueue.P99, 3, 0.01) {
			t.Errorf("%.0f cycles/s with %v, want 1000 with 3 ms", o.CyclesPerSecond, o.Enqueue)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := shortRun()
		// Asked for 1000, the target can do 320: what waits grows from task to
		// task and is part of the latency.
		w.RatePerSecond = 1000
		o, err := Run(context.Background(), Options{Workload: w, Target: &crooked{answerAfter: 100 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		if !near(o.CyclesPerSecond, 320, 0.15) || o.Enqueue.P99 < 300 {
			t.Errorf("%.0f cycles/s with %v, want 320 and far more than 100 ms", o.CyclesPerSecond, o.Enqueue)
		}
	})
}

// A refused producer rests for 0.5 to 1.5 s. 32 producers are to post 1000 tasks a second, and
// one task in ten is refused, so the target gets what fits between the rests: a
// producer posts ten tasks in 320 ms and rests for a second on average.
func TestRefusedProducersLetGoWhatComesDueMeanwhile(t *testing.T) {
	for sheds, want := range map[bool]float64{true: 32 * 10 / 1.32, false: 1000} {
		synctest.Test(t, func(t *testing.T) {
			w := shortRun()
			w.RatePerSecond, w.Sheds, w.Pipeline = 1000, sheds, 1000
			w.WarmUpFor, w.MeasureFor = 5*time.Second, 30*time.Second
			refusal := wire.Refuse(wire.CodeOverloaded, "later")
			posted := make(map[uint32]int)
			c := &crooked{answerAfter: time.Millisecond}
			c.refuse = func(n uint64) *wire.Error {
				owner := c.acks.run.ledger.find(n).owner
				posted[owner]++
				if posted[owner]%10 == 0 {
					return refusal
				}
				return nil
			}
			o, err := Run(context.Background(), Options{Workload: w, Target: c})
			if err != nil {
				t.Fatal(err)
			}
			if got := o.AcceptedPerSecond + o.RefusedPerSecond; !near(got, want, 0.1) {
				t.Errorf("sheds %v: %.0f tasks/s were posted, want about %.0f", sheds, got, want)
			}
			if o.Enqueue.P99 > 1.1 {
				t.Errorf("sheds %v: a rest counts as latency: %v", sheds, o.Enqueue)
			}
		})
	}
}

func TestRefusalThatIsNoOverloadEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := wire.Refuse(wire.CodeForbidden, "not you")
		c := &crooked{answerAfter: time.Millisecond, refuse: func(uint64) *wire.Error { return refusal }}
		_, err := Run(context.Background(), Options{Workload: shortRun(), Target: c})
		if !errors.Is(err, refusal) {
			t.Errorf("error %v, want the refusal", err)
		}
	})
}

func TestStoppedRunHasNoOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		_, err := Run(ctx, Options{Workload: shortRun(), Target: &crooked{answerAfter: time.Millisecond}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// silent never answers.
type silent struct{ crooked }

func (*silent) Post(uint64, int) error { return nil }

func (s *silent) Work(context.Context) error { return nil }

func (s *silent) Open(ctx context.Context, w *Workload, newTally func() *Tally, fail func(error)) ([]Poster, error) {
	_, err := s.crooked.Open(ctx, w, newTally, fail)
	return []Poster{s}, err
}

func TestSilentServerEndsTheRunInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := Run(context.Background(), Options{Workload: shortRun(), Target: &silent{}})
		if err != nil {
			t.Fatal(err)
		}
		if o.Verdict.Unanswered != 32 || o.Verdict.Holds() {
			t.Errorf("verdict %+v, want 32 without answer", o.Verdict)
		}
	})
}

// scripted is a process whose figures are made up.
type scripted struct {
	cpu time.Duration
	rss int64
}

func (m *scripted) CPU() (time.Duration, error) {
	m.cpu += 40 * time.Millisecond
	return m.cpu, nil
}

func (m *scripted) RSSBytes() (int64, error) {
	m.rss += 1 << 20
	return m.rss, nil
}

func TestProcessFiguresAreOfTheMeasuredTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := Run(context.Background(), Options{
			Workload: shortRun(), Target: &crooked{answerAfter: 4 * time.Millisecond}, Server: &scripted{},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := *o.ServerCPUMicrosPerCycle; !near(got, 40_000.0/3200, 0.02) {
			t.Errorf("%.2f µs per cycle, want 12.5", got)
		}
		if *o.StartRSSMiB != 1 || *o.ServerRSSMiB < 8 || *o.EndRSSMiB > *o.ServerRSSMiB {
			t.Errorf("memory %v, %v, %v", *o.StartRSSMiB, *o.ServerRSSMiB, *o.EndRSSMiB)
		}
		if o.GeneratorCPUMicrosPerCycle != nil {
			t.Error("the generator was not measured, yet has figures")
		}
	})
}

func TestBadWorkloadIsRefused(t *testing.T) {
	for _, test := range []struct {
		change func(*Workload)
		want   string
	}{
		{func(w *Workload) { w.Producers = 0 }, "producers must be from 1 to 10000, got 0"},
		{func(w *Workload) { w.Sessions = 33 }, "producers must be from 33 to 10000, got 32"},
		{func(w *Workload) { w.Window = 10_001 }, "window must be from 1 to 10000, got 10001"},
		{func(w *Workload) { w.PayloadBytes = 32 }, "payload-bytes must be from 33 to 1048576, got 32"},
		{func(w *Workload) { w.RatePerSecond = math.NaN() }, "rate must be"},
		{func(w *Workload) { w.MeasureFor = 0 }, "seconds must be more than 0"},
		{func(w *Workload) { w.OverHTTP, w.Pipeline = true, 2 }, "waits for each answer"},
	} {
		w := Canonical()
		test.change(&w)
		if err := w.Check(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
		if _, err := Run(context.Background(), Options{Workload: w}); err == nil {
			t.Error("Run took a workload that cannot be")
		}
	}
}

func TestWorkloadArithmetic(t *testing.T) {
	w := Canonical()
	if w.UnderWay() != 32 || w.pause() != 0 || w.Check() != nil {
		t.Errorf("canonical: %d under way, pause %v, %v", w.UnderWay(), w.pause(), w.Check())
	}
	w.RatePerSecond, w.Batch = 500, 2
	if w.pause() != 128*time.Millisecond {
		t.Errorf("32 producers of 2 tasks at 500/s pause %v, want 128ms", w.pause())
	}
	over := Canonical().Overload(60_000, 32<<10)
	if err := over.Check(); err != nil {
		t.Error(err)
	}
	perSession := make(map[int]int)
	for p := range over.Producers {
		perSession[over.sessionOf(p)] += over.Pipeline
	}
	for line, underWay := range perSession {
		if underWay >= wire.MaxUnansweredRequests {
			t.Errorf("session %d has %d under way, where a server stops reading", line, underWay)
		}
	}
	if over.RatePerSecond != 60_000 || !over.Sheds {
		t.Errorf("offered are %v tasks/s, shed %v", over.RatePerSecond, over.Sheds)
	}
	pace := Canonical()
	pace.Pipeline = 64
	pace = pace.ManyProducers(32 << 10)
	if pace.UnderWay() != 32*64 || pace.Pipeline != 1 || pace.Sessions != over.Sessions || pace.pause() != 0 {
		t.Errorf("the load at its pace is %v", &pace)
	}
	if room := over.Window * over.Sessions; over.Producers < 2*pace.Producers || room < over.UnderWay() || pace.Window != over.Window {
		t.Errorf("%d producers in place of %d, workers have room for %d of %d", over.Producers, pace.Producers, room, over.UnderWay())
	}
	few := Canonical().Overload(0, 3)
	if err := few.Check(); err != nil || few.UnderWay() != 3 || few.pause() == 0 {
		t.Errorf("%v, %d under way, want 3; pause %v", err, few.UnderWay(), few.pause())
	}
	if over.UnderWay() < 4*2*3072 {
		t.Errorf("%d under way do not fill the mailboxes of four shards", over.UnderWay())
	}
}
