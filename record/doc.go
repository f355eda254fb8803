// Package record has what a data directory keeps: the records of tasks, leases,
// queues and shards, their keys, and the bytes that both become there. Records
// become bytes here and nowhere else.
//
// It imports nothing but wire, and everything in it is a value: no function reads
// a file, a clock or a lock, and any goroutine may call any of them. Package store
// writes these keys and values; index and lease keep records in memory.
//
// ErrDamaged is the answer of every decoder to bytes that its encoder cannot have
// made. Append functions add to a buffer of the caller and return it.
package record
