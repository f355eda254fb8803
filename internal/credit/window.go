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
// untakenBytes is the payload that was granted to the consumer and that its client
// has not confirmed, so it is 0 exactly when no delivery is unconfirmed. At the
// bound a shard waits as if there were no credit; Taken wakes it.
//
// One shard may have the window alone, which is for suspects; see TakeAlone. During
// that time no other shard takes a credit.
//
// All methods may be called from any goroutine, except SetWindow, which only one
// may call. None blocks.
type Window struct {
	word         atomic.Int64
	size         atomic.Int64
	untakenBytes atomic.Int64
	// bound is how much may be untaken now, at most mostBytes.
	bound     atomic.Int64
	mostBytes int
	wake      func(shard int)
	// turn is the shard that was served last, row how often in a row, ready how many
	// ready queues each shard had for the consumer when it last waited beside
	// another.
	turn  atomic.Int32
	row   atomic.Int32
	ready [MaxShards]atomic.Int32
	// alone is the shard that has the window alone, plus one. Only that shard
	// changes it, while the alone bit is set.
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

// New makes a window of size 0. Shards grant while less than boundBytes are
// unconfirmed; Taken changes that, to mostBytes at most. wake is called once for each
// credit that is handed to a waiting shard, from the goroutine that returned it; it
// must not block.
func New(mostBytes, boundBytes int, wake func(shard int)) *Window {
	w := &Window{mostBytes: mostBytes, wake: wake}
	w.bound.Store(int64(min(boundBytes, mostBytes)))
	return w
}

// hasWay says whether more may be on its way to the client.
func (w *Window) hasWay() bool { return w.untakenBytes.Load() < w.bound.Load() }

// Take takes one credit for a task of that many payload bytes, or notes that
// the shard waits. After Close it takes nothing and notes nothing.
func (w *Window) Take(shard, payloadBytes int) bool {
	bit := int64(1) << shard
	for {
		word := w.word.Load()
		if word&closedBit != 0 {
			return false
		}
		if free(word) > 0 && word&aloneBit == 0 && w.hasWay() {
			// Counted before the credit is taken, so that a shard that has the window
			// alone since then sees it, if this exchange does not see the alone bit.
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
		// After the bit is set the loop looks once more: bytes may have been
		// confirmed between the look and the exchange.
		w.word.CompareAndSwap(word, word|bit)
	}
}

// Return returns credits. It wakes a waiting shard for each credit that the shard
// gets instead of the free ones. With 0 it looks whether a shard may be woken.
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
				// Bytes may have been confirmed since the look at them.
				w.rouse()
			}
			continue
		}
		if w.handOn(word, 0) {
			left--
		}
	}
}

// rouse hands free credits to shards that wait, which only happens when they
// waited for bytes to be confirmed rather than for a credit.
func (w *Window) rouse() {
	for {
		word := w.word.Load()
		if free(word) <= 0 || !w.mayHandOn(word) {
			return
		}
		w.handOn(word, oneFree)
	}
}

// handOn wakes the next waiting shard with a credit, which is taken from the free
// ones or has just come back. It reports false if the word has changed.
func (w *Window) handOn(word, taken int64) bool {
	shard := w.nextWaiting(word)
	if !w.word.CompareAndSwap(word, (word-taken)&^(int64(1)<<shard)) {
		return false
	}
	// Two shards that are served at once may miscount a row.
	if w.turn.Swap(int32(shard)) == int32(shard) {
		w.row.Add(1)
	} else {
		w.row.Store(1)
	}
	w.wake(shard)
	return true
}

func (w *Window) mayHandOn(word int64) bool {
	if word&aloneBit != 0 {
		alone := w.alone.Load()
		return alone != 0 && word&(1<<(alone-1)) != 0 && word&closedBit == 0 && w.untakenBytes.Load() == 0
	}
	return word&waitBits != 0 && word&closedBit == 0 && w.hasWay()
}

// nextWaiting is the shard that was served last, if it waits and has more ready
// queues than it was served in a row, else the first waiting one behind it, or the
// one that has the window alone.
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

// Portion is the part of the window that a shard should have while others wait: by
// the ready queues that each has for the consumer.
func (w *Window) Portion(shard int) int {
	mine := max(w.ready[shard].Load(), 1)
	all := mine
	for waiting := uint32(w.word.Load()&waitBits) &^ (1 << shard); waiting != 0; waiting &= waiting - 1 {
		all += max(w.ready[bits.TrailingZeros32(waiting)].Load(), 1)
	}
	return int(w.size.Load() * int64(mine) / int64(all))
}

// SetReady says how many ready queues a shard has for the consumer.
func (w *Window) SetReady(shard int, queues int32) { w.ready[shard].Store(queues) }

// OthersWait says whether another shard waits for a credit.
func (w *Window) OthersWait(shard int) bool { return w.word.Load()&waitBits&^(int64(1)<<shard) != 0 }

// SetWindow sets how many tasks may be in flight; 0 allows no more. What is in flight
// stays, so a smaller window may be in debt, which returned credits pay first. Only
// one goroutine may call it.
func (w *Window) SetWindow(size int) {
	grown := int64(size) - w.size.Swap(int64(size))
	if grown > 0 {
		w.Return(int(grown))
		return
	}
	w.word.Add(grown * oneFree)
}

// Taken notes that the client has confirmed deliveries of so many payload bytes.
// From then on shards grant while less than boundBytes are unconfirmed, or less than
// the bound that New was given.
func (w *Window) Taken(payloadBytes, boundBytes int) {
	w.bound.Store(int64(min(boundBytes, w.mostBytes)))
	w.untakenBytes.Add(-int64(payloadBytes))
	w.rouse()
}

// UntakenBytes is the payload that was granted and that the client has not confirmed.
func (w *Window) UntakenBytes() int { return int(w.untakenBytes.Load()) }

// MayReuse says whether a credit that is about to come back may be used by a
// shard at once.
func (w *Window) MayReuse() bool {
	word := w.word.Load()
	return word&(closedBit|aloneBit) == 0 && free(word) >= 0 && w.hasWay()
}

// InDebt says whether more tasks are in flight than the window allows.
func (w *Window) InDebt() bool { return free(w.word.Load()) < 0 }

// Hold takes credits for tasks that are in flight already. It may leave the window
// in debt.
func (w *Window) Hold(credits int) { w.word.Add(-int64(credits) * oneFree) }

// AddBytes notes payload bytes that are granted with a credit which the shard has
// already, and refuses them while a shard has the window alone.
func (w *Window) AddBytes(payloadBytes int) bool {
	w.untakenBytes.Add(int64(payloadBytes))
	if w.word.Load()&aloneBit == 0 {
		return true
	}
	w.untakenBytes.Add(-int64(payloadBytes))
	return false
}

// InFlight is the number of credits that are taken, which after Close no longer grows.
func (w *Window) InFlight() int { return int(w.size.Load() - free(w.word.Load())) }

// Close makes every later Take fail. It reports false if the window was closed.
func (w *Window) Close() bool { return w.word.Or(closedBit)&closedBit == 0 }
