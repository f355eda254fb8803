package heap

// fanOut is the number of children of a node. Four of them share the work of two
// levels of a binary heap, so an item sinks through half as many.
const fanOut = 4

// Key is a time in Unix milliseconds; of equal times the lower Tie comes first.
type Key struct {
	AtMs int64
	Tie  [2]uint64
}

func (k *Key) isBefore(o *Key) bool {
	if k.AtMs != o.AtMs {
		return k.AtMs < o.AtMs
	}
	if k.Tie[0] != o.Tie[0] {
		return k.Tie[0] < o.Tie[0]
	}
	return k.Tie[1] < o.Tie[1]
}

// Heap holds items of type T, the one with the lowest key on top.
type Heap[T any] struct{ slots []slot[T] }

type slot[T any] struct {
	key  Key
	node *Node[T]
}

// Node is the field of an item that belongs to the heap. The zero Node is in none.
type Node[T any] struct {
	item *T
	// place is the index in the heap plus one.
	place int
}

// IsIn reports whether the item is in a heap.
func (n *Node[T]) IsIn() bool { return n.place != 0 }

// Len is the number of items.
func (h *Heap[T]) Len() int { return len(h.slots) }

// Top is the item with the lowest key, and its time, nil if there is none.
func (h *Heap[T]) Top() (item *T, atMs int64) {
	if len(h.slots) == 0 {
		return nil, 0
	}
	return h.slots[0].node.item, h.slots[0].key.AtMs
}

// AtMs is the time of an item of this heap, 0 if it is in none.
func (h *Heap[T]) AtMs(n *Node[T]) int64 {
	if !n.IsIn() {
		return 0
	}
	return h.slots[n.place-1].key.AtMs
}

// Put adds the item that n is a field of, or gives it another key.
func (h *Heap[T]) Put(n *Node[T], item *T, k Key) {
	if n.place == 0 {
		n.item = item
		h.slots = append(h.slots, slot[T]{})
		n.place = len(h.slots)
	}
	h.settle(n.place-1, slot[T]{k, n})
}

// Remove takes an item out. It does nothing if the item is in no heap.
func (h *Heap[T]) Remove(n *Node[T]) {
	if !n.IsIn() {
		return
	}
	i, end := n.place-1, len(h.slots)-1
	moved := h.slots[end]
	h.slots[end] = slot[T]{}
	h.slots = h.slots[:end]
	*n = Node[T]{}
	if i != end {
		h.settle(i, moved)
	}
}

// settle finds the place of s from a hole at i.
func (h *Heap[T]) settle(i int, s slot[T]) {
	for i > 0 && s.key.isBefore(&h.slots[(i-1)/fanOut].key) {
		h.set(i, h.slots[(i-1)/fanOut])
		i = (i - 1) / fanOut
	}
	for {
		least := fanOut*i + 1
		if least >= len(h.slots) {
			break
		}
		for c := least + 1; c < min(fanOut*i+1+fanOut, len(h.slots)); c++ {
			if h.slots[c].key.isBefore(&h.slots[least].key) {
				least = c
			}
		}
		if !h.slots[least].key.isBefore(&s.key) {
			break
		}
		h.set(i, h.slots[least])
		i = least
	}
	h.set(i, s)
}

func (h *Heap[T]) set(i int, s slot[T]) {
	h.slots[i] = s
	s.node.place = i + 1
}
