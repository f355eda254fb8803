// Package audit compares everything that a data directory holds with one another, and
// counts the counters of its queues anew. It is for codeq doctor and for tests: a
// running server never asks it.
//
// It reads keys and values through package store, in one snapshot, and takes them
// apart with package record. It knows the rules that a correct core keeps, and nothing
// of how the core keeps them.
package audit
