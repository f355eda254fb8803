// Package lease holds the deliveries that are in progress in one shard: which
// task, under which token, until when, and for which session.
//
// A Table is owned by the goroutine of its shard and has no lock. It answers
// three questions without a scan: what is known of a task (by id), whose lease
// ends next (a heap whose entries know their place, so that an extension or an
// end in the middle costs a logarithm), and which deliveries a session has (a list
// through the entries themselves, in the order they came to the session).
//
// The package must not know the time or what follows when a lease ends: times
// and tokens come as arguments, and what is due stays in the table until its
// owner moves or removes it.
package lease
