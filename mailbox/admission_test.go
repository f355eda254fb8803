package mailbox_test

import (
	"fmt"
	"testing"

	"codeq/mailbox"
)

// overloaded is a mailbox with a clock of its own, of which a drain takes four
// messages of new work.
type overloaded struct {
	*mailbox.Mailbox[int]
	t     *testing.T
	nowMs int64
}

// ownerOf: messages from a thousand on are of others, each thousand of one.
func ownerOf(message int) string { return fmt.Sprint(message / 1000) }

func newOverloaded(t *testing.T) *overloaded {
	c := &overloaded{t: t, nowMs: 1000}
	c.Mailbox = mailbox.NewAt[int](mailbox.Limits{Messages: 64, Bytes: 1 << 20, NewPerDrain: 4}, func() int64 { return c.nowMs }, ownerOf)
	return c
}

// post pushes so many messages of new work, one by one.
func (c *overloaded) post(n int, want mailbox.Verdict) {
	c.t.Helper()
	for i := range n {
		wantVerdict(c.t, "new work", c.Push([]int{i}, 1, mailbox.ClassNew), want)
	}
}

// stands posts a queue of twenty, drains it once and lets it stand for that long.
func (c *overloaded) stands(forMs int64) {
	c.post(20, mailbox.Accepted)
	c.Drain(nil)
	c.nowMs += forMs
}

func (c *overloaded) wantBound(want int) {
	c.t.Helper()
	if got := c.Figures().NewLimit; got != want {
		c.t.Fatalf("the bound is %d, want %d", got, want)
	}
}

func TestBurstIsTakenWhateverItsSize(t *testing.T) {
	c := newOverloaded(t)
	c.stands(mailbox.OverloadAfterMs - 1)
	c.wantBound(0)
	c.post(32, mailbox.Accepted) // as many as new work may fill
	c.post(1, mailbox.Full)
}

func TestBacklogDoesNotGrow(t *testing.T) {
	c := newOverloaded(t)
	c.stands(mailbox.OverloadAfterMs)
	c.post(1, mailbox.Full)
	if f := c.Figures(); f.Refused != 1 || f.New != 16 || f.NewLimit != 16 || f.BacklogForMs != mailbox.OverloadAfterMs {
		t.Errorf("figures %+v", f)
	}
}

// What may wait shrinks while it is not all taken within 100 ms: three drains that are 30 ms apart take twelve in
// time, four of them sixteen and not in time.
func TestBacklogShrinksUntilItIsTakenInTime(t *testing.T) {
	c := newOverloaded(t)
	c.post(44, mailbox.Accepted)
	c.Drain(nil)
	c.nowMs += mailbox.OverloadAfterMs
	c.post(1, mailbox.Full)
	least := 40
	for range 200 {
		c.Drain(nil)
		c.nowMs += 30
		for c.Push([]int{0}, 1, mailbox.ClassNew) == mailbox.Accepted {
		}
		least = min(least, c.Figures().NewLimit)
	}
	if least <= 12 || least > 16 {
		t.Errorf("the limit went down to %d", least)
	}
}

// A producer that waits for answers before it posts more leaves some behind at each drain. As
// long as all of it is taken within 200 ms, it is no overload, however long that goes on.
func TestBacklogThatIsTakenInTimeIsNoOverload(t *testing.T) {
	for apartMs, overload := range map[int64]bool{45: false, 51: true} {
		c := newOverloaded(t)
		c.post(20, mailbox.Accepted) // a drain takes four: 16 wait for four more of them
		for range 1000 {
			c.Drain(nil)
			c.nowMs += apartMs
			for c.Figures().New < 20 && c.Push([]int{0}, 1, mailbox.ClassNew) == mailbox.Accepted {
			}
		}
		if f := c.Figures(); (f.Refused > 0) != overload || (f.NewLimit > 0) != overload {
			t.Errorf("drains that are %d ms apart: figures %+v, want overload %t", apartMs, f, overload)
		}
	}
}

func TestWhatFreesTheWayIsTakenBesideABacklog(t *testing.T) {
	c := newOverloaded(t)
	c.stands(mailbox.OverloadAfterMs)
	c.post(1, mailbox.Full)
	wantVerdict(t, "work already taken on", c.Push(make([]int, 48), 1, mailbox.ClassKeep), mailbox.Accepted)
	var slot mailbox.Slot[int]
	wantVerdict(t, "a control message", c.PushSlot(&slot, 1, nil), mailbox.Accepted)
}

// worksOff drains until nothing of the new work is left.
func (c *overloaded) worksOff() {
	for c.Figures().New > 0 {
		c.Drain(nil)
	}
}

func TestMailboxOpensStepByStepWithoutOverload(t *testing.T) {
	c := newOverloaded(t)
	c.stands(mailbox.OverloadAfterMs)
	c.post(1, mailbox.Full)
	c.worksOff()
	bound := c.Figures().NewLimit
	for ; bound < 48; bound *= 2 {
		c.wantBound(bound)
		c.post(bound, mailbox.Accepted)
		c.post(1, mailbox.Full)
		c.worksOff() // before that has stood
		c.nowMs += mailbox.DoubleAfterMs
	}
	c.post(48, mailbox.Accepted)
	c.worksOff()
	c.nowMs += 24 * mailbox.DoubleAfterMs
	c.post(1, mailbox.Accepted)
	c.wantBound(0)
	c.worksOff()
}

// While there is a bound half of the time is enough.
func TestQueueThatSoonStandsAgainIsNoticedSooner(t *testing.T) {
	c := newOverloaded(t)
	c.stands(mailbox.OverloadAfterMs)
	c.post(1, mailbox.Full)
	c.worksOff()
	bound := c.Figures().NewLimit
	c.nowMs += mailbox.DoubleAfterMs
	c.post(2*bound, mailbox.Accepted)
	c.Drain(nil)
	c.nowMs += mailbox.OverloadAfterMs/2 - 1
	c.wantBound(2 * bound)
	c.post(3, mailbox.Accepted)
	c.nowMs++
	c.post(1, mailbox.Full)
	c.wantBound(2*bound - 4 + 3)
}

func TestQueueThatStandsAgainIsBoundAgain(t *testing.T) {
	c := newOverloaded(t)
	c.stands(mailbox.OverloadAfterMs)
	c.worksOff()
	c.nowMs += 24 * mailbox.DoubleAfterMs
	c.Drain(nil)
	c.post(48, mailbox.Accepted)
	c.Drain(nil)
	c.nowMs += mailbox.OverloadAfterMs - 1
	c.post(4, mailbox.Accepted)
	c.nowMs++
	c.wantBound(0)
	c.post(1, mailbox.Full)
	c.wantBound(48)
	// It does not open for a shard that does not come to the end.
	c.nowMs += 10 * mailbox.DoubleAfterMs
	c.post(1, mailbox.Full)
	c.wantBound(48)
}

func TestPushLargerThanADrainIsTakenBesideABacklog(t *testing.T) {
	c := newOverloaded(t)
	c.stands(mailbox.OverloadAfterMs)
	for c.Figures().New > 4 {
		c.Drain(nil)
	}
	c.Drain(nil)
	wantVerdict(t, "a batch", c.Push(make([]int, 30), 1, mailbox.ClassNew), mailbox.Accepted)
}

// postOf pushes so many messages of an owner, one by one.
func (c *overloaded) postOf(owner, n int, want mailbox.Verdict) {
	c.t.Helper()
	for i := range n {
		wantVerdict(c.t, fmt.Sprintf("message %d of owner %d", i, owner), c.Push([]int{1000*owner + i}, 1, mailbox.ClassNew), want)
	}
}

// An owner that fills a mailbox alone keeps nobody out, and has no more than half of it while
// another waits.
func TestOneOwnerKeepsNoOtherOut(t *testing.T) {
	c := newOverloaded(t)
	c.postOf(0, 48, mailbox.Accepted)
	c.postOf(0, 1, mailbox.Full)
	c.postOf(1, 8, mailbox.Accepted) // an eighth is for messages that end work
	c.postOf(0, 1, mailbox.Full)
	wantVerdict(t, "what ends work", c.Push(make([]int, 8), 1, mailbox.ClassKeep), mailbox.Accepted)
	c.Drain(nil)
	c.Drain(nil)
	c.Drain(nil)
	c.postOf(1, 12, mailbox.Accepted)
	c.postOf(1, 1, mailbox.Full)
}

// Half is 24 of 48. Who has nothing may push more at once, so no push is too large for ever.
func TestNobodyHasMoreThanHalfBesideOthers(t *testing.T) {
	c := newOverloaded(t)
	c.postOf(0, 1, mailbox.Accepted)
	c.postOf(1, 24, mailbox.Accepted)
	c.postOf(1, 1, mailbox.Full)
	c.Drain(nil)
	for c.Figures().New > 0 {
		c.Drain(nil)
	}
	c.postOf(0, 1, mailbox.Accepted)
	batch := make([]int, 30)
	batch[0] = 1000
	wantVerdict(t, "a large batch", c.Push(batch, 1, mailbox.ClassNew), mailbox.Accepted)
	c.postOf(1, 1, mailbox.Full)
	c.postOf(0, 23, mailbox.Accepted)
}

// A backlog that stands lets others in as well, each up to half of what may wait.
func TestABacklogOfOneOwnerKeepsNoOtherOut(t *testing.T) {
	c := newOverloaded(t)
	c.stands(mailbox.OverloadAfterMs) // 16 of owner 0 wait
	c.postOf(0, 1, mailbox.Full)
	c.postOf(1, 8, mailbox.Accepted)
	c.postOf(1, 1, mailbox.Full)
	c.postOf(2, 1, mailbox.Full)
	c.wantBound(16)
	wantBatch(t, c.Drain(nil), 4, 5, 1000, 1001)
	c.wantBound(15)
	c.postOf(0, 1, mailbox.Full)
	c.postOf(1, 1, mailbox.Accepted)
	c.postOf(1, 1, mailbox.Full)
}

// Owners take turns of an equal share each, so a few tasks do not wait for the many of
// another, however large its pushes are. For a while after, its pushes are taken in parts.
func TestOwnersTakeTurns(t *testing.T) {
	c := newOverloaded(t)
	c.postOf(0, 8, mailbox.Accepted)
	wantVerdict(t, "a batch", c.Push([]int{1000, 1001, 1002, 1003, 1004, 1005}, 1, mailbox.ClassNew), mailbox.Accepted)
	c.postOf(1, 1, mailbox.Accepted)
	c.postOf(2, 1, mailbox.Accepted)
	wantBatch(t, c.Drain(nil), 0, 1, 1000, 1001)
	wantBatch(t, c.Drain(nil), 2000, 2, 3, 1002)
	wantBatch(t, c.Drain(nil), 4, 5, 1003, 1004)
	wantBatch(t, c.Drain(nil), 6, 7, 1005, 1000)
	for range sharedDrains / 2 {
		wantVerdict(t, "a batch", c.Push([]int{0, 1, 2, 3, 4, 5}, 1, mailbox.ClassNew), mailbox.Accepted)
		for c.Figures().New > 0 {
			if got := len(c.Drain(nil)); got > 4 {
				t.Fatalf("a drain took %d", got)
			}
		}
	}
	wantVerdict(t, "a batch", c.Push([]int{0, 1, 2, 3, 4, 5}, 1, mailbox.ClassNew), mailbox.Accepted)
	wantBatch(t, c.Drain(nil), 0, 1, 2, 3, 4, 5)
}
