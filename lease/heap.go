package lease

// fanOut is the number of children of a node. Four of them share the work of
// two levels of a binary heap, so an entry sinks through half as many.
const fanOut = 4

// heap orders entries by deadline, then by grant. Every entry knows its place.
// It is typed and not container/heap, whose calls go through an interface.
type heap []*Entry

func (e *Entry) isBefore(f *Entry) bool {
	if e.ExpiresAtMs != f.ExpiresAtMs {
		return e.ExpiresAtMs < f.ExpiresAtMs
	}
	return e.number < f.number
}

func (h heap) set(i int, e *Entry) {
	h[i] = e
	e.place = i + 1
}

func (h *heap) push(e *Entry) {
	*h = append(*h, e)
	h.rise(len(*h)-1, e)
}

func (h *heap) remove(e *Entry) {
	i, end := e.place-1, len(*h)-1
	moved := (*h)[end]
	(*h)[end] = nil
	*h = (*h)[:end]
	e.place = 0
	if e != moved {
		h.settle(i, moved)
	}
}

// fix puts e where it belongs after its deadline has changed.
func (h heap) fix(e *Entry) { h.settle(e.place-1, e) }

// settle finds the place of e from a hole at i.
func (h heap) settle(i int, e *Entry) {
	if i > 0 && e.isBefore(h[(i-1)/fanOut]) {
		h.rise(i, e)
		return
	}
	h.sink(i, e)
}

func (h heap) rise(i int, e *Entry) {
	for i > 0 {
		parent := (i - 1) / fanOut
		if !e.isBefore(h[parent]) {
			break
		}
		h.set(i, h[parent])
		i = parent
	}
	h.set(i, e)
}

func (h heap) sink(i int, e *Entry) {
	for {
		least := h.leastChild(i)
		if least < 0 || !h[least].isBefore(e) {
			break
		}
		h.set(i, h[least])
		i = least
	}
	h.set(i, e)
}

// leastChild is the child of i that comes first, -1 if it has none.
func (h heap) leastChild(i int) int {
	first := fanOut*i + 1
	if first >= len(h) {
		return -1
	}
	least := first
	for c := first + 1; c < min(first+fanOut, len(h)); c++ {
		if h[c].isBefore(h[least]) {
			least = c
		}
	}
	return least
}
