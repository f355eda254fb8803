package credit

import (
	"math/bits"
	"sync/atomic"
)

// Window is the credit of one consumer over all shards, kept in one word: the free
// credits (signed, in the upper 30 bits), an alone bit, a closed bit, and one
// waiting bit per shard. A shard that finds no credit sets its bit in the same
// exchange, so a credit that comes back in between always sees it; a credit that
// comes back is handed to the next waiting shard and only grows the free ones when
// no shard waits. So no wake-up is lost, no credit is counted twice, and no shard
// starves. The next shard is the same one as often in a row as it has ready queues
// for the consumer, so queues of all shards have as many turns.
//
// untakenBytes is the granted payload that the client has not confirmed, so it is 0
// exactly if every delivery is confirmed. At the bound a shard waits as if there were
// no credit; Taken wakes it.
//
// One shard may have the window alone, to grant a suspect; see TakeAlone. Meanwhile no
// other shard takes a credit.
//
// Any goroutine may call the methods; only one may call SetWindow. None blocks.
type Window struct {
	word         atomic.Int64
	size         atomic.Int64
	untakenBytes atomic.Int64
	// bound is how many bytes may be unconfirmed now, at most mostBytes.
	bound     atomic.Int64
	mostBytes int
	wake      func(shard int)
	// turn is the shard that was woken last, row how often in a row. ready is, by shard,
	// the number of ready queues for the consumer when the shard last waited beside
	// another.
	turn  atomic.Int32
	row   atomic.Int32
	ready [MaxShards]atomic.Int32
	// alone is the shard that has the window alone, plus one. Only that shard changes
	// it, and only while the alone bit is set.
	alone atomic.Int32
}

// MaxShards is how many shards one word has waiting bits for.
const MaxShards = 32

const (
	freeShift = 34
	oneFree   = int64(1) << freeShift
	aloneBit  = int64(1) << 33
	closedBit = int64(1) << 32
	waitBits  = int64(1)<<MaxShards - 1
)

func free(word int64) int64 { return word >> freeShift }

// New makes a window of size 0. Shards grant while fewer than boundBytes are
// unconfirmed; Taken sets another bound, at most mostBytes. The goroutine that returns a
// credit calls wake once for each credit that a waiting shard gets. wake must not block.
func New(mostBytes, boundBytes int, wake func(shard int)) *Window {
	w := &Window{mostBytes: mostBytes, wake: wake}
	w.bound.Store(int64(min(boundBytes, mostBytes)))
	return w
}

// hasWay reports whether the unconfirmed bytes are below the bound.
func (w *Window) hasWay() bool { return w.untakenBytes.Load() < w.bound.Load() }

// Take takes one credit for a task of payloadBytes, or notes that the shard waits and
// returns false. After Close it does neither.
func (w *Window) Take(shard, payloadBytes int) bool {
	bit := int64(1) << shard
	for {
		word := w.word.Load()
		if word&closedBit != 0 {
			return false
		}
		if free(word) > 0 && word&aloneBit == 0 && w.hasWay() {
			// Count the bytes before the exchange. Either the exchange fails because
			// another shard has set the alone bit, or that shard sees the bytes.
			w.untakenBytes.Add(int64(payloadBytes))
			if w.word.CompareAndSwap(word, (word-oneFree)&^bit) {
				return true
			}
			w.untakenBytes.Add(-int64(payloadBytes))
			continue
		}
		if word&bit != 0 {
			return false
		}
		// Once the bit is set the loop reads the bytes again: the client may have
		// confirmed some between the read and the exchange.
		w.word.CompareAndSwap(word, word|bit)
	}
}

// Return returns credits. Each pays a debt, else wakes a waiting shard, else becomes
// free. Return(0) only wakes the shards that may be woken.
func (w *Window) Return(credits int) {
	left := int64(credits)
	if left == 0 {
		w.rouse()
	}
	for left > 0 {
		word := w.word.Load()
		if debt := -free(word); debt > 0 {
			paid := min(left, debt)
			if w.word.CompareAndSwap(word, word+paid*oneFree) {
				left -= paid
			}
			continue
		}
		if !w.mayHandOn(word) {
			if w.word.CompareAndSwap(word, word+left*oneFree) {
				left = 0
				// The client may have confirmed bytes since they were read.
				w.rouse()
			}
			continue
		}
		if w.handOn(word, 0) {
			left--
		}
	}
}

// rouse gives free credits to waiting shards. There are both only if the shards waited
// for confirmed bytes.
func (w *Window) rouse() {
	for {
		word := w.word.Load()
		if free(word) <= 0 || !w.mayHandOn(word) {
			return
		}
		w.handOn(word, oneFree)
	}
}

// handOn wakes the next waiting shard with a credit: a free one if taken is oneFree,
// else one that has just come back. It returns false if the word has changed.
func (w *Window) handOn(word, taken int64) bool {
	shard := w.nextWaiting(word)
	if !w.word.CompareAndSwap(word, (word-taken)&^(int64(1)<<shard)) {
		return false
	}
	// Two goroutines that do this at once may miscount the row.
	if w.turn.Swap(int32(shard)) == int32(shard) {
		w.row.Add(1)
	} else {
		w.row.Store(1)
	}
	w.wake(shard)
	return true
}

// mayHandOn reports whether a shard waits for a credit and may have one.
func (w *Window) mayHandOn(word int64) bool {
	if word&aloneBit != 0 {
		alone := w.alone.Load()
		return alone != 0 && word&(1<<(alone-1)) != 0 && word&closedBit == 0 && w.untakenBytes.Load() == 0
	}
	return word&waitBits != 0 && word&closedBit == 0 && w.hasWay()
}

// nextWaiting is the shard that has the window alone. Without such a shard it is the
// one that was woken last, if it waits and has more ready queues than it was woken in a
// row, else the next waiting one by number.
func (w *Window) nextWaiting(word int64) int {
	if alone := w.alone.Load(); word&aloneBit != 0 && alone != 0 {
		return int(alone - 1)
	}
	waiting, last := uint32(word&waitBits), int(w.turn.Load())
	if waiting&(1<<last) != 0 && w.row.Load() < w.ready[last].Load() {
		return last
	}
	behind := bits.TrailingZeros32(bits.RotateLeft32(waiting, -(last + 1)))
	return (last + 1 + behind) % MaxShards
}

// Portion is the part of the window that a shard should have while others wait, in
// proportion to the ready queues of each for the consumer.
func (w *Window) Portion(shard int) int {
	mine := max(w.ready[shard].Load(), 1)
	all := mine
	for waiting := uint32(w.word.Load()&waitBits) &^ (1 << shard); waiting != 0; waiting &= waiting - 1 {
		all += max(w.ready[bits.TrailingZeros32(waiting)].Load(), 1)
	}
	return int(w.size.Load() * int64(mine) / int64(all))
}

// SetReady sets the number of ready queues that a shard has for the consumer.
func (w *Window) SetReady(shard int, queues int32) { w.ready[shard].Store(queues) }

// OthersWait reports whether another shard waits for a credit.
func (w *Window) OthersWait(shard int) bool { return w.word.Load()&waitBits&^(int64(1)<<shard) != 0 }

// SetWindow sets how many tasks may be in flight; 0 allows no further one. Tasks in
// flight stay, so a smaller window may be in debt, which returned credits pay first.
// Only one goroutine may call it.
func (w *Window) SetWindow(size int) {
	grown := int64(size) - w.size.Swap(int64(size))
	if grown > 0 {
		w.Return(int(grown))
		return
	}
	w.word.Add(grown * oneFree)
}

// Taken notes that the client has confirmed payloadBytes. From then on shards grant
// while fewer than boundBytes, and fewer than mostBytes of New, are unconfirmed.
func (w *Window) Taken(payloadBytes, boundBytes int) {
	w.bound.Store(int64(min(boundBytes, w.mostBytes)))
	w.untakenBytes.Add(-int64(payloadBytes))
	w.rouse()
}

// UntakenBytes is the granted payload that the client has not confirmed.
func (w *Window) UntakenBytes() int { return int(w.untakenBytes.Load()) }

// MayReuse reports whether a shard may use a credit at once instead of returning it.
func (w *Window) MayReuse() bool {
	word := w.word.Load()
	return word&(closedBit|aloneBit) == 0 && free(word) >= 0 && w.hasWay()
}

// InDebt reports whether more tasks are in flight than the window allows.
func (w *Window) InDebt() bool { return free(w.word.Load()) < 0 }

// Hold takes credits for tasks that are in flight already. It may put the window into
// debt.
func (w *Window) Hold(credits int) { w.word.Add(-int64(credits) * oneFree) }

// AddBytes counts payload that the shard grants with a credit it holds. It returns
// false and counts nothing while a shard has the window alone.
func (w *Window) AddBytes(payloadBytes int) bool {
	w.untakenBytes.Add(int64(payloadBytes))
	if w.word.Load()&aloneBit == 0 {
		return true
	}
	w.untakenBytes.Add(-int64(payloadBytes))
	return false
}

// InFlight is the number of taken credits. After Close it no longer grows.
func (w *Window) InFlight() int { return int(w.size.Load() - free(w.word.Load())) }

// Close makes every later Take fail. It returns false if the window was closed before.
func (w *Window) Close() bool { return w.word.Or(closedBit)&closedBit == 0 }
