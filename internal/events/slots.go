package events

import (
	"strings"
	"sync"

	"codeq/record"
	"codeq/wire"
)

// quietForMs is how long a queue is without an event before its counts go, and its slot if
// it has no task; so long a slot that is gone stays unused.
const quietForMs = 3600_000

// namedBytes is about what the maps and slices need for a name, without its text.
const namedBytes = 200

// slots are the names of all queues, and the memory that the tallies of all shards share.
type slots struct {
	shards int64

	mu      sync.Mutex
	numbers map[record.QueueKey]uint32
	names   []record.QueueKey
	// free are slots that are gone, the oldest first.
	free []freeSlot
	left int64
	// full: a queue had no room. Every later one is part of slot 0 until the next start,
	// because tasks that are counted there cannot be told apart again.
	full bool
}

type freeSlot struct {
	slot uint32
	atMs int64
}

func newSlots(shards int, bytes int64) *slots {
	s := &slots{shards: int64(shards), left: bytes, numbers: make(map[record.QueueKey]uint32)}
	s.names = []record.QueueKey{{Command: wire.AllCommands}}
	return s
}

// bytes is what a queue without counts needs.
func (s *slots) bytes(q record.QueueKey) int64 {
	return s.shards*(partBytes+16) + namedBytes + int64(len(q.Command)+len(q.Tenant))
}

// of is the slot of a queue; one that has none gets one at a time.
func (s *slots) of(q record.QueueKey, nowMs int64) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot, known := s.numbers[q]; known {
		return slot
	}
	if s.full = s.full || s.bytes(q) > s.left; s.full {
		return 0
	}
	s.left -= s.bytes(q)
	q = record.QueueKey{Command: strings.Clone(q.Command), Tenant: strings.Clone(q.Tenant)} // they are part of a whole record
	slot := uint32(len(s.names))
	if len(s.free) > 0 && s.free[0].atMs+quietForMs <= nowMs {
		slot, s.free = s.free[0].slot, s.free[1:]
		s.names[slot] = q
	} else {
		s.names = append(s.names, q)
	}
	s.numbers[q] = slot
	return slot
}

// find is the slot of a queue, 0 if it has none of its own.
func (s *slots) find(q record.QueueKey) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbers[q]
}

// count is the number of slots that have ever been used.
func (s *slots) count() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint32(len(s.names))
}

// name is what a slot stands for.
func (s *slots) name(slot uint32) wire.SlotName {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.names[slot]
	return wire.SlotName{Slot: slot, Tenant: q.Tenant, Command: q.Command}
}

// drop takes the name of a slot away.
func (s *slots) drop(slot uint32, nowMs int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.names[slot]
	s.left += s.bytes(q)
	delete(s.numbers, q)
	s.names[slot] = record.QueueKey{}
	s.free = append(s.free, freeSlot{slot, nowMs})
}

// takeCounts makes counts, nil if there is no room.
func (s *slots) takeCounts() *Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left < countsBytes {
		return nil
	}
	s.left -= countsBytes
	return &Counts{}
}

// giveCounts takes counts back.
func (s *slots) giveCounts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left += countsBytes
}
