package credit

// IsIdle reports whether a shard may take the window alone and grant at once: every
// delivery is confirmed, no other shard has the window alone, and there is a free
// credit or the shard holds one. mine says that the shard has the window alone.
func (w *Window) IsIdle(mine, hasCredit bool) bool {
	word := w.word.Load()
	if word&closedBit != 0 || word&aloneBit != 0 && !mine || free(word) < 0 {
		return false
	}
	return (hasCredit || free(word) > 0) && w.untakenBytes.Load() == 0
}

// IsAlone reports whether a shard has the window alone.
func (w *Window) IsAlone() bool { return w.word.Load()&aloneBit != 0 }

// TakeAlone gives the window to one shard alone and, once every delivery is confirmed,
// takes a credit for a task of payloadBytes. hasCredit says that the shard holds a
// credit already. While the shard has the window no other shard takes a credit. When
// the client has confirmed the task, the shard is woken with a credit; it takes the
// next task alone or calls Share.
//
// taken reports that the shard may grant, mine that it has the window alone. If mine is
// false, another shard has the window and this one waits as for a credit.
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
			// Set before the bytes are read, so that the goroutine which confirms the last
			// of them sees the bit.
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

// WaitAlone asks for a wake-up of the shard, which has the window alone, when every
// delivery is confirmed. It returns false if that is so already.
func (w *Window) WaitAlone(shard int) bool {
	w.word.Or(int64(1) << shard)
	return w.untakenBytes.Load() > 0
}

// Share gives the window back to all shards. The next Return wakes those that wait.
func (w *Window) Share() {
	w.alone.Store(0)
	w.word.And(^aloneBit)
}
