package server

import (
	"math/rand/v2"
	"testing"
	"time"
)

// fakeTime is a wall clock that can be stepped and a count of elapsed time
// that cannot.
type fakeTime struct{ wallNs, elapsedNs int64 }

func (f *fakeTime) pass(d time.Duration) {
	f.wallNs += int64(d)
	f.elapsedNs += int64(d)
}

func (f *fakeTime) clock(floorMs int64) *engineClock {
	return newEngineClock(floorMs, TimeSource{
		WallNs: func() int64 { return f.wallNs }, ElapsedNs: func() int64 { return f.elapsedNs },
	})
}

func TestClockGoesWithTheWall(t *testing.T) {
	f := &fakeTime{wallNs: int64(1000 * time.Second), elapsedNs: 77}
	c := f.clock(0)
	for range 100 {
		f.pass(1234567 * time.Nanosecond)
		if got, want := c.NowMs(), f.wallNs/1e6; got != want {
			t.Fatalf("clock shows %d, wall %d", got, want)
		}
	}
}

func TestClockTellsOfADifference(t *testing.T) {
	f := &fakeTime{wallNs: int64(1_000_000 * time.Second)}
	c := f.clock(0)
	var told []time.Duration
	c.tell = func(ahead time.Duration) { told = append(told, ahead.Round(time.Second)) }
	pass := func(d time.Duration) {
		for range int(d / time.Second) {
			f.pass(time.Second)
			c.NowMs()
		}
	}
	pass(time.Minute)
	f.wallNs += int64(9 * time.Second)
	pass(time.Minute)
	if len(told) > 0 {
		t.Errorf("less than 10 s: told %v", told)
	}
	pass(time.Hour)
	f.wallNs += int64(2 * time.Hour)
	pass(2*time.Hour + time.Minute)
	f.wallNs -= int64(4 * time.Hour)
	pass(time.Second)
	if len(told) < 3 || told[0] != -2*time.Hour || told[len(told)-1] > 0 {
		t.Errorf("told %v, want two hours behind at once, again after an hour", told)
	}
	told = nil
	ahead := f.clock(f.wallNs/1e6 + 864_000_000)
	ahead.tell = c.tell
	ahead.NowMs()
	if len(told) != 1 || told[0] != 240*time.Hour {
		t.Errorf("a directory that is ten days ahead: told %v", told)
	}
}

func TestClockBeginsNoEarlierThanTheFloor(t *testing.T) {
	f := &fakeTime{wallNs: int64(1000 * time.Second)}
	c := f.clock(5_000_000)
	if got := c.NowMs(); got != 5_000_000 {
		t.Fatalf("clock begins at %d, floor is 5000000", got)
	}
	f.pass(100 * time.Second)
	if got := c.NowMs(); got != 5_000_000+99_000 {
		t.Fatalf("after 100 s a clock that is ahead shows +%d ms, want +99000", got-5_000_000)
	}
}

func TestClockWorksOffAStepOfTheWall(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": time.Minute, "back": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			f := &fakeTime{wallNs: int64(1_000_000 * time.Second)}
			c := f.clock(0)
			f.wallNs += int64(step)
			before := c.NowMs()
			if before != 1_000_000_000 {
				t.Fatalf("the step moved the clock to %d at once", before)
			}
			for i := range 6000 {
				f.pass(time.Second)
				now := c.NowMs()
				if d := now - before; d < 989 || d > 1011 {
					t.Fatalf("second %d took %d ms", i, d)
				}
				before = now
			}
			if diff := before - f.wallNs/1e6; diff < -1 || diff > 1 {
				t.Fatalf("after 6000 s the clock still differs by %d ms", diff)
			}
		})
	}
}

func TestClockNeverRunsBackwards(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	f := &fakeTime{wallNs: int64(1_000_000 * time.Second), elapsedNs: int64(time.Hour)}
	c := f.clock(0)
	before, elapsedBefore := c.NowMs(), f.elapsedNs
	for i := range 100_000 {
		switch random.IntN(10) {
		case 0:
			f.wallNs += random.Int64N(int64(2*time.Hour)) - int64(time.Hour)
		case 1:
			f.elapsedNs -= random.Int64N(int64(time.Millisecond)) // no clock should; still no harm
		default:
			f.pass(time.Duration(random.Int64N(int64(time.Second))))
		}
		now := c.NowMs()
		if now < before {
			t.Fatalf("step %d: %d after %d", i, now, before)
		}
		if most := (f.elapsedNs-elapsedBefore)/1e6*101/100 + 3; now-before > max(most, 3) {
			t.Fatalf("step %d: %d ms in %d ns", i, now-before, f.elapsedNs-elapsedBefore)
		}
		before, elapsedBefore = now, max(elapsedBefore, f.elapsedNs)
	}
}

func TestRealClockIsTheWall(t *testing.T) {
	c := newEngineClock(0, TimeSource{})
	if diff := c.NowMs() - time.Now().UnixMilli(); diff < -1000 || diff > 1000 {
		t.Fatalf("a new clock differs from the wall by %d ms", diff)
	}
	first := elapsedNs()
	if second := elapsedNs(); second < first || first <= 0 {
		t.Fatalf("elapsed time went from %d to %d", first, second)
	}
}

// Every message asks for the time, so it must not cost a system call.
func BenchmarkNowMs(b *testing.B) {
	c := newEngineClock(0, TimeSource{})
	for b.Loop() {
		c.NowMs()
	}
}

// Where the machine has not slept, the elapsed time is the monotonic one, and
// it never runs backwards, whoever looks at the suspension meanwhile.
func TestElapsedTimeFollowsTheMonotonicClock(t *testing.T) {
	last := elapsedNs()
	for range 200_000 {
		now := elapsedNs()
		if now < last {
			t.Fatalf("elapsed time went back by %d ns", last-now)
		}
		last = now
	}
}
