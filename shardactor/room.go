package shardactor

import (
	"cmp"
	"math/bits"
	"sync/atomic"
)

// room is the window of one session over all shards, kept in one word that
// changes only by compare-and-swap: the free units (signed, in the upper 30
// bits), an alone bit, a closed bit, and one waiting bit per shard. A shard that finds no
// unit sets its bit in the same exchange, so a unit that comes back in between
// always sees it; a unit that comes back is handed to the next waiting shard
// and only grows the room when nobody waits. So no wake-up is lost, no unit is
// counted twice, and no shard starves. The next is the same one as often in a row
// as it has ready queues for the session, so that queues of all shards have as
// many turns.
//
// untakenBytes is the payload that was handed to the session and that its client
// has not confirmed, so it is 0 exactly when no delivery is unconfirmed. At the
// bound a shard waits as if there were no unit; taken wakes it.
//
// One shard may have the room alone, which is for suspects; see takeAlone. As
// long no other takes anything.
//
// All methods may be called from any goroutine and none blocks.
type room struct {
	word         atomic.Int64
	window       atomic.Int64
	untakenBytes atomic.Int64
	// bound is how much may be untaken, 0 for MaxUntakenBytes.
	bound atomic.Int64
	// turn is the shard that was served last, row how often in a row, ready how many
	// ready queues each shard had for the session when it last waited beside
	// another.
	turn  atomic.Int32
	row   atomic.Int32
	ready [roomShards]atomic.Int32
	// alone is the shard that has the room alone, plus one. Only that shard
	// changes it, while the alone bit is set.
	alone atomic.Int32
}

const (
	roomShift  = 34
	roomUnit   = int64(1) << roomShift
	roomAlone  = int64(1) << 33
	roomClosed = int64(1) << 32
	roomShards = 32
	roomBits   = int64(1)<<roomShards - 1

	// MaxUntakenBytes is how much payload may be untaken by a client before
	// shards stop granting to it; one task always fits. A session begins with
	// firstUntakenBytes, and says what it is, up to MaxUntakenBytes, when anything
	// was taken.
	MaxUntakenBytes   = 1 << 20
	firstUntakenBytes = 256 << 10
)

func roomFree(word int64) int64 { return word >> roomShift }

// hasWay says whether more may be on its way to the client.
func (r *room) hasWay() bool {
	return r.untakenBytes.Load() < cmp.Or(r.bound.Load(), MaxUntakenBytes)
}

// take takes one unit for a task of that many payload bytes, or notes that
// the shard waits. After close it takes nothing and notes nothing.
func (r *room) take(shard, payloadBytes int) bool {
	bit := int64(1) << shard
	for {
		word := r.word.Load()
		if word&roomClosed != 0 {
			return false
		}
		if roomFree(word) > 0 && word&roomAlone == 0 && r.hasWay() {
			// Counted before the unit is taken, so that who has the room alone since
			// sees it, if the exchange does not see the bit of that.
			r.untakenBytes.Add(int64(payloadBytes))
			if r.word.CompareAndSwap(word, (word-roomUnit)&^bit) {
				return true
			}
			r.untakenBytes.Add(-int64(payloadBytes))
			continue
		}
		if word&bit != 0 {
			return false
		}
		// After the bit is set the loop looks once more: bytes may have been
		// taken between the look and the exchange.
		r.word.CompareAndSwap(word, word|bit)
	}
}

// give returns units. It calls wake once for each unit that a waiting shard
// gets instead of the room. With none it looks whether a shard may be woken.
func (r *room) give(units int, wake func(shard int)) {
	left := int64(units)
	if left == 0 {
		r.rouse(wake)
	}
	for left > 0 {
		word := r.word.Load()
		if debt := -roomFree(word); debt > 0 {
			paid := min(left, debt)
			if r.word.CompareAndSwap(word, word+paid*roomUnit) {
				left -= paid
			}
			continue
		}
		if !r.mayHandOn(word) {
			if r.word.CompareAndSwap(word, word+left*roomUnit) {
				left = 0
				// Bytes may have been taken since the look at them.
				r.rouse(wake)
			}
			continue
		}
		shard := r.nextWaiting(word)
		if r.word.CompareAndSwap(word, word&^(int64(1)<<shard)) {
			left--
			r.served(shard)
			wake(shard)
		}
	}
}

// rouse hands free units to shards that wait, which only happens when they
// waited for bytes to be taken rather than for a unit.
func (r *room) rouse(wake func(shard int)) {
	for {
		word := r.word.Load()
		if roomFree(word) <= 0 || !r.mayHandOn(word) {
			return
		}
		shard := r.nextWaiting(word)
		if r.word.CompareAndSwap(word, (word-roomUnit)&^(int64(1)<<shard)) {
			r.served(shard)
			wake(shard)
		}
	}
}

func (r *room) mayHandOn(word int64) bool {
	if word&roomAlone != 0 {
		alone := r.alone.Load()
		return alone != 0 && word&(1<<(alone-1)) != 0 && word&roomClosed == 0 && r.untakenBytes.Load() == 0
	}
	return word&roomBits != 0 && word&roomClosed == 0 && r.hasWay()
}

// nextWaiting is the shard that was served last, if it waits and has more ready
// queues than it was served in a row, else the first waiting one behind it, or the
// one that has the room alone.
func (r *room) nextWaiting(word int64) int {
	if alone := r.alone.Load(); word&roomAlone != 0 && alone != 0 {
		return int(alone - 1)
	}
	waiting, last := uint32(word&roomBits), int(r.turn.Load())
	if waiting&(1<<last) != 0 && r.row.Load() < r.ready[last].Load() {
		return last
	}
	behind := bits.TrailingZeros32(bits.RotateLeft32(waiting, -(last + 1)))
	return (last + 1 + behind) % roomShards
}

// served notes that a shard got a unit. Two at a time may miscount a row.
func (r *room) served(shard int) {
	if r.turn.Swap(int32(shard)) == int32(shard) {
		r.row.Add(1)
		return
	}
	r.row.Store(1)
}

// portion is what of the window is the shard's while others wait: by the ready
// queues that each has for the session.
func (r *room) portion(shard int) int {
	mine := max(r.ready[shard].Load(), 1)
	all := mine
	for waiting := uint32(r.word.Load()&roomBits) &^ (1 << shard); waiting != 0; waiting &= waiting - 1 {
		all += max(r.ready[bits.TrailingZeros32(waiting)].Load(), 1)
	}
	return int(r.window.Load() * int64(mine) / int64(all))
}

// othersWait says whether another shard waits for a unit.
func (r *room) othersWait(shard int) bool { return r.word.Load()&roomBits&^(int64(1)<<shard) != 0 }

// resize sets the window; a smaller one may leave the room in debt, which
// returned units pay first. Only one goroutine may resize a room.
func (r *room) resize(window int, wake func(shard int)) {
	grown := int64(window) - r.window.Swap(int64(window))
	if grown > 0 {
		r.give(int(grown), wake)
		return
	}
	for {
		word := r.word.Load()
		if r.word.CompareAndSwap(word, word+grown*roomUnit) {
			return
		}
	}
}

// taken notes that the client has confirmed deliveries of so many payload bytes,
// and how much may be untaken from now on.
func (r *room) taken(payloadBytes, bound int, wake func(shard int)) {
	r.bound.Store(int64(bound))
	r.untakenBytes.Add(-int64(payloadBytes))
	r.rouse(wake)
}

// mayKeep says whether a unit that is about to come back may be used by this
// shard at once.
func (r *room) mayKeep() bool {
	word := r.word.Load()
	return word&(roomClosed|roomAlone) == 0 && roomFree(word) >= 0 && r.hasWay()
}

// inDebt says whether more units are out than the window has.
func (r *room) inDebt() bool { return roomFree(r.word.Load()) < 0 }

// hold takes units that are out without having been asked for. It may leave the
// room in debt.
func (r *room) hold(units int) { r.word.Add(-int64(units) * roomUnit) }

// carry notes payload bytes that are granted with a unit which is out already, and
// refuses them while a shard has the room alone.
func (r *room) carry(payloadBytes int) bool {
	r.untakenBytes.Add(int64(payloadBytes))
	if r.word.Load()&roomAlone == 0 {
		return true
	}
	r.untakenBytes.Add(-int64(payloadBytes))
	return false
}

// inHand is the number of units that are out: taken, carried or in debt.
func (r *room) inHand() int {
	return int(r.window.Load() - roomFree(r.word.Load()))
}

// close makes every later take fail. It reports false if it was closed.
func (r *room) close() bool {
	for {
		word := r.word.Load()
		if word&roomClosed != 0 {
			return false
		}
		if r.word.CompareAndSwap(word, word|roomClosed) {
			return true
		}
	}
}
