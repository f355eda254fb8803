// Package heap orders items by time. Each item has a Node that says where it is in
// the heap, so a change or a removal in the middle costs a logarithm and no search.
// One goroutine only.
//
// The keys stand in the heap itself: a comparison reads no item and makes no call,
// which container/heap makes through an interface. The package must not know what an
// item is or what its time means.
package heap
