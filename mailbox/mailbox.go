package mailbox

import (
	"fmt"
	"sync"
	"time"
)

// Verdict is the answer to a push.
type Verdict int

const (
	// Accepted means that a Drain will have the messages.
	Accepted Verdict = iota
	// Full means that no message was taken; a later try may succeed.
	Full
	// Closed means that no message was taken and none will be.
	Closed
)

// String is the name of the verdict.
func (v Verdict) String() string {
	switch v {
	case Accepted:
		return "accepted"
	case Full:
		return "full"
	case Closed:
		return "closed"
	}
	return fmt.Sprintf("verdict %d", int(v))
}

// Class says how much of the mailbox a push may fill, and in which lane it waits: new
// work behind what keeps or ends accepted work, which a flood of new work would starve.
type Class int

const (
	// ClassNew is work that was not accepted yet: it may fill three quarters. While several
	// owners have some, none may have more than half of that, but for one larger push, and
	// all may fill seven eighths.
	ClassNew Class = iota
	// ClassKeep is for messages that keep or end accepted work: they may fill all of it.
	ClassKeep
)

// Limits bound what waits from Push; slots are not counted. Whoever sets them
// keeps three quarters above the largest batch of ClassNew, because a batch
// that does not fit into an empty mailbox is Full for ever.
type Limits struct {
	Messages int
	Bytes    int
	// NewPerDrain is how many messages of ClassNew one Drain takes, of one owner in
	// whole pushes and at least one of them; what is left is the next Drain. 0 takes
	// all. When OverloadAfterMs after a drain some of what it left still waits, no more may
	// wait than wait at that moment; the limit doubles with each DoubleAfterMs without overload.
	// While several owners have some, none may have more than half of it; what one had
	// before counts as half.
	NewPerDrain int
}

// less leaves one of so many parts out.
func (l Limits) less(parts int) Limits {
	l.Messages -= l.Messages / parts
	l.Bytes -= l.Bytes / parts
	return l
}

// retainCap is the capacity in messages up to which a slice is kept whatever
// the load is. A larger one, left by a burst, is let go when a drain finds
// less than an eighth of it used.
const retainCap = 1024

// Mailbox is a bounded queue of M with many producers and one consumer.
type Mailbox[M any] struct {
	limits Limits
	nowMs  func() int64
	// ownerOf tells whose new work a message is.
	ownerOf func(M) string
	wake    chan struct{}

	mu sync.Mutex
	// The rest is guarded by mu. waiting is the lane of ClassKeep and of slots,
	// fresh the lanes of ClassNew.
	waiting []M
	fresh   lanes[M]
	// counted is how many of both came by Push; the others are slots.
	// keptBytes are those of waiting.
	counted      int
	countedBytes int
	kept         int
	keptBytes    int
	// turn numbers the drains, from 1. A slot whose turn is this one waits.
	turn        uint64
	firstPushAt time.Time
	closed      bool
	admission   admission
	figures     Figures
}

// Slot is the one place that a repeated control message has in a mailbox. The
// zero value is ready. A Slot belongs to the first mailbox it is pushed to and
// is guarded by that mailbox; its user only keeps it.
type Slot[M any] struct {
	box   *Mailbox[M]
	turn  uint64
	place int
}

// New makes an empty mailbox. Limits below 1 panic.
func New[M any](l Limits) *Mailbox[M] {
	return NewAt(l, func() int64 { return time.Now().UnixMilli() }, func(M) string { return "" })
}

// NewAt is New by a clock in milliseconds, which decides for how long drains have
// left new work behind, and with an owner for each push of new work, that of its first
// message. Both are called inside the mailbox: they must be short and must not call it.
func NewAt[M any](l Limits, nowMs func() int64, ownerOf func(M) string) *Mailbox[M] {
	if l.Messages < 1 || l.Bytes < 1 {
		panic(fmt.Sprintf("mailbox: limits of %d messages and %d bytes", l.Messages, l.Bytes))
	}
	return &Mailbox[M]{limits: l, nowMs: nowMs, ownerOf: ownerOf, wake: make(chan struct{}, 1), turn: 1}
}

// Push adds the whole batch behind what waits, or nothing of it. bytes is what
// the batch holds in memory, by the caller's measure. The messages are copied
// out of batch, which stays the caller's. An empty batch is Accepted unless the
// mailbox is closed. Any goroutine; never waits.
func (b *Mailbox[M]) Push(batch []M, bytes int, class Class) Verdict {
	if bytes < 0 {
		panic(fmt.Sprintf("mailbox: push of %d messages with %d bytes", len(batch), bytes))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return Closed
	}
	if len(batch) == 0 {
		return Accepted
	}
	owner := ""
	if class == ClassNew {
		owner = b.ownerOf(batch[0])
	}
	if class == ClassNew && !b.admits(owner) || !b.hasRoom(len(batch), bytes, class, owner) {
		b.figures.Refused += uint64(len(batch))
		return Full
	}
	if class == ClassNew {
		b.signal()
		b.fresh.push(owner, batch, bytes)
	} else {
		b.arriving()
		b.waiting = append(b.waiting, batch...)
		b.kept += len(batch)
		b.keptBytes += bytes
	}
	b.counted += len(batch)
	b.countedBytes += bytes
	b.figures.Pushed += uint64(len(batch))
	b.figures.HighWater = max(b.figures.HighWater, b.depth())
	return Accepted
}

func (b *Mailbox[M]) depth() int { return len(b.waiting) + b.fresh.messages }

// Empty reports that nothing waits. Any goroutine.
func (b *Mailbox[M]) Empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.depth() == 0
}

// PushSlot adds a control message. While an earlier one of the same slot waits
// the two become one, merge(waiting, m), in the place of the earlier; a nil
// merge keeps m alone. merge runs inside the mailbox: it must be short and
// must not call it. The verdict is Accepted or Closed, never Full. Any
// goroutine; never waits.
func (b *Mailbox[M]) PushSlot(s *Slot[M], m M, merge func(waiting, m M) M) Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return Closed
	}
	if s.box != b {
		if s.box != nil {
			panic("mailbox: a slot was pushed to two mailboxes")
		}
		s.box = b
	}
	b.figures.Pushed++
	if s.turn == b.turn {
		if merge != nil {
			m = merge(b.waiting[s.place], m)
		}
		b.waiting[s.place] = m
		b.figures.Merged++
		return Accepted
	}
	b.arriving()
	s.turn, s.place = b.turn, len(b.waiting)
	b.waiting = append(b.waiting, m)
	b.figures.HighWater = max(b.figures.HighWater, b.depth())
	return Accepted
}

// hasRoom compares by subtraction, so that no sum can overflow.
func (b *Mailbox[M]) hasRoom(messages, bytes int, class Class, owner string) bool {
	most := b.limits
	if class == ClassNew {
		most = most.less(4)
		if own, ownBytes := b.fresh.held(owner); own < b.fresh.messages {
			if own > 0 && (messages > most.Messages/2-own || bytes > most.Bytes/2-ownBytes) {
				return false
			}
			most = b.limits.less(8)
		}
	}
	return messages <= most.Messages-b.counted && bytes <= most.Bytes-b.countedBytes
}

// admits asks the clock only when it matters.
func (b *Mailbox[M]) admits(owner string) bool {
	return b.admission.idle() || b.fresh.admits(owner, b.admission.limitBeside(b.fresh.messages, b.limits.NewPerDrain, b.nowMs()))
}

// arriving starts the clock of a backlog and wakes its owner; called before
// every append, it does something before the first.
func (b *Mailbox[M]) arriving() {
	if len(b.waiting) > 0 {
		return
	}
	b.firstPushAt = time.Now()
	b.signal()
}

func (b *Mailbox[M]) signal() {
	select {
	case b.wake <- struct{}{}:
	default: // a signal that nobody took yet says the same
	}
}

// Drain takes what waits: all of ClassKeep and of the slots in order, then new
// work, at most Limits.NewPerDrain of it: its owners take turns, that of each is in order. All slots are free after
// it. into is a batch that the caller is done with, usually the one of the
// drain before: its memory is wiped and used for what comes next, so that
// drains do not allocate under a steady load. It may be nil. Only the owner of
// the backlog drains.
func (b *Mailbox[M]) Drain(into []M) []M {
	into = into[:cap(into)]
	clear(into) // the mailbox must not keep old messages alive
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counted -= b.kept
	b.countedBytes -= b.keptBytes
	b.kept, b.keptBytes = 0, 0
	batch, n, bytes, oldest := b.fresh.take(b.waiting, b.limits.NewPerDrain)
	if kept := len(batch) - n; kept > 0 && (n == 0 || b.firstPushAt.Before(oldest)) {
		oldest = b.firstPushAt
	}
	b.counted -= n
	b.countedBytes -= bytes
	if cap(into) > retainCap && len(batch) < cap(into)/8 {
		into = nil
	}
	b.waiting = into[:0]
	if left := b.fresh.messages; left > 0 || !b.admission.idle() {
		b.admission.drained(n, left, b.limits.NewPerDrain, b.nowMs())
	}
	b.turn++
	b.figures.drained(len(batch), oldest)
	switch {
	case b.fresh.messages > 0:
		b.signal()
	case !b.closed:
		b.unsignal()
	}
	return batch
}

// unsignal takes back a wake-up for what has just been drained. The one of
// Close stays: the owner may not have looked yet.
func (b *Mailbox[M]) unsignal() {
	select {
	case <-b.wake:
	default: // the owner came because of it
	}
}

// Wake is readable when something waits that the last Drain did not take, and
// after Close. One reader: the owner of the backlog.
func (b *Mailbox[M]) Wake() <-chan struct{} { return b.wake }

// Close makes every later push Closed and wakes the owner. What waits can
// still be drained. Harmless when repeated. Any goroutine.
func (b *Mailbox[M]) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.signal()
}

// Done reports that Close was called and nothing waits: no Drain will ever
// have a message again. Any goroutine.
func (b *Mailbox[M]) Done() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed && b.depth() == 0
}
