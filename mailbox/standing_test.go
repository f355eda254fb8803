package mailbox_test

import (
	"testing"

	"codeq/mailbox"
)

// crowded is a mailbox with a clock of its own, of which a drain takes four
// messages of new work.
type crowded struct {
	*mailbox.Mailbox[int]
	t     *testing.T
	nowMs int64
}

func newCrowded(t *testing.T) *crowded {
	c := &crowded{t: t, nowMs: 1000}
	c.Mailbox = mailbox.NewAt[int](mailbox.Limits{Messages: 64, Bytes: 1 << 20, NewPerDrain: 4}, func() int64 { return c.nowMs })
	return c
}

// post pushes so many messages of new work, one by one.
func (c *crowded) post(n int, want mailbox.Verdict) {
	c.t.Helper()
	for i := range n {
		wantVerdict(c.t, "new work", c.Push([]int{i}, 1, mailbox.ClassNew), want)
	}
}

// stands posts a queue of twenty, drains it once and lets it stand for that long.
func (c *crowded) stands(forMs int64) {
	c.post(20, mailbox.Accepted)
	c.Drain(nil)
	c.nowMs += forMs
}

func TestBurstIsTakenWhateverItsSize(t *testing.T) {
	c := newCrowded(t)
	c.stands(mailbox.StandingForMs - 1)
	c.post(32, mailbox.Accepted) // as many as new work may fill
	c.post(1, mailbox.Full)
}

func TestStandingQueueTakesNoMoreThanTwoDrains(t *testing.T) {
	c := newCrowded(t)
	c.stands(mailbox.StandingForMs)
	for range 3 {
		c.post(1, mailbox.Full) // 16, then 12, then 8 wait
		c.Drain(nil)
	}
	c.post(4, mailbox.Accepted)
	c.post(1, mailbox.Full)
	if f := c.Figures(); f.Refused != 4 || f.New != 8 || f.StandingForMs != mailbox.StandingForMs {
		t.Errorf("figures %+v", f)
	}
}

func TestWhatFreesTheWayIsTakenBesideAStandingQueue(t *testing.T) {
	c := newCrowded(t)
	c.stands(mailbox.StandingForMs)
	c.post(1, mailbox.Full)
	wantVerdict(t, "work already taken on", c.Push(make([]int, 48), 1, mailbox.ClassKeep), mailbox.Accepted)
	var slot mailbox.Slot[int]
	wantVerdict(t, "a control message", c.PushSlot(&slot, 1, nil), mailbox.Accepted)
}

func TestQueueStandsUntilADrainLeavesNone(t *testing.T) {
	c := newCrowded(t)
	c.stands(mailbox.StandingForMs)
	for c.Figures().New > 4 {
		c.Drain(nil)
		c.nowMs += 10
	}
	c.post(1, mailbox.Accepted)
	c.Drain(nil) // leaves one
	c.post(7, mailbox.Accepted)
	c.post(1, mailbox.Full)
	c.Drain(nil)
	c.Drain(nil) // leaves none
	c.post(48, mailbox.Accepted)
	c.nowMs += 10 * mailbox.StandingForMs
	// Nothing stands before a drain has left something.
	c.Drain(nil)
	c.post(4, mailbox.Accepted)
}

func TestPushLargerThanADrainIsTakenBesideAStandingQueue(t *testing.T) {
	c := newCrowded(t)
	c.stands(mailbox.StandingForMs)
	for c.Figures().New > 4 {
		c.Drain(nil)
	}
	wantVerdict(t, "a batch", c.Push(make([]int, 30), 1, mailbox.ClassNew), mailbox.Accepted)
}
