package index

import (
	"bytes"
	"slices"

	"codeq/wire"
)

// place is a key of any order: by rank, which is a sequence or a time in Unix
// milliseconds, then by id.
type place struct {
	rank uint64
	id   wire.TaskID
}

func (p place) compare(o place) int {
	switch {
	case p.rank < o.rank:
		return -1
	case p.rank > o.rank:
		return 1
	}
	return bytes.Compare(p.id[:], o.id[:])
}

// entry is a place and, in a ready order, the time since when its task is ready.
type entry struct {
	place
	sinceMs int64
}

// compare orders entries by place.
func (e entry) compare(k place) int { return e.place.compare(k) }

// justBelow is the last place before all places of that rank.
func justBelow(watermark uint64) place {
	if watermark == 0 {
		return place{}
	}
	p := place{rank: watermark - 1}
	for i := range p.id {
		p.id[i] = 0xff
	}
	return p
}

// keptCap is the capacity in keys that even an empty run keeps: a queue that empties
// again and again does not allocate each time.
const keptCap = 64

// run is the part of one order that is in memory: the cursor, and sorted keys in a
// deque with free space before the head.
type run struct {
	queue    *Queue
	priority int
	// timed is the order by time that the run belongs to, nil for a ready order.
	timed *byTime

	keys   []entry
	head   int
	cursor place

	// listed is true while the run is in refillList; after is the next one there.
	listed bool
	after  *run
	// hurried is true while the run is in refillList.hurried.
	hurried bool
}

func (r *run) live() []entry { return r.keys[r.head:] }

func (r *run) len() int { return len(r.keys) - r.head }

func (r *run) first() place { return r.keys[r.head].place }

func (r *run) last() place { return r.keys[len(r.keys)-1].place }

// search is the index of k among the live keys, or where k would be inserted.
func (r *run) search(k place) (int, bool) {
	n := r.len()
	if n == 0 || k.compare(r.last()) > 0 {
		return n, false
	}
	if c := k.compare(r.first()); c <= 0 {
		return 0, c == 0
	}
	return slices.BinarySearchFunc(r.live(), k, entry.compare)
}

// insert puts k at index i of the live keys. It moves the shorter side.
func (r *run) insert(i int, k entry) {
	n := r.len()
	if i < n-i {
		if r.head == 0 {
			r.openFront()
		}
		r.head--
		live := r.live()
		copy(live, live[1:i+1])
		live[i] = k
		return
	}
	r.keys = append(r.keys, entry{})
	live := r.live()
	copy(live[i+1:], live[i:])
	live[i] = k
}

// openFront makes free space of a quarter of the length before the head: tasks that go
// back to their old place come many at once, when a session ends.
func (r *run) openFront() {
	n := len(r.keys)
	r.head = n/4 + 8
	r.keys = slices.Grow(r.keys, r.head)[:n+r.head]
	copy(r.keys[r.head:], r.keys[:n])
}

// cut removes the live key at index i. It moves the shorter side.
func (r *run) cut(i int) {
	live := r.live()
	if i < len(live)-i {
		copy(live[1:i+1], live[:i])
		r.head++
	} else {
		copy(live[i:], live[i+1:])
		r.keys = r.keys[:len(r.keys)-1]
	}
	r.shrink()
}

// keep drops all live keys but the first n.
func (r *run) keep(n int) {
	r.keys = r.keys[:r.head+n]
	r.shrink()
}

// shrink reallocates a run that uses less than an eighth of its memory, and closes a
// gap before the head that is longer than the run. Both move at most as many keys as
// were removed since the last time, so a removal is cheap on average.
func (r *run) shrink() {
	n := r.len()
	switch {
	case cap(r.keys) > keptCap && n < cap(r.keys)/8:
		r.keys = append(make([]entry, 0, 2*n), r.live()...)
		r.head = 0
	case r.head > n && r.head >= keptCap/2, n == 0:
		copy(r.keys, r.live())
		r.keys = r.keys[:n]
		r.head = 0
	}
}

// mustInsert adds a key that the run does not have.
func (r *run) mustInsert(k entry) {
	i, found := r.search(k.place)
	if found {
		r.fail("key %d/%s added twice", k.rank, k.id)
	}
	r.insert(i, k)
}

// mustCut removes a key that the run has.
func (r *run) mustCut(k place) {
	i, found := r.search(k)
	if !found {
		r.fail("key %d/%s is not in memory", k.rank, k.id)
	}
	r.cut(i)
}
