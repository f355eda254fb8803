package shardactor

// isIdle reports that nothing is on its way to the client, that no other shard has
// the room alone, and that there is a unit, or the shard has one.
func (r *room) isIdle(mine, hasUnit bool) bool {
	word := r.word.Load()
	if word&roomClosed != 0 || word&roomAlone != 0 && !mine || roomFree(word) < 0 {
		return false
	}
	return (hasUnit || roomFree(word) > 0) && r.untakenBytes.Load() == 0
}

func (r *room) isAlone() bool { return r.word.Load()&roomAlone != 0 }

// takeAlone gives the room to one shard alone, and takes a unit for a task of
// that many payload bytes once nothing else is on its way to the client. hasUnit
// says that the shard has one already. Until then, and until the client has that
// task, no other is taken; then the shard is woken, with a unit, and takes the
// next one alone or shares the room again.
//
// mine says that the shard has the room, which it had before or was shared; if
// not, it waits for that as for a unit.
func (r *room) takeAlone(shard, payloadBytes int, hasUnit bool) (taken, mine bool) {
	bit := int64(1) << shard
	for {
		word := r.word.Load()
		switch {
		case word&roomClosed != 0:
			return false, false
		case word&roomAlone == 0:
			if r.word.CompareAndSwap(word, word|roomAlone|bit) {
				r.alone.Store(int32(shard) + 1)
			}
		case word&bit == 0:
			// Before the look at the bytes, so that who takes the last of them sees it.
			r.word.CompareAndSwap(word, word|bit)
		case r.alone.Load() != int32(shard)+1:
			return false, false
		case r.untakenBytes.Load() > 0 || roomFree(word) < 0:
			return false, true
		case hasUnit:
			r.untakenBytes.Add(int64(payloadBytes))
			return true, true
		case roomFree(word) == 0:
			return false, true
		case r.word.CompareAndSwap(word, word-roomUnit):
			r.untakenBytes.Add(int64(payloadBytes))
			return true, true
		}
	}
}

// waitAlone has the shard, which has the room alone, woken when nothing is on its
// way to the client. It reports false if that is so already.
func (r *room) waitAlone(shard int) bool {
	for {
		word := r.word.Load()
		if r.word.CompareAndSwap(word, word|int64(1)<<shard) {
			return r.untakenBytes.Load() > 0
		}
	}
}

// share ends that one shard has the room alone. Who waits for it is woken by the
// next give.
func (r *room) share() {
	r.alone.Store(0)
	for {
		word := r.word.Load()
		if r.word.CompareAndSwap(word, word&^roomAlone) {
			return
		}
	}
}
