package credit

// IsIdle reports that nothing is on its way to the client, that no other shard has
// the window alone, and that there is a credit, or the shard has one.
func (w *Window) IsIdle(mine, hasCredit bool) bool {
	word := w.word.Load()
	if word&closedBit != 0 || word&aloneBit != 0 && !mine || free(word) < 0 {
		return false
	}
	return (hasCredit || free(word) > 0) && w.untakenBytes.Load() == 0
}

// IsAlone says whether a shard has the window alone.
func (w *Window) IsAlone() bool { return w.word.Load()&aloneBit != 0 }

// TakeAlone gives the window to one shard alone, and takes a credit for a task of
// that many payload bytes once nothing else is on its way to the client. hasCredit
// says that the shard has one already. Until then, and until the client has that
// task, no other credit is taken; then the shard is woken, with a credit, and takes
// the next one alone or shares the window again.
//
// mine says that the shard has the window, which it had before or was shared; if
// not, it waits for that as for a credit.
func (w *Window) TakeAlone(shard, payloadBytes int, hasCredit bool) (taken, mine bool) {
	bit := int64(1) << shard
	for {
		word := w.word.Load()
		switch {
		case word&closedBit != 0:
			return false, false
		case word&aloneBit == 0:
			if w.word.CompareAndSwap(word, word|aloneBit|bit) {
				w.alone.Store(int32(shard) + 1)
			}
		case word&bit == 0:
			// Before the look at the bytes, so that who confirms the last of them sees it.
			w.word.CompareAndSwap(word, word|bit)
		case w.alone.Load() != int32(shard)+1:
			return false, false
		case w.untakenBytes.Load() > 0 || free(word) < 0:
			return false, true
		case hasCredit:
			w.untakenBytes.Add(int64(payloadBytes))
			return true, true
		case free(word) == 0:
			return false, true
		case w.word.CompareAndSwap(word, word-oneFree):
			w.untakenBytes.Add(int64(payloadBytes))
			return true, true
		}
	}
}

// WaitAlone has the shard, which has the window alone, woken when nothing is on its
// way to the client. It reports false if that is so already.
func (w *Window) WaitAlone(shard int) bool {
	w.word.Or(int64(1) << shard)
	return w.untakenBytes.Load() > 0
}

// Share ends that one shard has the window alone. Shards that wait for it are woken
// by the next Return.
func (w *Window) Share() {
	w.alone.Store(0)
	w.word.And(^aloneBit)
}
