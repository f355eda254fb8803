package mailbox

import (
	"math"
	"time"
)

// Figures describe one mailbox since it was made. Batches are the drains that
// found something; counts are messages.
type Figures struct {
	// Depth is what waits now, slots included; DepthBytes only what came by
	// Push.
	Depth      int
	DepthBytes int
	// New is what of Depth is of ClassNew.
	New int
	// BacklogForMs is for how long every drain has left some of that waiting, 0 if
	// the last one left none.
	BacklogForMs int64
	// NewLimit is how much of ClassNew may wait after an overload, 0 without a limit.
	NewLimit int
	// HighWater is the largest Depth so far.
	HighWater int

	// Pushed counts accepted messages, Merged those of them that joined one
	// that waited in their slot, Refused those answered Full.
	Pushed  uint64
	Merged  uint64
	Refused uint64

	// Batches counts the batches, LastBatch and MaxBatch are sizes.
	Batches   uint64
	LastBatch int
	MaxBatch  int

	// LastWait is how long the oldest message of the last batch had waited
	// when it was drained, MaxWait the longest of these.
	LastWait time.Duration
	MaxWait  time.Duration
}

// Figures is a copy of the figures at this moment. Any goroutine.
func (b *Mailbox[M]) Figures() Figures {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.figures
	f.Depth = b.depth()
	f.DepthBytes = b.countedBytes
	f.New = b.fresh.messages
	nowMs := b.nowMs()
	if b.admission.backlogged {
		f.BacklogForMs = nowMs - b.admission.sinceMs
	}
	if limit := b.admission.limitAt(nowMs); limit < math.MaxInt {
		f.NewLimit = limit
	}
	return f
}

func (f *Figures) drained(size int, firstPushAt time.Time) {
	if size == 0 {
		return
	}
	f.Batches++
	f.LastBatch = size
	f.MaxBatch = max(f.MaxBatch, size)
	f.LastWait = time.Since(firstPushAt)
	f.MaxWait = max(f.MaxWait, f.LastWait)
}
