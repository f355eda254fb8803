package mailbox_test

import (
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codeq/mailbox"
)

var roomy = mailbox.Limits{Messages: 1 << 20, Bytes: 1 << 30}

// woken takes the wake-up, if there is one.
func woken[M any](b *mailbox.Mailbox[M]) bool {
	select {
	case <-b.Wake():
		return true
	default:
		return false
	}
}

// pass lets the time of a synctest bubble pass.
func pass(d time.Duration) { <-time.After(d) }

func wantVerdict(t *testing.T, what string, got, want mailbox.Verdict) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func wantBatch(t *testing.T, got []int, want ...int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("drained %v, want %v", got, want)
	}
}

func TestDrainTakesEverythingInOrder(t *testing.T) {
	b := mailbox.New[int](roomy)
	b.Push([]int{4, 5}, 0, mailbox.ClassNew)
	b.Push([]int{1, 2}, 0, mailbox.ClassKeep)
	b.Push([]int{6}, 0, mailbox.ClassNew)
	b.Push([]int{3}, 0, mailbox.ClassKeep)
	wantBatch(t, b.Drain(nil), 1, 2, 3, 4, 5, 6)
	wantBatch(t, b.Drain(nil))
}

func TestPushCopiesTheBatch(t *testing.T) {
	b := mailbox.New[int](roomy)
	batch := []int{1, 2}
	b.Push(batch, 0, mailbox.ClassNew)
	batch[0] = 9
	wantBatch(t, b.Drain(nil), 1, 2)
}

func TestNewWorkLeavesAQuarterOfTheMessages(t *testing.T) {
	b := mailbox.New[int](mailbox.Limits{Messages: 8, Bytes: 100})
	wantVerdict(t, "five", b.Push([]int{1, 2, 3, 4, 5}, 0, mailbox.ClassNew), mailbox.Accepted)
	wantVerdict(t, "two that pass three quarters", b.Push([]int{6, 7}, 0, mailbox.ClassNew), mailbox.Full)
	wantVerdict(t, "one that reaches it", b.Push([]int{6}, 0, mailbox.ClassNew), mailbox.Accepted)
	wantVerdict(t, "new work at three quarters", b.Push([]int{7}, 0, mailbox.ClassNew), mailbox.Full)
	wantVerdict(t, "the reserve", b.Push([]int{7, 8}, 0, mailbox.ClassKeep), mailbox.Accepted)
	wantVerdict(t, "past the limit", b.Push([]int{9}, 0, mailbox.ClassKeep), mailbox.Full)
	wantBatch(t, b.Drain(nil), 7, 8, 1, 2, 3, 4, 5, 6)
	wantVerdict(t, "after a drain", b.Push([]int{1, 2, 3, 4, 5, 6}, 0, mailbox.ClassNew), mailbox.Accepted)
	if got := b.Figures().Refused; got != 4 {
		t.Fatalf("refused %d messages, want 4", got)
	}
}

func TestNewWorkLeavesAQuarterOfTheBytes(t *testing.T) {
	b := mailbox.New[int](mailbox.Limits{Messages: 100, Bytes: 1000})
	wantVerdict(t, "750 bytes", b.Push([]int{1}, 750, mailbox.ClassNew), mailbox.Accepted)
	wantVerdict(t, "one byte of new work", b.Push([]int{2}, 1, mailbox.ClassNew), mailbox.Full)
	wantVerdict(t, "251 bytes into the reserve", b.Push([]int{2}, 251, mailbox.ClassKeep), mailbox.Full)
	wantVerdict(t, "the reserve", b.Push([]int{2}, 250, mailbox.ClassKeep), mailbox.Accepted)
	wantVerdict(t, "more than memory has", b.Push([]int{3}, math.MaxInt, mailbox.ClassKeep), mailbox.Full)
	wantVerdict(t, "no bytes at all", b.Push([]int{3}, 0, mailbox.ClassKeep), mailbox.Accepted)
	if got := b.Figures().DepthBytes; got != 1000 {
		t.Fatalf("depth is %d bytes, want 1000", got)
	}
	wantBatch(t, b.Drain(nil), 2, 3, 1)
	wantVerdict(t, "after a drain", b.Push([]int{4}, 750, mailbox.ClassNew), mailbox.Accepted)
}

func TestRefusedBatchLeavesNothingBehind(t *testing.T) {
	b := mailbox.New[int](mailbox.Limits{Messages: 4, Bytes: 4})
	wantVerdict(t, "too many", b.Push([]int{1, 2, 3, 4, 5}, 0, mailbox.ClassKeep), mailbox.Full)
	wantVerdict(t, "too large", b.Push([]int{1}, 5, mailbox.ClassKeep), mailbox.Full)
	if woken(b) {
		t.Fatal("a refused push woke the owner")
	}
	wantBatch(t, b.Drain(nil))
}

func TestClosedMailboxRefusesAndStillDrains(t *testing.T) {
	b := mailbox.New[int](roomy)
	var s mailbox.Slot[int]
	b.Push([]int{1}, 0, mailbox.ClassNew)
	b.PushSlot(&s, 2, nil)
	b.Close()
	b.Close()
	wantVerdict(t, "push", b.Push([]int{3}, 0, mailbox.ClassKeep), mailbox.Closed)
	wantVerdict(t, "empty push", b.Push(nil, 0, mailbox.ClassKeep), mailbox.Closed)
	wantVerdict(t, "waiting slot", b.PushSlot(&s, 4, nil), mailbox.Closed)
	if b.Done() {
		t.Fatal("done while messages wait")
	}
	wantBatch(t, b.Drain(nil), 2, 1)
	if !b.Done() {
		t.Fatal("closed and empty, and not done")
	}
	wantVerdict(t, "free slot", b.PushSlot(&s, 5, nil), mailbox.Closed)
}

func TestWakeComesOncePerBacklog(t *testing.T) {
	b := mailbox.New[int](roomy)
	if woken(b) {
		t.Fatal("woken by nothing")
	}
	b.Push([]int{}, 0, mailbox.ClassNew)
	if woken(b) {
		t.Fatal("woken by an empty batch")
	}
	b.Push([]int{1}, 0, mailbox.ClassNew)
	b.Push([]int{2}, 0, mailbox.ClassNew)
	if !woken(b) {
		t.Fatal("the first push did not wake")
	}
	if woken(b) {
		t.Fatal("the second push woke too")
	}
	b.Drain(nil)
	b.Push([]int{3}, 0, mailbox.ClassNew)
	if !woken(b) {
		t.Fatal("the first push after a drain did not wake")
	}
}

func TestDrainTakesItsWakeUpAlong(t *testing.T) {
	b := mailbox.New[int](roomy)
	b.Push([]int{1}, 0, mailbox.ClassNew)
	b.Drain(nil)
	if woken(b) {
		t.Fatal("woken for a backlog that was drained")
	}
	b.Close()
	b.Drain(nil)
	if !woken(b) {
		t.Fatal("a drain lost the wake-up of Close")
	}
}

func TestNewWorkStandsBehindWhatFreesTheWay(t *testing.T) {
	b := mailbox.New[int](mailbox.Limits{Messages: 100, Bytes: 1 << 20, NewPerDrain: 3})
	var s mailbox.Slot[int]
	for n := range 4 {
		b.Push([]int{10 * n, 10*n + 1}, 2, mailbox.ClassNew)
	}
	b.Push([]int{100, 101}, 2, mailbox.ClassKeep)
	b.PushSlot(&s, 102, nil)
	wantBatch(t, b.Drain(nil), 100, 101, 102, 0, 1)
	select {
	case <-b.Wake():
	default:
		t.Fatal("no wake-up for the new work that is left")
	}
	b.Push([]int{103}, 1, mailbox.ClassKeep)
	wantBatch(t, b.Drain(nil), 103, 10, 11)
	if f := b.Figures(); f.Depth != 4 || f.DepthBytes != 4 {
		t.Fatalf("depth %d with %d bytes, want 4 with 4", f.Depth, f.DepthBytes)
	}
	wantBatch(t, b.Drain(nil), 20, 21)
	wantBatch(t, b.Drain(nil), 30, 31)
	wantBatch(t, b.Drain(nil))
}

func TestOnePushIsDrainedWhole(t *testing.T) {
	b := mailbox.New[int](mailbox.Limits{Messages: 100, Bytes: 1 << 20, NewPerDrain: 2})
	b.Push([]int{1, 2, 3, 4, 5}, 0, mailbox.ClassNew)
	b.Push([]int{6}, 0, mailbox.ClassNew)
	wantBatch(t, b.Drain(nil), 1, 2, 3, 4, 5)
	wantBatch(t, b.Drain(nil), 6)
}

func TestSlotIsNeverRefused(t *testing.T) {
	b := mailbox.New[int](mailbox.Limits{Messages: 1, Bytes: 1})
	wantVerdict(t, "fill", b.Push([]int{0}, 1, mailbox.ClassKeep), mailbox.Accepted)
	slots := make([]mailbox.Slot[int], 100)
	for i := range slots {
		wantVerdict(t, "slot", b.PushSlot(&slots[i], i+1, nil), mailbox.Accepted)
	}
	if got := len(b.Drain(nil)); got != 101 {
		t.Fatalf("drained %d, want 101", got)
	}
	for i := range slots {
		b.PushSlot(&slots[i], i, nil)
	}
	wantVerdict(t, "slots take no room", b.Push([]int{0}, 1, mailbox.ClassKeep), mailbox.Accepted)
}

func TestSlotMergesInThePlaceOfItsFirstPush(t *testing.T) {
	sum := func(waiting, m int) int { return waiting + m }
	b := mailbox.New[int](roomy)
	var units, gone mailbox.Slot[int]
	b.Push([]int{1}, 0, mailbox.ClassKeep)
	b.PushSlot(&units, 10, sum)
	b.Push([]int{2}, 0, mailbox.ClassKeep)
	b.PushSlot(&gone, 7, nil)
	b.PushSlot(&units, 20, sum)
	b.Push([]int{3}, 0, mailbox.ClassKeep)
	b.PushSlot(&units, 30, sum)
	b.PushSlot(&gone, 8, nil)
	f := b.Figures()
	if f.Pushed != 8 || f.Merged != 3 || f.Depth != 5 {
		t.Fatalf("pushed %d merged %d depth %d, want 8, 3, 5", f.Pushed, f.Merged, f.Depth)
	}
	wantBatch(t, b.Drain(nil), 1, 60, 2, 8, 3)
}

func TestSlotIsFreeAfterADrain(t *testing.T) {
	sum := func(waiting, m int) int { return waiting + m }
	b := mailbox.New[int](roomy)
	var s mailbox.Slot[int]
	b.PushSlot(&s, 1, sum)
	drained := b.Drain(nil)
	b.Push([]int{5}, 0, mailbox.ClassKeep)
	b.PushSlot(&s, 2, sum)
	wantBatch(t, drained, 1)
	wantBatch(t, b.Drain(nil), 5, 2)
	b.PushSlot(&s, 3, sum)
	if !woken(b) {
		t.Fatal("a control message did not wake")
	}
}

func TestSlotOfAnotherMailboxPanics(t *testing.T) {
	var s mailbox.Slot[int]
	mailbox.New[int](roomy).PushSlot(&s, 1, nil)
	defer func() {
		if recover() == nil {
			t.Fatal("one slot in two mailboxes")
		}
	}()
	mailbox.New[int](roomy).PushSlot(&s, 1, nil)
}

func TestImpossibleNumbersPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"no messages":    func() { mailbox.New[int](mailbox.Limits{Messages: 0, Bytes: 1}) },
		"no bytes":       func() { mailbox.New[int](mailbox.Limits{Messages: 1, Bytes: 0}) },
		"negative bytes": func() { mailbox.New[int](roomy).Push([]int{1}, -1, mailbox.ClassNew) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Fatal("accepted")
				}
			}()
			f()
		})
	}
}

func TestSteadyDrainsDoNotAllocate(t *testing.T) {
	b := mailbox.New[int](roomy)
	batch, in := []int(nil), make([]int, 500)
	round := func() {
		b.Push(in, 0, mailbox.ClassNew)
		b.Push(in, 0, mailbox.ClassNew)
		batch = b.Drain(batch)
		if len(batch) != 1000 {
			t.Fatalf("drained %d, want 1000", len(batch))
		}
	}
	round()
	round()
	if allocs := testing.AllocsPerRun(100, round); allocs != 0 {
		t.Fatalf("%v allocations per drain", allocs)
	}
}

func TestMemoryOfABurstIsLetGo(t *testing.T) {
	b := mailbox.New[int](roomy)
	b.Push(make([]int, 100_000), 0, mailbox.ClassNew)
	batch := b.Drain(nil)
	for range 3 {
		b.Push([]int{1}, 0, mailbox.ClassNew)
		batch = b.Drain(batch)
	}
	if cap(batch) > 1024 {
		t.Fatalf("a batch of 1 has capacity %d", cap(batch))
	}
}

func TestDrainedMessagesAreNotKeptAlive(t *testing.T) {
	b := mailbox.New[*int](roomy)
	b.Push([]*int{new(int), new(int), new(int)}, 0, mailbox.ClassNew)
	old := b.Drain(nil)
	b.Drain(old[:0])
	for i, p := range old[:3] {
		if p != nil {
			t.Fatalf("message %d is still in the batch that was handed back", i)
		}
	}
}

func TestFiguresTellSizesAndTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mailbox.New[int](roomy)
		b.Push([]int{1}, 100, mailbox.ClassNew)
		pass(3 * time.Second)
		b.Push([]int{2, 3}, 50, mailbox.ClassNew)
		pass(time.Second)
		want := mailbox.Figures{Depth: 3, DepthBytes: 150, New: 3, HighWater: 3, Pushed: 3}
		if got := b.Figures(); got != want {
			t.Fatalf("before the drain %+v, want %+v", got, want)
		}
		batch := b.Drain(nil)
		pass(time.Minute)
		b.Push([]int{4}, 10, mailbox.ClassNew)
		pass(time.Second)
		b.Drain(batch)
		b.Drain(nil)
		want = mailbox.Figures{
			HighWater: 3, Pushed: 4, Batches: 2, LastBatch: 1, MaxBatch: 3,
			LastWait: time.Second, MaxWait: 4 * time.Second,
		}
		if got := b.Figures(); got != want {
			t.Fatalf("after the drains %+v, want %+v", got, want)
		}
	})
}

func TestManyProducersLoseNothingAndKeepTheirOrder(t *testing.T) {
	const producers, each = 8, 2000
	type message struct{ producer, number int }
	b := mailbox.New[message](mailbox.Limits{Messages: 64, Bytes: 1 << 20, NewPerDrain: 10})
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for n := 0; n < each; {
				batch := []message{{p, n}, {p, n + 1}}
				if b.Push(batch, 16, mailbox.Class(p%2)) == mailbox.Accepted {
					n += len(batch)
				}
				b.Figures()
			}
		})
	}
	go func() { wg.Wait(); b.Close() }()

	var next [producers]int
	var batch []message
	for !b.Done() {
		<-b.Wake()
		batch = b.Drain(batch)
		if len(batch) > 64 {
			t.Fatalf("%d messages waited, the limit is 64", len(batch))
		}
		for _, m := range batch {
			if m.number != next[m.producer] {
				t.Fatalf("producer %d: got %d, want %d", m.producer, m.number, next[m.producer])
			}
			next[m.producer]++
		}
	}
	for p, n := range next {
		if n != each {
			t.Errorf("producer %d: %d messages, want %d", p, n, each)
		}
	}
}

func TestSlotsUnderManyProducersLoseNoUnit(t *testing.T) {
	const producers, each = 8, 2000
	sum := func(waiting, m int) int { return waiting + m }
	b := mailbox.New[int](mailbox.Limits{Messages: 1, Bytes: 1})
	var shared mailbox.Slot[int]
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for range each {
				if v := b.PushSlot(&shared, 1, sum); v != mailbox.Accepted {
					t.Errorf("slot was %v", v)
				}
			}
		})
	}
	go func() { wg.Wait(); b.Close() }()

	units := 0
	var batch []int
	for !b.Done() {
		<-b.Wake()
		batch = b.Drain(batch)
		if len(batch) > 1 {
			t.Fatalf("one slot took %d places", len(batch))
		}
		for _, n := range batch {
			units += n
		}
	}
	if units != producers*each {
		t.Fatalf("%d units arrived, want %d", units, producers*each)
	}
}

func TestVerdictsHaveNames(t *testing.T) {
	for v, want := range map[mailbox.Verdict]string{
		mailbox.Accepted: "accepted", mailbox.Full: "full", mailbox.Closed: "closed", 9: "verdict 9",
	} {
		if got := v.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func BenchmarkPushAndDrain(b *testing.B) {
	box := mailbox.New[int](roomy)
	one := []int{1}
	var batch []int
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		box.Push(one, 100, mailbox.ClassNew)
		if i%256 == 0 {
			batch = box.Drain(batch)
		}
	}
}

func BenchmarkPushContended(b *testing.B) {
	box := mailbox.New[int](roomy)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var batch []int
		for !box.Done() {
			<-box.Wake()
			batch = box.Drain(batch)
		}
	}()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		one := []int{1}
		for pb.Next() {
			box.Push(one, 100, mailbox.ClassNew)
		}
	})
	box.Close()
	<-done
}
