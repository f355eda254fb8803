package heap

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

type item struct {
	node Node[item]
	key  Key
}

// Random changes of a heap and of a list that is sorted after each: the lowest is on
// top, and every item knows its time.
func TestTopIsTheLowestWhateverHasMoved(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h Heap[item]
	var in []*item
	for step := range 5_000 {
		key := Key{AtMs: 1 + r.Int64N(50), Tie: [2]uint64{r.Uint64N(3), uint64(step)}}
		switch n := r.IntN(10); {
		case n < 4 || len(in) == 0:
			it := &item{key: key}
			h.Put(&it.node, it, key)
			in = append(in, it)
		case n < 7:
			it := in[r.IntN(len(in))]
			it.key = key
			h.Put(&it.node, it, key)
		default:
			i := r.IntN(len(in))
			gone := in[i]
			in = slices.Delete(in, i, i+1)
			h.Remove(&gone.node)
			h.Remove(&gone.node) // the second changes nothing
			if gone.node.IsIn() || h.AtMs(&gone.node) != 0 {
				t.Fatalf("step %d: a removed item is at %d", step, h.AtMs(&gone.node))
			}
		}
		slices.SortFunc(in, func(a, b *item) int {
			return cmp.Or(cmp.Compare(a.key.AtMs, b.key.AtMs), slices.Compare(a.key.Tie[:], b.key.Tie[:]))
		})
		top, atMs := h.Top()
		switch {
		case h.Len() != len(in):
			t.Fatalf("step %d: %d items, want %d", step, h.Len(), len(in))
		case len(in) > 0 && (top != in[0] || atMs != top.key.AtMs):
			t.Fatalf("step %d: %v at %d on top, want %v", step, top, atMs, in[0])
		}
		for _, it := range in {
			if h.AtMs(&it.node) != it.key.AtMs {
				t.Fatalf("step %d: an item is at %d, want %d", step, h.AtMs(&it.node), it.key.AtMs)
			}
		}
	}
}

func TestAnEmptyHeapHasNoTop(t *testing.T) {
	var h Heap[item]
	if top, atMs := h.Top(); top != nil || atMs != 0 {
		t.Fatalf("%v at %d, want none", top, atMs)
	}
}
